//! Matches source lines of two runs: the same statement is the same line, even if it has moved.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::Change;

/// The cost of a source line.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Line {
    /// File without folder, and line: `k.py:7`.
    pub(super) place: String,
    /// Name of the instruction.
    pub(super) instruction: String,
    /// The statement's text, if the file has it.
    pub(super) text: Option<String>,
    /// Time on the critical path, us; `None` if the run has no critical path.
    pub(super) critical: Option<f64>,
    /// Engine time, us.
    pub(super) busy: f64,
}

impl Line {
    fn file(&self) -> &str {
        file_of(&self.place)
    }

    fn number(&self) -> u64 {
        self.place.rsplit_once(':').and_then(|x| x.1.parse().ok()).unwrap_or(0)
    }

    fn name(&self, critical: bool) -> String {
        if critical { format!("{} {}", self.place, self.instruction) } else { self.place.clone() }
    }
}

/// The file of a place.
fn file_of(place: &str) -> &str {
    place.rsplit_once(':').map_or(place, |x| x.0)
}

/// A line of both runs, or of one.
pub(super) struct Pair {
    before: Option<Entry>,
    after: Option<Entry>,
}

impl Pair {
    /// Its figure in both runs, under its later name; with the earlier place, if the file has been renamed.
    pub(super) fn change(&self) -> Change {
        let us = |e: &Option<Entry>| e.as_ref().map_or(0.0, |e| e.us);
        let mut name = self.after.as_ref().or(self.before.as_ref()).map(|e| e.name.clone()).unwrap_or_default();
        if let (Some(before), Some(after)) = (&self.before, &self.after)
            && file_of(&before.place) != file_of(&after.place)
        {
            name += &format!(" ({})", before.place);
        }
        Change { name, before: us(&self.before), after: us(&self.after) }
    }

    /// `k.py:7` in each run; empty if it has no such line.
    pub(super) fn places(&self) -> [String; 2] {
        [&self.before, &self.after].map(|e| e.as_ref().map(|e| e.place.clone()).unwrap_or_default())
    }
}

/// A figure for each line of both runs.
pub(super) fn changes(before: &[Line], after: &[Line], critical: bool) -> Vec<Change> {
    pairs(before, after, critical).iter().map(Pair::change).collect()
}

/// Each line of both runs with one figure: time on the critical path, or engine time.
///
/// Lines with the same text and instruction match in order, first within a file ([`counterparts`]), then across files. The rest match in order, if
/// the remaining lines of an instruction are equally many in a file and its counterpart. Without text, lines match by number.
pub(super) fn pairs(before: &[Line], after: &[Line], critical: bool) -> Vec<Pair> {
    let by_text = before.iter().chain(after).all(|l| l.text.is_some());
    let file_before = counterparts(before, after);
    let mut old = entries(before, critical, by_text);
    let mut new = entries(after, critical, by_text);
    for entry in &mut new {
        if let Some(file) = file_before.get(entry.file.as_str()) {
            entry.file = (*file).to_owned();
        }
    }
    let mut out = Vec::new();
    join(&mut old, &mut new, &mut out, false, |e| (e.file.clone(), e.text.clone(), e.instruction.clone()));
    if by_text {
        // Statements moved to another file.
        join(&mut old, &mut new, &mut out, false, |e| (e.text.clone(), e.instruction.clone()));
        // Edited statements: no other statement with the same instruction was added or removed.
        join(&mut old, &mut new, &mut out, true, |e| (e.file.clone(), e.instruction.clone()));
    }
    out.extend(old.into_iter().map(|entry| Pair { before: Some(entry), after: None }));
    out.extend(new.into_iter().map(|entry| Pair { before: None, after: Some(entry) }));
    out
}

