//! Methods of strings, and `text % values`.

use std::rc::Rc;

use nki_diag::Span;

use super::Interp;
use super::dict::Key;
use super::error::{EvalResult, Raise};
use super::native::CallArgs;
use super::value::*;
use crate::syntax::*;

/// Maximum number of characters in a string that a method creates.
const LONGEST_TEXT: i64 = 50_000_000;

/// The words of a text, at most `most` of them: the last one (from the end, the first one) is the
/// remainder.
fn words(text: &str, most: usize, from_the_end: bool) -> Vec<&str> {
    let mut words = Vec::new();
    if from_the_end {
        let mut rest = text.trim_end();
        while !rest.is_empty() {
            let end = rest.char_indices().rev().find(|(_, c)| c.is_whitespace());
            let Some((at, c)) = end.filter(|_| words.len() + 1 < most) else {
                words.push(rest);
                break;
            };
            words.push(&rest[at + c.len_utf8()..]);
            rest = rest[..at].trim_end();
        }
        words.reverse();
        return words;
    }
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let Some(at) = rest.find(char::is_whitespace).filter(|_| words.len() + 1 < most) else {
            words.push(rest);
            break;
        };
        words.push(&rest[..at]);
        rest = rest[at..].trim_start();
    }
    words
}

/// Whether each word of a text starts with a capital letter and contains no others.
fn is_title(text: &str) -> bool {
    let (mut is_inside, mut found) = (false, false);
    for c in text.chars() {
        if c.is_uppercase() && is_inside || c.is_lowercase() && !is_inside {
            return false;
        }
        is_inside = c.is_uppercase() || c.is_lowercase();
        found |= is_inside;
    }
    found
}

/// Replaces each tab with spaces up to the next column that is a multiple of `size`.
fn without_tabs(text: &str, size: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size == 0 => {}
            '\t' => {
                let spaces = size - column % size;
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            _ => {
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
                out.push(c);
            }
        }
    }
    out
}

/// The lines of a text, with or without their line ends.
fn lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let ends = |c: char| {
        matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find(ends).unwrap_or(rest.len());
        let end = match &rest[at..] {
            pair if pair.starts_with("\r\n") => 2,
            other => other.chars().next().map_or(0, char::len_utf8),
        };
        out.push(&rest[..at + if keep_ends { end } else { 0 }]);
        rest = &rest[at + end..];
    }
    out
}

