//! Messages of commands in the terms of jobs.

/// The options that the fields of a job become.
const OPTIONS: [&str; 25] = [
    "kernel",
    "arg",
    "target",
    "lnc",
    "beta1",
    "as-written",
    "disable-dge",
    "programs",
    "strict",
    "deny",
    "warn",
    "allow",
    "max-steps",
    "max-memory",
    "capacity",
    "set",
    "params",
    "schedule",
    "measure",
    "expect",
    "rtol",
    "atol",
    "no-numerics",
    "out",
    "grid",
];

/// A message of a command with the fields of a job in place of the options that they became.
///
/// `--arg x=foo: ...` becomes `` `args` x=foo: ... ``, and `'--lnc <1|2>'` becomes `` `lnc` ``.
pub(super) fn with_fields(message: &str) -> String {
    let mut parts = message.split("--");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c != '-' && !c.is_ascii_lowercase()).unwrap_or(part.len());
        let starts_word = text.is_empty() || text.ends_with([' ', '\'', '`', '(']);
        if !starts_word || !OPTIONS.contains(&&part[..end]) {
            text.push_str("--");
            text.push_str(part);
            continue;
        }
        let field = match &part[..end] {
            "arg" => "args".to_owned(),
            option => option.replace('-', "_"),
        };
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
    use super::{OPTIONS, with_fields};
    use crate::jobs::{Job, SweepJob, fields_of};

    #[test]
    fn each_option_is_a_field_and_most_fields_are_options() {
        let mut fields: Vec<String> = fields_of::<Job>().into_iter().chain(fields_of::<SweepJob>()).collect();
        fields.sort();
        fields.dedup();
        let mut named: Vec<String> = OPTIONS.iter().map(|option| option.replace('-', "_")).collect();
        named.iter_mut().filter(|name| *name == "arg").for_each(|name| *name = "args".into());
        named.extend(["file", "source", "id", "point", "max_seconds"].map(String::from));
        named.sort();
        assert_eq!(named, fields);
    }

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
            ("raise the limit (--max-steps)", "raise the limit (`max_steps`)"),
            ("a -- b, x--set, and --json-lines", "a -- b, x--set, and --json-lines"),
        ] {
            assert_eq!(with_fields(message), expected);
        }
    }
}