/// The earlier file for each later file with a different name: among the files that only one of the runs has, those that share
/// the most statements, or the only remaining pair.
pub(super) fn counterparts<'a>(before: &'a [Line], after: &'a [Line]) -> BTreeMap<&'a str, &'a str> {
    let files = |lines: &'a [Line]| -> BTreeSet<&'a str> { lines.iter().map(Line::file).collect() };
    let (old, new) = (files(before), files(after));
    let mut only_old: Vec<&str> = old.difference(&new).copied().collect();
    let mut only_new: Vec<&str> = new.difference(&old).copied().collect();
    let texts = |lines: &'a [Line], file: &str| -> BTreeSet<&'a str> {
        lines.iter().filter(|l| l.file() == file).filter_map(|l| l.text.as_deref()).collect()
    };
    let mut out = BTreeMap::new();
    while !only_old.is_empty() && !only_new.is_empty() {
        let last = only_old.len() == 1 && only_new.len() == 1;
        let all = || only_new.iter().flat_map(|n| only_old.iter().map(move |o| (*n, *o)));
        let shared = |n: &str, o: &str| texts(after, n).intersection(&texts(before, o)).count();
        // The first one in case of a tie.
        let best = all().min_by_key(|(n, o)| std::cmp::Reverse(shared(n, o)));
        let Some((n, o)) = best.filter(|(n, o)| last || shared(n, o) > 0) else { break };
        out.insert(n, o);
        only_old.retain(|f| *f != o);
        only_new.retain(|f| *f != n);
    }
    out
}

/// Matches entries with equal keys in order, and removes them from the lists; if `whole`, only keys that occur equally often in both.
fn join<K: Ord>(
    old: &mut Vec<Entry>,
    new: &mut Vec<Entry>,
    out: &mut Vec<Pair>,
    whole: bool,
    key: impl Fn(&Entry) -> K,
) {
    let mut groups: BTreeMap<K, (Vec<Entry>, Vec<Entry>)> = BTreeMap::new();
    for entry in old.drain(..) {
        groups.entry(key(&entry)).or_default().0.push(entry);
    }
    for entry in new.drain(..) {
        groups.entry(key(&entry)).or_default().1.push(entry);
    }
    for (mut a, mut b) in groups.into_values() {
        let paired = if whole && a.len() != b.len() { 0 } else { a.len().min(b.len()) };
        let both = a.drain(..paired).zip(b.drain(..paired));
        out.extend(both.map(|(before, after)| Pair { before: Some(before), after: Some(after) }));
        old.append(&mut a);
        new.append(&mut b);
    }
    old.sort_by(Entry::in_order);
    new.sort_by(Entry::in_order);
}

/// A source line with one figure.
struct Entry {
    /// The file, under its earlier name.
    file: String,
    number: u64,
    /// The statement, or the line number if texts are not compared.
    text: String,
    instruction: String,
    name: String,
    place: String,
    us: f64,
}

impl Entry {
    fn in_order(&self, other: &Entry) -> Ordering {
        (&self.file, self.number, &self.instruction).cmp(&(&other.file, other.number, &other.instruction))
    }
}

