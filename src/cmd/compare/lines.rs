//! Source lines of two runs, paired: the same statement is the same line, wherever it has moved.

use std::collections::{BTreeMap, BTreeSet};

use super::Change;

/// What a source line cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Line {
    /// File without its folder, and line: `k.py:7`.
    pub(super) place: String,
    /// Name of the instruction.
    pub(super) instruction: String,
    /// The statement's text, where the file has it.
    pub(super) text: Option<String>,
    /// Time on the critical path, us; `None` where the run knows no critical path.
    pub(super) critical: Option<f64>,
    /// Engine time, us.
    pub(super) busy: f64,
}

impl Line {
    fn file(&self) -> &str {
        self.place.rsplit_once(':').map_or(self.place.as_str(), |x| x.0)
    }

    fn number(&self) -> u64 {
        self.place.rsplit_once(':').and_then(|x| x.1.parse().ok()).unwrap_or(0)
    }

    fn name(&self, critical: bool) -> String {
        if critical { format!("{} {}", self.place, self.instruction) } else { self.place.clone() }
    }
}

/// A line of both runs, or of one.
pub(super) struct Pair {
    before: Option<Entry>,
    after: Option<Entry>,
}

impl Pair {
    /// Its figure in both runs, under its later name.
    pub(super) fn change(&self) -> Change {
        let us = |e: &Option<Entry>| e.as_ref().map_or(0.0, |e| e.us);
        let name = self.after.as_ref().or(self.before.as_ref()).map(|e| e.name.clone()).unwrap_or_default();
        Change { name, before: us(&self.before), after: us(&self.after) }
    }

    /// `k.py:7` in each run; empty where it has no such line.
    pub(super) fn places(&self) -> [String; 2] {
        [&self.before, &self.after].map(|e| e.as_ref().map(|e| e.place.clone()).unwrap_or_default())
    }
}

/// One figure of each line of both runs.
pub(super) fn changes(before: &[Line], after: &[Line], critical: bool) -> Vec<Change> {
    pairs(before, after, critical).iter().map(Pair::change).collect()
}

/// Each line of both runs with one figure: time on the critical path, or engine time. Lines pair by file, text, instruction and occurrence;
/// what is left pairs in order, where as many are left of an instruction in one run as in the other. Without the text, by number.
pub(super) fn pairs(before: &[Line], after: &[Line], critical: bool) -> Vec<Pair> {
    let by_text = before.iter().chain(after).all(|l| l.text.is_some());
    let (mut a, mut b) = (merged(before, critical, by_text), merged(after, critical, by_text));
    let mut out = Vec::new();
    let shared: Vec<Key> = a.keys().filter(|k| b.contains_key(*k)).cloned().collect();
    let mut pair = |before: Option<Entry>, after: Option<Entry>| out.push(Pair { before, after });
    for key in shared {
        pair(a.remove(&key), b.remove(&key));
    }
    if by_text {
        // A statement that was edited: no other of its instruction was added or removed.
        let kinds: BTreeSet<(String, String)> =
            a.values().chain(b.values()).map(|e| (e.file.clone(), e.instruction.clone())).collect();
        for kind in kinds {
            let of = |map: &BTreeMap<Key, Entry>| {
                let mut list: Vec<(u64, Key)> = map
                    .iter()
                    .filter(|(_, e)| (&e.file, &e.instruction) == (&kind.0, &kind.1))
                    .map(|(k, e)| (e.number, k.clone()))
                    .collect();
                list.sort();
                list
            };
            let (old, new) = (of(&a), of(&b));
            if old.len() == new.len() {
                for ((_, x), (_, y)) in old.iter().zip(&new) {
                    pair(a.remove(x), b.remove(y));
                }
            }
        }
    }
    for entry in a.into_values() {
        pair(Some(entry), None);
    }
    for entry in b.into_values() {
        pair(None, Some(entry));
    }
    out
}

/// File, text or place, instruction, and which of the lines that agree in these.
type Key = (String, String, String, usize);

struct Entry {
    file: String,
    number: u64,
    instruction: String,
    name: String,
    place: String,
    us: f64,
}

fn merged(lines: &[Line], critical: bool, by_text: bool) -> BTreeMap<Key, Entry> {
    // Engine time is of a whole line: hardware has other names for its instructions.
    let instruction = |l: &Line| if critical { l.instruction.clone() } else { String::new() };
    let mut by_place: BTreeMap<(String, u64, String, String), (f64, &Line)> = BTreeMap::new();
    for l in lines {
        let us = if critical { l.critical } else { Some(l.busy) };
        let Some(us) = us else { continue };
        let key = (l.file().to_owned(), l.number(), l.place.clone(), instruction(l));
        by_place.entry(key).or_insert((0.0, l)).0 += us;
    }
    let mut seen: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    let mut out = BTreeMap::new();
    for ((file, number, place, instruction), (us, line)) in by_place {
        let text = if by_text { line.text.clone().unwrap_or_default() } else { place.clone() };
        let nth = seen.entry((file.clone(), text.clone(), instruction.clone())).or_insert(0);
        let key = (file.clone(), text, instruction.clone(), *nth);
        *nth += 1;
        out.insert(key, Entry { file, number, instruction, name: line.name(critical), place, us });
    }
    out
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
        // 9 and 10: numbers, not text.
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
    fn without_text_lines_pair_by_number() {
        let before = [line("k.py:7", "copy", None, 1.0)];
        let after = [line("k.py:7", "copy", Some("x"), 2.0), line("k.py:8", "copy", Some("y"), 3.0)];
        assert_eq!(of(&before, &after), [("k.py:7 copy".into(), 1.0, 2.0), ("k.py:8 copy".into(), 0.0, 3.0)]);
    }
}
