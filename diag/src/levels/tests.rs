use proptest::prelude::*;

use super::*;

/// A slug of each class of findings.
const SLUGS: [&str; 3] = ["shared-memory-race", "overlapping-write", "strict-language"];

fn source(lists: &[(Level, &str)]) -> Source {
    let mut source = Source::default();
    for (level, words) in lists {
        source.add(*level, &format!("--{}", level.name()), words.split(',')).unwrap();
    }
    source
}

fn levels(mode: Mode, sources: &[Source]) -> Levels {
    let mut levels = Levels::new(mode, false);
    sources.iter().cloned().for_each(|s| levels.push(s));
    levels
}

#[test]
fn defaults_follow_class_and_mode() {
    for (mode, bug) in [(Mode::Run, Level::Warn), (Mode::Check, Level::Deny), (Mode::AssertClose, Level::Deny)] {
        let levels = Levels::new(mode, false);
        assert_eq!(SLUGS.map(|s| levels.level(s)), [bug, Level::Warn, Level::Allow], "{}", mode.name());
        assert_eq!(levels.level("sbuf-overflow"), Level::Deny);
    }
    assert_eq!(Levels::new(Mode::Run, true).level("strict-language"), Level::Warn);
}

#[test]
fn a_slug_beats_its_class_and_both_beat_warnings() {
    let s = source(&[(Level::Deny, "warnings"), (Level::Allow, "bug"), (Level::Warn, "clobbered-read")]);
    let levels = levels(Mode::Run, &[s]);
    assert_eq!(levels.level("shared-memory-race"), Level::Allow);
    assert_eq!(levels.level("clobbered-read"), Level::Warn);
    assert_eq!(levels.level("overlapping-write"), Level::Deny);
    assert_eq!(levels.level("strict-language"), Level::Allow, "it would not be a warning");
}

#[test]
fn a_class_of_a_stronger_source_beats_a_slug_of_a_weaker_one() {
    let strong = source(&[(Level::Warn, "bug")]);
    let weak = source(&[(Level::Deny, "shared-memory-race,warnings"), (Level::Allow, "overlapping-write")]);
    let levels = levels(Mode::Check, &[strong, weak]);
    assert_eq!(SLUGS.map(|s| levels.level(s)), [Level::Warn, Level::Allow, Level::Allow]);
}

#[test]
fn the_strongest_list_with_warnings_counts() {
    let all = source(&[(Level::Deny, "warnings")]);
    let none = source(&[(Level::Warn, "warnings")]);
    assert_eq!(levels(Mode::Run, &[none.clone(), all.clone()]).level("overlapping-write"), Level::Warn);
    assert_eq!(levels(Mode::Run, &[all.clone(), none]).level("overlapping-write"), Level::Deny);
    // What a weaker source names stays subject to it.
    let named = source(&[(Level::Warn, "overlapping-write")]);
    assert_eq!(levels(Mode::Run, &[all, named]).level("overlapping-write"), Level::Deny);
}

#[test]
fn strict_findings_are_looked_for_if_a_source_wants_them() {
    assert!(!Levels::new(Mode::Check, false).includes_strict());
    assert!(Levels::new(Mode::Run, true).includes_strict());
    assert!(levels(Mode::Run, &[source(&[(Level::Deny, "strict")])]).includes_strict());
    assert!(levels(Mode::Run, &[source(&[(Level::Warn, "strict-language")])]).includes_strict());
    assert!(!levels(Mode::Run, &[source(&[(Level::Deny, "warnings")])]).includes_strict());
}

#[test]
fn wrong_words_are_refused_with_what_was_meant() {
    let mut s = Source::default();
    let unknown = s.add(Level::Deny, "--deny", ["shared-memory-rase"]).unwrap_err();
    assert_eq!(
        unknown,
        "--deny: `shared-memory-rase` is neither the slug of a diagnostic nor a class (bug, suspicious, strict) nor `warnings`; \
         did you mean `shared-memory-race`?"
    );
    assert!(s.add(Level::Deny, "--deny", ["bugs"]).unwrap_err().ends_with("did you mean `bug`?"));
    assert!(s.add(Level::Deny, "--deny", ["warning"]).unwrap_err().ends_with("did you mean `warnings`?"));
    assert!(s.add(Level::Deny, "--deny", [""]).unwrap_err().contains("``"));
    assert!(s.add(Level::Allow, "--allow", ["error"]).unwrap_err().contains("errors have no level"));
    assert!(s.is_empty());
}

#[test]
fn an_error_can_be_denied_and_not_lowered() {
    let mut s = Source::default();
    s.add(Level::Deny, "--deny", ["sbuf-overflow"]).unwrap();
    assert!(s.is_empty());
    for level in [Level::Allow, Level::Warn] {
        assert!(s.add(level, "NKI_SIM_WARN", ["sbuf-overflow"]).unwrap_err().contains("is an error"));
    }
}

#[test]
fn one_word_in_two_lists_of_a_source_is_refused() {
    let mut s = source(&[(Level::Deny, "bug")]);
    s.add(Level::Deny, "--deny", ["bug"]).unwrap();
    assert_eq!(
        s.add(Level::Allow, "--allow", [" bug "]).unwrap_err(),
        "--allow: `bug` is given twice, also as --deny bug"
    );
}

#[test]
fn a_denied_finding_says_what_denies_it() {
    let finding = || Diagnostic::warning("shared-memory-race", "x");
    let by_flag = levels(Mode::Run, &[source(&[(Level::Deny, "warnings")])]).apply(vec![finding(), finding()]);
    assert_eq!(by_flag.denied[0].to_string(), "shared-memory-race (2) by --deny warnings");
    assert_eq!(by_flag.diagnostics[0].notes, ["denied by --deny warnings"]);
    assert!(by_flag.diagnostics[0].is_error() && by_flag.diagnostics[0].help.is_empty());
    let by_default = Levels::new(Mode::Check, false).apply(vec![finding()]);
    assert_eq!(by_default.denied[0].to_string(), "shared-memory-race (1) by default in check");
    assert_eq!(by_default.diagnostics[0].help, ["--warn shared-memory-race reports it as a warning"]);
}