/// The lines of a run in order, merged by place and instruction.
fn entries(lines: &[Line], critical: bool, by_text: bool) -> Vec<Entry> {
    // Engine time is per line: hardware has other instruction names.
    let instruction = |l: &Line| if critical { l.instruction.clone() } else { String::new() };
    let mut by_place: BTreeMap<(&str, u64, String), Entry> = BTreeMap::new();
    for l in lines {
        let us = if critical { l.critical } else { Some(l.busy) };
        let Some(us) = us else { continue };
        let entry = by_place.entry((l.file(), l.number(), instruction(l))).or_insert_with(|| Entry {
            file: l.file().to_owned(),
            number: l.number(),
            text: l.text.clone().filter(|_| by_text).unwrap_or_else(|| l.number().to_string()),
            instruction: instruction(l),
            name: l.name(critical),
            place: l.place.clone(),
            us: 0.0,
        });
        entry.us += us;
    }
    by_place.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(place: &str, instruction: &str, text: Option<&str>, us: f64) -> Line {
        Line {
            place: place.into(),
            instruction: instruction.into(),
            text: text.map(str::to_owned),
            critical: Some(us),
            busy: us,
        }
    }

    fn of(before: &[Line], after: &[Line]) -> Vec<(String, f64, f64)> {
        let mut out: Vec<_> = changes(before, after, true).into_iter().map(|c| (c.name, c.before, c.after)).collect();
        out.sort_by(|x, y| x.0.cmp(&y.0));
        out
    }

    #[test]
    fn a_line_that_moved_is_the_same_line() {
        let before = [line("k.py:7", "copy", Some("copy(a)"), 1.0), line("k.py:8", "copy", Some("copy(b)"), 2.0)];
        let after = [line("k.py:8", "copy", Some("copy(b)"), 2.0), line("k.py:9", "copy", Some("copy(a)"), 1.0)];
        assert_eq!(of(&before, &after), [("k.py:8 copy".into(), 2.0, 2.0), ("k.py:9 copy".into(), 1.0, 1.0)]);
    }

    #[test]
    fn equal_statements_pair_in_their_order() {
        let twice = |from: u64, us: [f64; 2]| {
            [
                line(&format!("k.py:{from}"), "copy", Some("copy(a)"), us[0]),
                line(&format!("k.py:{}", from + 1), "copy", Some("copy(a)"), us[1]),
            ]
        };
        // 9 and 10 are ordered as numbers, not as text.
        let got = of(&twice(8, [1.0, 2.0]), &twice(9, [1.0, 5.0]));
        assert_eq!(got, [("k.py:10 copy".into(), 2.0, 5.0), ("k.py:9 copy".into(), 1.0, 1.0)]);
    }

    #[test]
    fn an_edited_statement_is_the_same_line_if_nothing_was_added() {
        let before = [line("k.py:7", "copy", Some("copy(a)"), 1.0)];
        let after = [line("k.py:9", "copy", Some("copy(b)"), 1.5)];
        assert_eq!(of(&before, &after), [("k.py:9 copy".into(), 1.0, 1.5)]);
        let more = [after[0].clone(), line("k.py:10", "copy", Some("copy(c)"), 1.0)];
        assert_eq!(of(&before, &more).len(), 3);
    }

    #[test]
    fn two_files_that_differ_in_their_name_are_versions_of_one() {
        let before = [line("v1.py:7", "copy", Some("copy(a)"), 1.0), line("v1.py:8", "copy", Some("copy(b)"), 2.0)];
        let after = [line("v2.py:9", "copy", Some("copy(b)"), 2.5), line("v2.py:10", "copy", Some("copy(c)"), 0.5)];
        let want = [("v2.py:10 copy (v1.py:7)".into(), 1.0, 0.5), ("v2.py:9 copy (v1.py:8)".into(), 2.0, 2.5)];
        assert_eq!(of(&before, &after), want);
        // Without the text, by number.
        let bare = |l: &[Line]| l.iter().map(|l| Line { text: None, ..l.clone() }).collect::<Vec<_>>();
        let same = [line("v2.py:7", "copy", None, 3.0)];
        let want = [("v1.py:8 copy".into(), 2.0, 0.0), ("v2.py:7 copy (v1.py:7)".into(), 1.0, 3.0)];
        assert_eq!(of(&bare(&before), &same), want);
    }

    #[test]
    fn files_pair_by_name_and_then_by_the_statements_that_they_share() {
        let both = line("util.py:3", "copy", Some("load()"), 1.0);
        let before = [both.clone(), line("a.py:1", "copy", Some("x()"), 1.0), line("b.py:1", "copy", Some("y()"), 2.0)];
        let after = [both, line("c.py:5", "copy", Some("y()"), 3.0), line("d.py:5", "copy", Some("x()"), 4.0)];
        assert_eq!(counterparts(&before, &after), [("c.py", "b.py"), ("d.py", "a.py")].into());
        let unlike = [line("e.py:1", "copy", Some("z()"), 1.0), line("f.py:1", "copy", Some("w()"), 1.0)];
        assert!(counterparts(&before, &unlike).is_empty());
    }

    #[test]
    fn a_statement_that_moved_to_another_file_is_the_same_line() {
        let before = [line("k.py:7", "copy", Some("copy(a)"), 1.0), line("k.py:8", "add", Some("add(b)"), 2.0)];
        let after = [line("h.py:1", "add", Some("add(b)"), 3.0), line("k.py:7", "copy", Some("copy(a)"), 1.0)];
        assert_eq!(of(&before, &after), [("h.py:1 add (k.py:8)".into(), 2.0, 3.0), ("k.py:7 copy".into(), 1.0, 1.0)]);
    }

    #[test]
    fn without_text_lines_pair_by_number() {
        let before = [line("k.py:7", "copy", None, 1.0)];
        let after = [line("k.py:7", "copy", Some("x"), 2.0), line("k.py:8", "copy", Some("y"), 3.0)];
        assert_eq!(of(&before, &after), [("k.py:7 copy".into(), 1.0, 2.0), ("k.py:8 copy".into(), 0.0, 3.0)]);
    }
}
