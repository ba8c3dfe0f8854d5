//! The arguments of a call as written, and calls with other arguments in the same layout.

use super::{Outcome, Pass, by_hand};
use crate::syntax::{Argument, Expr, ExprKind};

/// An argument, with the white space and comments around it.
#[derive(Debug, Clone)]
pub(super) struct Given<'e> {
    pub(super) keyword: Option<String>,
    pub(super) value: &'e Expr,
    lead: String,
    tail: String,
}

/// An argument of the new call.
#[derive(Debug, Clone)]
pub(super) struct Written {
    lead: String,
    text: String,
    tail: String,
}

impl Written {
    /// An argument that replaces another one.
    pub(super) fn in_place_of(given: &Given<'_>, keyword: Option<&str>, value: &str) -> Self {
        let text = keyword.map_or(value.to_owned(), |k| format!("{k}={value}"));
        Self { lead: given.lead.clone(), text, tail: given.tail.clone() }
    }

    /// A further argument.
    pub(super) fn new(keyword: &str, value: &str) -> Self {
        Self { lead: " ".to_owned(), text: format!("{keyword}={value}"), tail: String::new() }
    }
}

/// A call's parts: the arguments, and the text before the closing parenthesis.
pub(super) struct Parts<'e> {
    pub(super) given: Vec<Given<'e>>,
    /// The text before the first argument.
    lead: String,
    /// A trailing comma with its white space.
    tail: String,
}

impl Parts<'_> {
    /// Moves the comment before a removed argument to the end of the call.
    pub(super) fn keep_comment(&mut self, taken: &Given<'_>) {
        if !taken.lead.contains('#') {
            return;
        }
        let comment = taken.lead.trim_end();
        self.tail = match self.tail.strip_prefix(',') {
            Some(rest) => format!(",{comment}{rest}"),
            None => format!("{comment}\n{}", self.tail),
        };
    }

    /// The call in its layout: the first argument is where the first one was.
    pub(super) fn call(&self, callee: &str, mut args: Vec<Written>) -> String {
        let first = self.lead.clone();
        let broken = first.contains('\n');
        let mut out = format!("{callee}(");
        for (at, arg) in args.iter_mut().enumerate() {
            if at == 0 {
                arg.lead.clone_from(&first);
            } else {
                out.push(',');
                if arg.lead.is_empty() {
                    " ".clone_into(&mut arg.lead);
                } else if broken && arg.lead == " " && at == 1 {
                    arg.lead.clone_from(&first);
                }
            }
            out += &format!("{}{}{}", arg.lead, arg.text, arg.tail);
        }
        out + &self.tail + ")"
    }
}

impl Pass<'_> {
    /// The arguments of a call.
    pub(super) fn arguments<'e>(&self, call: &'e Expr) -> Outcome<(&'e Expr, Parts<'e>)> {
        let ExprKind::Call(callee, args) = &call.kind else {
            return Err(by_hand(call.span, "a call", "write a call"));
        };
        let refuse = || by_hand(call.span, "`*` or `**` in a call", "write the arguments out");
        let mut values = Vec::new();
        for arg in args {
            values.push(match arg {
                Argument::Positional(e) => (None, e),
                Argument::Keyword(name, e) => (Some(self.kinds.names.name(*name).to_string()), e),
                Argument::Star(_) | Argument::DoubleStar(_) => return Err(refuse()),
            });
        }
        values.sort_by_key(|v| v.1.span.start);
        let open = self.text[callee.span.end as usize..].find('(').ok_or_else(refuse)? + callee.span.end as usize + 1;
        let close = call.span.end as usize - 1;
        let commas = commas(&self.text[open..close]);
        let mut ends: Vec<usize> = commas.iter().map(|c| open + c).collect();
        let mut tail = String::new();
        if ends.len() == values.len() && !ends.is_empty() {
            // A comma after the last argument.
            tail = self.text[ends[ends.len() - 1]..close].to_owned();
        } else if !values.is_empty() {
            ends.push(close);
        } else {
            tail = self.text[open..close].to_owned();
        }
        if ends.len() != values.len() {
            return Err(by_hand(call.span, "a generator as an argument", "write the arguments out"));
        }
        let mut from = open;
        let mut given = Vec::new();
        for ((keyword, value), end) in values.into_iter().zip(ends) {
            let segment = &self.text[from..end];
            let lead = leading(segment);
            let body = segment[lead..].trim_end().len() + lead;
            given.push(Given { keyword, value, lead: segment[..lead].to_owned(), tail: segment[body..].to_owned() });
            from = end + 1;
        }
        let lead = given.first().map_or(String::new(), |g: &Given<'_>| g.lead.clone());
        Ok((callee, Parts { given, lead, tail }))
    }
}

/// White space and comments at the start.
fn leading(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let blank = rest.len() - rest.trim_start().len();
        at += blank;
        if !text[at..].starts_with('#') {
            return at;
        }
        at += text[at..].find('\n').map_or(text.len() - at, |n| n);
    }
}

/// The commas outside brackets, strings and comments.
fn commas(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut depth = 0usize;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => found.push(at),
            b'#' => at += text[at..].find('\n').unwrap_or(text.len() - at),
            quote @ (b'"' | b'\'') => {
                let triple = bytes[at..].starts_with(&[quote; 3]);
                at += if triple { 3 } else { 1 };
                while at < bytes.len() {
                    if bytes[at] == b'\\' {
                        at += 2;
                        continue;
                    }
                    if bytes[at] == quote && (!triple || bytes[at..].starts_with(&[quote; 3])) {
                        at += if triple { 2 } else { 0 };
                        break;
                    }
                    at += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn commas_of_the_call_only() {
        let text = "a[1, 2], 'x,\\'y', # c, d\n \"\"\"t,\"u\"\"\", f(1, (2, 3))";
        let parts: Vec<&str> = super::commas(text).into_iter().map(|c| &text[c + 1..(c + 3).min(text.len())]).collect();
        assert_eq!(parts, [" '", " #", " f"]);
        assert_eq!(super::leading(" # a\n  # b\n x"), 12);
    }
}