#[test]
fn a_warning_with_the_slug_of_an_error_is_a_warning() {
    let finding = || vec![Diagnostic::warning("sbuf-overflow", "x")];
    assert_eq!(Levels::new(Mode::Check, false).apply(finding()).diagnostics, finding());
    assert_eq!(levels(Mode::Run, &[source(&[(Level::Deny, "warnings")])]).apply(finding()).denied.len(), 1);
}

fn words() -> impl Strategy<Value = Vec<(&'static str, Level)>> {
    let pool: Vec<&'static str> = SLUGS.into_iter().chain(["bug", "suspicious", "strict", "warnings"]).collect();
    let level = prop::sample::select(Level::ALL.to_vec());
    let len = pool.len();
    (prop::sample::subsequence(pool, 0..=len).prop_shuffle(), prop::collection::vec(level, len))
        .prop_map(|(words, levels)| words.into_iter().zip(levels).collect())
}

fn of_words(words: &[(&'static str, Level)]) -> Source {
    let mut source = Source::default();
    for (word, level) in words {
        source.add(*level, level.name(), [word]).unwrap();
    }
    source
}

fn diagnostics() -> impl Strategy<Value = Vec<Diagnostic>> {
    let ids: Vec<&'static str> = SLUGS.into_iter().chain(["sbuf-overflow"]).collect();
    // The message is the position in the list, so that all entries of a list are different.
    prop::collection::vec((prop::sample::select(ids), 0..3_u8), 0..20).prop_map(|kinds| {
        let one = |(n, (id, kind)): (usize, (&'static str, u8))| match kind {
            0 => Diagnostic::error(id, n.to_string()),
            1 => Diagnostic::info(id, n.to_string()),
            _ => Diagnostic::warning(id, n.to_string()),
        };
        kinds.into_iter().enumerate().map(one).collect()
    })
}

fn mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(Mode::ALL.to_vec())
}

/// The level by the documented rule, computed in another way: each source, from the weakest on, overrides the current
/// result.
fn by_the_rule(mode: Mode, strict: bool, sources: &[Vec<(&'static str, Level)>], slug: &Slug) -> Level {
    let mut named = mode.default_level(slug.class, strict);
    let mut warnings = None;
    for words in sources.iter().rev() {
        let of = |word: &str| words.iter().find(|(w, _)| *w == word).map(|(_, level)| *level);
        if let Some(level) = of(slug.id).or_else(|| of(slug.class.name())) {
            // Determined here: `warnings` of this source and of weaker ones applies to the rest.
            (named, warnings) = (level, None);
        } else if let Some(level) = of("warnings") {
            warnings = Some(level);
        }
    }
    if named == Level::Warn { warnings.unwrap_or(named) } else { named }
}

proptest! {
    #[test]
    fn levels_are_those_of_the_rule(
        mode in mode(), strict: bool, sources in prop::collection::vec(words(), 0..4), found in diagnostics()
    ) {
        let mut levels = Levels::new(mode, strict);
        sources.iter().for_each(|words| levels.push(of_words(words)));
        for id in SLUGS {
            let slug = slugs::find(id).unwrap();
            prop_assert_eq!(levels.level(id), by_the_rule(mode, strict, &sources, slug), "{}", id);
        }
        let applied = levels.apply(found.clone());
        let denied: usize = applied.denied.iter().map(|d| d.count).sum();
        let errors = |all: &[Diagnostic]| all.iter().filter(|d| d.is_error()).count();
        prop_assert_eq!(applied.diagnostics.len() + applied.allowed, found.len());
        prop_assert_eq!(errors(&applied.diagnostics), errors(&found) + denied);
        // The rest keeps its order, unchanged unless denied.
        let mut rest = found.iter();
        for d in &applied.diagnostics {
            let original = rest.by_ref().find(|f| f.id == d.id && f.message == d.message);
            prop_assert!(original.is_some());
            let same = original == Some(d);
            prop_assert!(same || d.is_error() && d.notes.len() == 1, "{:?}", d);
        }
        // Applying the levels is idempotent.
        let again = levels.apply(applied.diagnostics.clone());
        prop_assert_eq!(again.diagnostics, applied.diagnostics);
    }

    #[test]
    fn the_order_of_words_does_not_matter(mode in mode(), words in words()) {
        let mut reversed = words.clone();
        reversed.reverse();
        let of = |words| { let mut l = Levels::new(mode, false); l.push(of_words(words)); SLUGS.map(|s| l.level(s)) };
        prop_assert_eq!(of(&words), of(&reversed));
    }

    #[test]
    fn deny_warnings_leaves_none_and_allow_is_kept(mode in mode(), weak in words(), found in diagnostics()) {
        let mut before = Levels::new(mode, false);
        before.push(of_words(&weak));
        let mut after = Levels::new(mode, false);
        after.push(source(&[(Level::Deny, "warnings")]));
        after.push(of_words(&weak));
        for id in SLUGS {
            // A weaker `warnings` is overridden; everything else that was allowed stays allowed.
            let named = weak.iter().any(|(w, _)| *w == id || *w == slugs::find(id).unwrap().class.name());
            if named && before.level(id) == Level::Allow {
                prop_assert_eq!(after.level(id), Level::Allow);
            }
        }
        prop_assert!(after.apply(found).diagnostics.iter().all(|d| d.severity != Severity::Warning));
    }
}
