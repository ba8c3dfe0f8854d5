//! Messages of commands in the terms of jobs.

use super::read::fields_of;
use super::{Job, SweepJob};

/// A message of a command with the fields of a job in place of the options that they became.
///
/// `--arg x=foo: ...` becomes `` `args` x=foo: ... ``, and `'--lnc <1|2>'` becomes `` `lnc` ``.
pub(super) fn with_fields(message: &str) -> String {
    let fields = [fields_of::<Job>(), fields_of::<SweepJob>()].concat();
    let mut parts = message.split("--");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !matches!(c, '-' | 'a'..='z' | '0'..='9')).unwrap_or(part.len());
        let starts_word = text.is_empty() || text.ends_with([' ', '\'', '`', '(']);
        let field = match &part[..end] {
            "arg" => "args".to_owned(),
            option => option.replace('-', "_"),
        };
        if !starts_word || !fields.contains(&field) {
            text.push_str("--");
            text.push_str(part);
            continue;
        }
        let mut rest = &part[end..];
        if let Some((_, after)) = rest.strip_prefix(" <").and_then(|placeholder| placeholder.split_once('>')) {
            rest = after;
        }
        // The quotes of the option.
        if let Some(quote) = text.chars().last().filter(|c| matches!(c, '\'' | '`'))
            && let Some(after) = rest.strip_prefix(quote)
        {
            text.pop();
            rest = after;
        }
        text.push_str(&format!("`{field}`{rest}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::with_fields;

    #[test]
    fn options_become_fields() {
        for (message, expected) in [
            ("--arg x=float32[1,: no bracket", "`args` x=float32[1,: no bracket"),
            (
                "invalid value '7' for '--lnc <1|2>': 7 is not in 1..=2",
                "invalid value '7' for `lnc`: 7 is not in 1..=2",
            ),
            (
                "the argument '--expect <NAME=VALUE>' cannot be used with '--no-numerics'",
                "the argument `expect` cannot be used with `no_numerics`",
            ),
            ("--set dma.foo: no timing parameter `dma.foo`", "`set` dma.foo: no timing parameter `dma.foo`"),
            ("--grid x and --beta1", "`grid` x and `beta1`"),
            ("raise the limit (--max-steps)", "raise the limit (`max_steps`)"),
            ("a -- b, x--set, and --json-lines", "a -- b, x--set, and --json-lines"),
        ] {
            assert_eq!(with_fields(message), expected);
        }
    }
}
