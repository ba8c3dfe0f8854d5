//! The registry of slugs: one line each, with a summary and the page that `nki-sim explain` prints.
//!
//! To add a diagnostic: pick a kebab-case slug, add an entry to the table of the part it belongs
//! to, use it in `Diagnostic::error("slug", ...)`. A test finds slugs that are used but not here.
//! A page describes the error and why the machine or language requires the rule, and shows wrong and right code.

use std::collections::HashMap;
use std::sync::LazyLock;

mod accesses;
mod api;
mod beta1;
mod language;
mod machine;
mod run;
mod values;

/// The meaning of a kind of diagnostic for the kernel. It determines the default level of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The kernel cannot be compiled or run. No option changes its level.
    Error,
    /// The kernel runs, but is certain to misbehave on hardware.
    Bug,
    /// The kernel runs, but probably not as its author intended.
    Suspicious,
    /// The kernel runs here, but the official compiler rejects it. Only checked with `--strict`.
    Strict,
}

impl Class {
    /// All classes, the worst first.
    pub const ALL: [Class; 4] = [Class::Error, Class::Bug, Class::Suspicious, Class::Strict];

    /// The classes of findings: all those with a configurable level.
    pub const FINDINGS: [Class; 3] = [Class::Bug, Class::Suspicious, Class::Strict];

    /// `error`, `bug`, `suspicious` or `strict`.
    pub fn name(self) -> &'static str {
        match self {
            Class::Error => "error",
            Class::Bug => "bug",
            Class::Suspicious => "suspicious",
            Class::Strict => "strict",
        }
    }
}

/// One kind of diagnostic.
#[derive(Debug, Clone, Copy)]
pub struct Slug {
    /// The slug, kebab-case.
    pub id: &'static str,
    /// Its meaning for the kernel.
    pub class: Class,
    /// One line: the error.
    pub summary: &'static str,
    /// Markdown: the reason, with an example of wrong and right code.
    pub page: &'static str,
}

/// Defines a table of slugs: `slugs! { "slug", "summary", "page"; ... }`. A finding has its class after the slug:
/// `"slug" (Bug), "summary", "page";`. Without one it is [`Class::Error`].
macro_rules! slugs {
    (@class) => { $crate::slugs::Class::Error };
    (@class $class:ident) => { $crate::slugs::Class::$class };
    ($($id:literal $(($class:ident))?, $summary:literal, $page:literal;)*) => {
        pub(super) const TABLE: &[$crate::slugs::Slug] = &[
            $($crate::slugs::Slug {
                id: $id,
                class: $crate::slugs::slugs!(@class $($class)?),
                summary: $summary,
                page: $page,
            },)*
        ];
    };
}
pub(crate) use slugs;

/// All slugs: the language's, the API's, the machine's, the run's, those of values.
pub fn all() -> impl Iterator<Item = &'static Slug> {
    language::TABLE
        .iter()
        .chain(api::TABLE)
        .chain(beta1::TABLE)
        .chain(machine::TABLE)
        .chain(accesses::TABLE)
        .chain(run::TABLE)
        .chain(values::TABLE)
}

/// The slug with this name.
pub fn find(id: &str) -> Option<&'static Slug> {
    static BY_NAME: LazyLock<HashMap<&str, &Slug>> = LazyLock::new(|| all().map(|slug| (slug.id, slug)).collect());
    BY_NAME.get(id).copied()
}

/// The Markdown page of a slug.
pub fn explain(id: &str) -> Option<String> {
    let slug = find(id)?;
    Some(format!("# {}\n\n{}\n\n{}\n", slug.id, slug.summary, slug.page.trim()))
}

/// The slug most similar to `id`, for "did you mean".
pub fn nearest(id: &str) -> Option<&'static Slug> {
    find(nearest_of(id, all().map(|s| s.id))?)
}

/// The name most similar to `word`, if the edit distance is at most a third of the longer one's length.
pub fn nearest_of<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |text: &str| text.chars().count();
    names
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|&(d, name)| d <= (letters(name).max(letters(word)) / 3).max(1))
        .min_by_key(|&(d, _)| d)
        .map(|(_, name)| name)
}

/// Edit distance, ignoring case; a swap of neighbours counts once.
fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    let width = b.len() + 1;
    let mut table: Vec<usize> = (0..(a.len() + 1) * width).map(|k| if k < width { k } else { 0 }).collect();
    for i in 1..=a.len() {
        table[i * width] = i;
        for j in 1..=b.len() {
            let at = i * width + j;
            let replace = table[at - width - 1] + usize::from(a[i - 1] != b[j - 1]);
            table[at] = replace.min(table[at - 1] + 1).min(table[at - width] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                table[at] = table[at].min(table[at - 2 * width - 2] + 1);
            }
        }
    }
    table[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_unique_kebab_case_and_have_pages() {
        let mut seen = Vec::new();
        for s in all() {
            assert!(!seen.contains(&s.id), "{} twice", s.id);
            seen.push(s.id);
            assert!(s.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{}", s.id);
            assert!(!s.summary.is_empty() && !s.summary.ends_with('.'), "{}", s.id);
            assert!(s.page.trim().len() > 40, "{} needs a page", s.id);
        }
    }

    #[test]
    fn nearest_finds_a_typo() {
        assert_eq!(nearest("uninitialised-read").map(|s| s.id), Some("uninitialized-read"));
        assert!(nearest("zzzzzzzzzzzz").is_none());
    }

    #[test]
    fn only_near_names_are_suggested() {
        let near = |word| nearest_of(word, ["topk", "iota", "activation", "x"]);
        assert_eq!(near("tokp"), Some("topk"));
        assert_eq!(near("itoa"), Some("iota"));
        assert_eq!(near("activtaoin"), Some("activation"));
        for far in ["nope", "node", "it", "action_now"] {
            assert_eq!(near(far), None, "{far}");
        }
    }
}