impl Interp<'_> {
    /// `text.translate(table)`, where the table is a dict from code points to code points, strings
    /// or None.
    fn translated(&mut self, text: &str, table: &Value, span: Span) -> EvalResult<String> {
        let Value::Dict(table) = table else {
            let message = format!("translate() needs a dict, not {}", table.a_type());
            return Err(Raise::at("type-error", message, span, "in this call"));
        };
        let mut out = String::new();
        for c in text.chars() {
            let entry = table.borrow().get(&Key::Int(c as i64)).cloned();
            match &entry {
                None => out.push(c),
                Some(Value::None) => {}
                Some(Value::Str(other)) => {
                    self.charge_text(out.len().saturating_add(other.len()), span)?;
                    out.push_str(other);
                }
                Some(other) => {
                    let number = self.as_index(other).and_then(|n| char::from_u32(u32::try_from(n).ok()?));
                    let Some(number) = number else {
                        let message = "translate() needs a table of character codes, strings and None";
                        return Err(Raise::at("type-error", message, span, "in this call"));
                    };
                    out.push(number);
                }
            }
        }
        Ok(out)
    }

    fn str_arg(&self, args: &CallArgs, index: usize, name: &str) -> EvalResult<Option<Rc<str>>> {
        match args.positional.get(index) {
            None | Some(Value::None) => Ok(None),
            Some(Value::Str(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.need_str(name, other, args.span)),
        }
    }

    fn need_str(&self, name: &str, got: &Value, span: Span) -> Box<Raise> {
        Raise::at("type-error", format!("{name}() needs a str, not {}", got.a_type()), span, "in this call")
    }

    /// The part of a text between the second and third arguments of a search, and the number of
    /// characters before it; `None` if there is no such part.
    fn bounded<'t>(&self, text: &'t str, name: &str, args: &CallArgs) -> EvalResult<(Option<&'t str>, i64)> {
        if args.positional.len() < 2 {
            return Ok((Some(text), 0));
        }
        let length = text.chars().count() as i64;
        let bound = |at: usize, default: i64| match args.positional.get(at) {
            None | Some(Value::None) => Ok(default),
            Some(given) => match self.as_index(given) {
                Some(i) if i < 0 => Ok((i + length).max(0)),
                Some(i) => Ok(i),
                None => Err(Raise::at(
                    "type-error",
                    format!("{name}() needs ints as bounds, not {}", given.a_type()),
                    args.span,
                    "in this call",
                )),
            },
        };
        let (start, end) = (bound(1, 0)?, bound(2, length)?.min(length));
        let byte = |at: i64| text.char_indices().nth(at as usize).map_or(text.len(), |(byte, _)| byte);
        Ok(((start <= end).then(|| &text[byte(start)..byte(end)]), start))
    }

    /// `text.name(...)`
    #[expect(clippy::too_many_lines, reason = "one arm for each method")]
    pub(super) fn str_method(&mut self, text: &Rc<str>, name: &str, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        // Most results are about as long as the text.
        self.charge_text(text.len(), span)?;
        let first = || match args.positional.first() {
            Some(other) => match other.plain() {
                Value::Str(text) => Ok(text.clone()),
                _ => Err(self.need_str(name, other, span)),
            },
            None => Err(Raise::at("arguments", format!("{name}() is missing its argument"), span, "in this call")),
        };
        let all = |test: fn(char) -> bool| Value::Bool(!text.is_empty() && text.chars().all(test));
        // The part to search: `text.find(sub, start, end)`.
        let (part, before) = match name {
            "find" | "rfind" | "index" | "count" | "startswith" | "endswith" => self.bounded(text, name, &args)?,
            _ => (Some(&**text), 0),
        };
        let position =
            |found: Option<(&str, usize)>| found.map_or(-1, |(part, at)| before + part[..at].chars().count() as i64);
        Ok(match name {
            "upper" => Value::str(text.to_uppercase()),
            "lower" => Value::str(text.to_lowercase()),
            "capitalize" => {
                let mut chars = text.chars();
                let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
                Value::str(first + &chars.as_str().to_lowercase())
            }
            "title" => {
                let mut out = String::new();
                let mut is_inside = false;
                for c in text.chars() {
                    if is_inside {
                        out.extend(c.to_lowercase())
                    } else {
                        out.extend(c.to_uppercase())
                    }
                    is_inside = c.is_alphabetic();
                }
                Value::str(out)
            }
            "swapcase" => {
                let mut out = String::new();
                for c in text.chars() {
                    if c.is_uppercase() { out.extend(c.to_lowercase()) } else { out.extend(c.to_uppercase()) }
                }
                Value::str(out)
            }
            "isascii" => Value::Bool(text.is_ascii()),
            "isdecimal" | "isdigit" | "isnumeric" => all(|c| c.is_ascii_digit()),
            "isalpha" => all(char::is_alphabetic),
            "isalnum" => all(char::is_alphanumeric),
            "istitle" => Value::Bool(is_title(text)),
            "isprintable" => Value::Bool(!text.chars().any(char::is_control)),
            "expandtabs" => {
                args.positional_only(self, name, 0, 1)?;
                let size = args.positional.first().map_or(Some(8), |size| self.as_index(size));
                let Some(size) = size.filter(|size| *size <= LONGEST_TEXT) else {
                    let message = "str.expandtabs() needs the size of a tab, an int";
                    return Err(Raise::at("type-error", message, span, "in this call"));
                };
                let size = usize::try_from(size).unwrap_or(0);
                self.charge_text(text.matches('\t').count().saturating_mul(size), span)?;
                Value::str(without_tabs(text, size))
            }
            "translate" => {
                args.positional_only(self, name, 1, 1)?;
                Value::str(self.translated(text, &args.positional[0], span)?)
            }
            "isspace" => all(char::is_whitespace),
            "isupper" => Value::Bool(text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)),
            "islower" => Value::Bool(text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase)),
            "isidentifier" => Value::Bool(
                text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
                    && text.chars().all(|c| c.is_alphanumeric() || c == '_'),
            ),
            "strip" | "lstrip" | "rstrip" => {
                let set = self.str_arg(&args, 0, name)?;
                let strip = |c: char| set.as_ref().map_or(c.is_whitespace(), |s| s.contains(c));
                Value::str(match name {
                    "strip" => text.trim_matches(strip),
                    "lstrip" => text.trim_start_matches(strip),
                    _ => text.trim_end_matches(strip),
                })
            }
            "startswith" | "endswith" => {
                let options = match args.positional.first() {
                    Some(Value::Tuple(items)) => items.to_vec(),
                    Some(other) => vec![other.clone()],
                    None => vec![],
                };
                let mut found = false;
                for option in &options {
                    let Value::Str(option) = option.plain() else { return Err(self.need_str(name, option, span)) };
                    found |= part.is_some_and(|part| match name {
                        "startswith" => part.starts_with(&**option),
                        _ => part.ends_with(&**option),
                    });
                }
                Value::Bool(found)
            }
            "removeprefix" => Value::str(text.strip_prefix(&*first()?).unwrap_or(text)),
            "removesuffix" => Value::str(text.strip_suffix(&*first()?).unwrap_or(text)),
            "find" | "rfind" | "index" => {
                let sought = first()?;
                let find = |part: &str| if name == "rfind" { part.rfind(&*sought) } else { part.find(&*sought) };
                let found = part.and_then(|part| Some((part, find(part)?)));
                if name == "index" && found.is_none() {
                    return Err(Raise::at("value-error", "the text is not found", span, "searched here"));
                }
                Value::Int(position(found))
            }
            "count" => {
                let sought = first()?;
                Value::Int(part.map_or(0, |part| part.matches(&*sought).count() as i64))
            }
            "replace" => {
                let from = first()?;
                let to = self.str_arg(&args, 1, name)?.unwrap_or_else(|| "".into());
                self.charge_text(text.matches(&*from).count().saturating_mul(to.len()), span)?;
                match args.positional.get(2).and_then(Value::as_int) {
                    Some(n) if n >= 0 => Value::str(text.replacen(&*from, &to, n as usize)),
                    _ => Value::str(text.replace(&*from, &to)),
                }
            }
            "split" | "rsplit" => {
                self.charge(text.len().saturating_mul(size_of::<Value>()), span)?;
                let max = args
                    .positional
                    .get(1)
                    .or_else(|| args.keyword.iter().find(|(n, _)| *n == sym::maxsplit).map(|(_, v)| v));
                let max = max.and_then(Value::as_int).filter(|n| *n >= 0).map_or(usize::MAX, |n| n as usize + 1);
                let separator = match args.keyword.iter().find(|(n, _)| *n == sym::sep).map(|(_, v)| v) {
                    Some(Value::Str(separator)) => Some(separator.clone()),
                    Some(Value::None) | None => self.str_arg(&args, 0, name)?,
                    Some(other) => return Err(self.need_str(name, other, span)),
                };
                let parts: Vec<Value> = match separator {
                    Some(separator) if separator.is_empty() => {
                        return Err(Raise::at("value-error", "empty separator", span, "in this call"));
                    }
                    Some(separator) if name == "split" => text.splitn(max, &*separator).map(Value::str).collect(),
                    Some(separator) => {
                        let mut parts: Vec<Value> = text.rsplitn(max, &*separator).map(Value::str).collect();
                        parts.reverse();
                        parts
                    }
                    None => words(text, max, name == "rsplit").into_iter().map(Value::str).collect(),
                };
                Value::list(parts)
            }
            "splitlines" => {
                let [keep] = args.bind(self, name, ["keepends"], 0)?;
                let keep = keep.map_or(Ok(false), |keep| self.truth(&keep, span))?;
                Value::list(lines(text, keep).into_iter().map(Value::str).collect())
            }
            "partition" | "rpartition" => {
                let separator = first()?;
                let parts =
                    if name == "partition" { text.split_once(&*separator) } else { text.rsplit_once(&*separator) };
                let (a, b, c) = match parts {
                    Some((a, c)) => (a, &*separator, c),
                    None if name == "partition" => (&**text, "", ""),
                    None => ("", "", &**text),
                };
                Value::tuple(vec![Value::str(a), Value::str(b), Value::str(c)])
            }
            "join" => {
                args.positional_only(self, name, 1, 1)?;
                let mut out = String::new();
                for (index, item) in self.iterate(&args.positional[0], span)?.iter().enumerate() {
                    let Value::Str(item) = &item.plain_value() else { return Err(self.need_str(name, item, span)) };
                    self.charge_text(text.len() + item.len(), span)?;
                    out.push_str(if index > 0 { text } else { "" });
                    out.push_str(item);
                }
                Value::str(out)
            }
            "format" => Value::str(self.str_format(text, &args)?),
            "zfill" | "ljust" | "rjust" | "center" => {
                let Some(width) = args.positional.first().and_then(|v| self.as_index(v)) else {
                    let message = format!("str.{name}() needs a width, an int");
                    return Err(Raise::at("type-error", message, args.span, "in this call"));
                };
                if width > LONGEST_TEXT {
                    let message = format!("str.{name}({width}) makes a string of more than {LONGEST_TEXT} characters");
                    return Err(Raise::at("value-error", message, args.span, "in this call"));
                }
                let missing = usize::try_from(width).unwrap_or(0).saturating_sub(text.chars().count());
                let fill = self
                    .str_arg(&args, 1, name)?
                    .unwrap_or_else(|| if name == "zfill" { "0".into() } else { " ".into() });
                self.charge_text(fill.len().saturating_mul(missing), span)?;
                self.charge_text(missing.saturating_mul(fill.len()), args.span)?;
                let run = |n: usize| fill.repeat(n);
                Value::str(match name {
                    "ljust" => format!("{text}{}", run(missing)),
                    "center" => {
                        // As in Python, an odd padding character goes to the left if the width is
                        // odd.
                        let left = missing / 2 + (missing & width as usize & 1);
                        format!("{}{text}{}", run(left), run(missing - left))
                    }
                    "zfill" if text.starts_with(['-', '+']) => format!("{}{}{}", &text[..1], run(missing), &text[1..]),
                    _ => format!("{}{text}", run(missing)),
                })
            }
            _ => return Err(Raise::at("no-attribute", format!("a str has no method `{name}`"), span, "here")),
        })
    }

    /// `text % values`
    pub(crate) fn percent(&mut self, text: &str, values: &Value, span: Span) -> EvalResult<String> {
        let is_dict = match values {
            Value::Instance(instance) => instance.class.builtin_base() == Some(BuiltinType::Dict),
            other => matches!(other, Value::Dict(_)),
        };
        let named = is_dict.then(|| values.clone());
        let mut by_name = false;
        let mut values = match values {
            Value::Tuple(items) => items.to_vec(),
            other => vec![other.clone()],
        }
        .into_iter();
        let mut out = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut spec = String::new();
            let mut keyed = None;
            if chars.peek() == Some(&'(') {
                let Some(dict) = &named else {
                    return Err(Raise::at("type-error", "format requires a mapping", span, "here"));
                };
                chars.next();
                let (mut key, mut depth) = (String::new(), 1);
                loop {
                    match chars.next() {
                        Some(')') if depth == 1 => break,
                        Some(c) => {
                            depth += i32::from(c == '(') - i32::from(c == ')');
                            key.push(c);
                        }
                        None => return Err(Raise::at("value-error", "incomplete format key", span, "here")),
                    }
                }
                keyed = Some(self.get_item(dict, &Value::str(key), span)?);
                by_name = true;
            }
            let kind = loop {
                match chars.next() {
                    Some('%') if spec.is_empty() => break '%',
                    Some(c) if c.is_ascii_digit() || ".+- #".contains(c) => spec.push(if c == '-' { '<' } else { c }),
                    Some(c) => break c,
                    None => return Err(Raise::at("value-error", "incomplete format", span, "ends with `%`")),
                }
            };
            if kind == '%' {
                out.push('%');
                continue;
            }
            let Some(value) = keyed.or_else(|| values.next()) else {
                return Err(Raise::at("type-error", "not enough arguments for format string", span, "here"));
            };
            let value = match (kind, value.number().unwrap_or(&value)) {
                ('s', _) => Value::str(self.str(&value)?),
                ('r', _) => Value::str(self.repr(&value)?),
                ('d' | 'i', Value::Float(_)) => {
                    self.call_type(BuiltinType::Int, CallArgs::of([value.clone()], span))?
                }
                (_, number) => number.clone(),
            };
            let kind = match (kind, &value) {
                ('i', _) => 'd',
                ('r', _) => 's',
                ('c', Value::Str(one)) if one.chars().count() == 1 => 's',
                (other, _) => other,
            };
            if kind == 's' && !spec.is_empty() && !spec.starts_with('<') {
                spec.insert(0, '>');
            }
            let text = self.format_value(&value, &format!("{spec}{kind}"), span)?;
            self.charge_text(out.len().saturating_add(text.len()), span)?;
            out.push_str(&text);
        }
        // Python accepts any dict, even for a text that uses none of its items.
        if !by_name && named.is_none() && values.next().is_some() {
            let message = "not all arguments converted during string formatting";
            return Err(Raise::at("type-error", message, span, "here"));
        }
        Ok(out)
    }
}
