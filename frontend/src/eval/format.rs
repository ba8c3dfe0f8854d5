//! `str`, `repr` and format specifications.

use nki_diag::Span;

use super::Interp;
use super::compare::MAX_DEPTH;
use super::error::{EvalResult, Raise};
use super::foreign::Object;
use super::inheritance::Shown;
use super::native::CallArgs;
use super::value::*;
use super::view::View;
use crate::syntax::*;

impl Interp<'_> {
    /// `str(value)`
    pub(crate) fn str(&mut self, value: &Value) -> EvalResult<String> {
        if let Some(text) = self.dialect.text(self, value)? {
            return Ok(text);
        }
        match value {
            Value::Str(text) => Ok(text.to_string()),
            Value::Instance(instance) => {
                if let Some(method) = instance.class.lookup(sym::str_) {
                    let value = self.call_with(&method, value.clone(), CallArgs::none(instance.class.span))?;
                    return Ok(self.checked_text(&value, sym::str_, instance.class.span)?.to_string());
                }
                if let Some(args) = exception_args(instance) {
                    return self.exception_text(&args);
                }
                self.repr(value)
            }
            Value::EnumMember(member) => self.member_text(value, member),
            Value::Exception(exception) => match exception.1.as_slice() {
                // `str` of a KeyError shows the repr of the key.
                [key] if &*self.name(exception.0) == "KeyError" => self.repr(key),
                args => self.exception_text(args),
            },
            Value::Object(object) if let Some(text) = object.text() => Ok(text),
            _ => self.repr(value),
        }
    }

    fn exception_text(&mut self, args: &[Value]) -> EvalResult<String> {
        match args {
            [] => Ok(String::new()),
            [one] => self.str(one),
            many => self.repr(&Value::tuple(many.to_vec())),
        }
    }

    /// `repr(value)`
    pub(crate) fn repr(&mut self, value: &Value) -> EvalResult<String> {
        let mut out = String::new();
        self.write_repr(value, &mut out, 0)?;
        Ok(out)
    }

    /// `ascii(value)`: `repr` with all non-ASCII characters escaped.
    pub(crate) fn ascii(&mut self, value: &Value) -> EvalResult<String> {
        let mut out = String::new();
        for c in self.repr(value)?.chars() {
            match c as u32 {
                _ if c.is_ascii() => out.push(c),
                code @ ..0x100 => out += &format!("\\x{code:02x}"),
                code @ ..0x10000 => out += &format!("\\u{code:04x}"),
                code => out += &format!("\\U{code:08x}"),
            }
        }
        Ok(out)
    }

    fn write_items(&mut self, items: &[Value], out: &mut String, depth: u32) -> EvalResult<()> {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            self.write_repr(item, out, depth + 1)?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of value")]
    fn write_repr(&mut self, value: &Value, out: &mut String, depth: u32) -> EvalResult<()> {
        if depth > MAX_DEPTH || out.len() > 1 << 20 {
            out.push_str("...");
            return Ok(());
        }
        match value {
            Value::None => out.push_str("None"),
            Value::Bool(value) => out.push_str(if *value { "True" } else { "False" }),
            Value::Int(value) => out.push_str(&value.to_string()),
            Value::Float(value) => out.push_str(&float_repr(*value)),
            Value::Str(text) => quote(text, out),
            Value::Ellipsis => out.push_str("Ellipsis"),
            Value::NotImplemented => out.push_str("NotImplemented"),
            Value::Tuple(items) => {
                out.push('(');
                self.write_items(items, out, depth)?;
                out.push_str(if items.len() == 1 { ",)" } else { ")" });
            }
            Value::List(list) => {
                let items = list.items.borrow().clone();
                out.push('[');
                self.write_items(&items, out, depth)?;
                out.push(']');
            }
            Value::Dict(dict) => {
                let entries: Vec<(Value, Value)> =
                    dict.borrow().iter().map(|(_, k, v)| (k.clone(), v.clone())).collect();
                let factory = dict.borrow().factory.clone();
                if let Some(factory) = &factory {
                    out.push_str("defaultdict(");
                    self.write_repr(factory, out, depth + 1)?;
                    out.push_str(", ");
                }
                out.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    self.write_repr(key, out, depth + 1)?;
                    out.push_str(": ");
                    self.write_repr(value, out, depth + 1)?;
                }
                out.push_str(if factory.is_some() { "})" } else { "}" });
            }
            Value::Set(set) => {
                let (items, is_frozen) = (set.borrow().keys(), set.borrow().is_frozen);
                let (open, close) = match (items.is_empty(), is_frozen) {
                    (true, true) => ("frozenset(", ")"),
                    (true, false) => ("set(", ")"),
                    (false, true) => ("frozenset({", "})"),
                    (false, false) => ("{", "}"),
                };
                out.push_str(open);
                self.write_items(&items, out, depth)?;
                out.push_str(close);
            }
            Value::Range(range) => {
                let text = if range.step == 1 {
                    format!("range({}, {})", range.start, range.stop)
                } else {
                    format!("range({}, {}, {})", range.start, range.stop, range.step)
                };
                out.push_str(&text);
            }
            Value::Slice(slice) => {
                out.push_str("slice(");
                self.write_items(&[slice.start.clone(), slice.stop.clone(), slice.step.clone()], out, depth)?;
                out.push(')');
            }
            Value::Function(function) => out.push_str(&format!("<function {}>", self.name(function.def.name))),
            Value::Kernel(kernel) => {
                out.push_str("<kernel ");
                self.write_repr(&kernel.function, out, depth + 1)?;
                out.push('>');
            }
            Value::Native(native) => out.push_str(&format!("<function {}>", native.name)),
            Value::Class(class) => out.push_str(&format!("<class '{}'>", class.name)),
            Value::Type(kind) => out.push_str(&format!("<class '{}'>", kind.name())),
            Value::ExceptionClass(name) => out.push_str(&format!("<class '{}'>", self.name(*name))),
            Value::Exception(exception) => {
                out.push_str(&self.name(exception.0));
                out.push('(');
                self.write_items(&exception.1, out, depth)?;
                out.push(')');
            }
            Value::EnumMember(member) => {
                if let Some(method) = member.class.lookup(sym::repr) {
                    let text = self.call_with(&method, value.clone(), CallArgs::none(member.class.span))?;
                    out.push_str(&self.str(&text)?);
                    return Ok(());
                }
                let dot = if member.name == sym::empty { "" } else { "." };
                out.push_str(&format!("<{}{dot}{}: ", member.class.name, self.name(member.name)));
                self.write_repr(&member.value, out, depth + 1)?;
                out.push('>');
            }
            Value::Instance(instance) => {
                let shown = match Self::shown_by(&instance.class) {
                    Shown::Method(method) => {
                        let text = self.call_with(&method, value.clone(), CallArgs::none(instance.class.span))?;
                        out.push_str(&self.checked_text(&text, sym::repr, instance.class.span)?);
                        return Ok(());
                    }
                    Shown::Name => {
                        out.push_str(&format!("<{} object>", instance.class.name));
                        return Ok(());
                    }
                    Shown::Exception => {
                        let args = exception_args(instance).unwrap_or_default();
                        out.push_str(&instance.class.name);
                        out.push('(');
                        self.write_items(&args, out, depth)?;
                        out.push(')');
                        return Ok(());
                    }
                    Shown::Fields(names) => Some(names),
                    Shown::Attributes => None,
                };
                let attrs: Vec<(Symbol, Value)> = match shown {
                    None => instance.attrs.borrow().iter().map(|(n, v)| (n, v.clone())).collect(),
                    Some(names) => {
                        let attrs = instance.attrs.borrow();
                        names.into_iter().filter_map(|name| Some((name, attrs.get(name)?.clone()))).collect()
                    }
                };
                out.push_str(&instance.class.name);
                out.push('(');
                for (index, (name, value)) in attrs.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    out.push_str(&self.name(*name));
                    out.push('=');
                    self.write_repr(value, out, depth + 1)?;
                }
                out.push(')');
            }
            Value::Module(module) => out.push_str(&format!("<module '{}'>", module.name)),
            Value::NativeModule(module) => out.push_str(&format!("<module '{}'>", module.path)),
            Value::Host(host) => out.push_str(&format!("<host value {}>", host.path)),
            other if let Some(view) = other.downcast::<View>() => {
                let items = view.items();
                out.push_str(view.type_name());
                out.push_str("([");
                self.write_items(&items, out, depth)?;
                out.push_str("])");
            }
            Value::Object(object) => out.push_str(&object.repr()),
            other => out.push_str(&format!("<{}>", other.type_name())),
        }
        Ok(())
    }

    /// `format(value, spec)`
    pub(crate) fn format_value(&mut self, value: &Value, spec: &str, span: Span) -> EvalResult<String> {
        if let Some(method) = value.own_class().and_then(|class| class.lookup(sym::format)) {
            let text = self.call_with(&method, value.clone(), CallArgs::of([Value::str(spec)], span))?;
            return self.str(&text);
        }
        if let Value::EnumMember(member) = value
            && member.kind().shows_value
        {
            return self.format_value(&member.value, spec, span);
        }
        // NumPy formats its scalars like the equal Python numbers.
        if let Some(number) = value.number() {
            return self.format_value(number, spec, span);
        }
        if spec.is_empty() {
            return self.str(value);
        }
        self.check_formattable(value, spec, span)?;
        let bad = |what: String| Raise::at("value-error", what, span, format!("format specification `{spec}`"));
        let Some(parsed) = Spec::parse(spec) else {
            return Err(bad(format!("`{spec}` is not a format specification")));
        };
        if parsed.width > 10_000 || parsed.precision.is_some_and(|p| p > 10_000) {
            return Err(bad("the field is too wide".into()));
        }
        let number = match value {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => Some(value.clone()),
            _ => None,
        };
        match number {
            Some(Value::Float(x)) => parsed.float(x).ok_or_else(|| bad(format!("`{spec}` does not format a float"))),
            Some(number) => {
                let x = number.as_int().unwrap_or(0);
                if parsed.kind == Some('c') && u32::try_from(x).ok().and_then(char::from_u32).is_none() {
                    let message = format!("{x} is not a character code");
                    return Err(Raise::at("integer-overflow", message, span, format!("format specification `{spec}`")));
                }
                parsed.int(x).ok_or_else(|| bad(format!("`{spec}` does not format an int")))
            }
            None => {
                let text = self.str(value)?;
                if parsed.kind.is_some_and(|k| k != 's') {
                    return Err(bad(format!("`{spec}` does not format {}", value.a_type())));
                }
                let text: String = match parsed.precision {
                    Some(precision) => text.chars().take(precision).collect(),
                    None => text,
                };
                Ok(parsed.pad("", &text, '<'))
            }
        }
    }

    /// `text.format(...)`
    pub(crate) fn str_format(&mut self, text: &str, args: &CallArgs) -> EvalResult<String> {
        self.format_fields(text, args, &mut 0, false)
    }

    /// The part of `value` that the rest of a field names: `.name` and `[key]`, one after the other.
    fn field_value(&mut self, mut value: Value, path: &str, span: Span) -> EvalResult<Value> {
        let wrong =
            || Raise::at("value-error", format!("`{path}` of a field is neither .name nor [key]"), span, "here");
        let mut rest = path;
        while !rest.is_empty() {
            if let Some(keyed) = rest.strip_prefix('[') {
                let (key, after) = keyed.split_once(']').filter(|(key, _)| !key.is_empty()).ok_or_else(wrong)?;
                let key = key.parse::<u32>().map_or_else(|_| Value::str(key), |index| Value::Int(i64::from(index)));
                value = self.get_item(&value, &key, span)?;
                rest = after;
            } else {
                let named = rest.strip_prefix('.').ok_or_else(wrong)?;
                let (name, after) = named.split_at(named.find(['.', '[']).unwrap_or(named.len()));
                if name.is_empty() {
                    return Err(wrong());
                }
                let name = self.names.intern(name);
                value = self.get_attr(&value, name, span)?;
                rest = after;
            }
        }
        Ok(value)
    }

    /// `text` with its fields replaced. `next` is the index of the argument for the next unnumbered
    /// field.
    fn format_fields(&mut self, text: &str, args: &CallArgs, next: &mut usize, is_nested: bool) -> EvalResult<String> {
        let mut out = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '{' if chars.peek() == Some(&'{') => {
                    chars.next();
                    out.push('{');
                }
                '}' => {
                    if chars.next_if_eq(&'}').is_none() {
                        let message = "a `}` of the format closes nothing";
                        return Err(Raise::at("value-error", message, args.span, "here").help("write `}}` for a brace"));
                    }
                    out.push('}');
                }
                '{' => {
                    let (mut field, mut depth) = (String::new(), 0);
                    loop {
                        match chars.next() {
                            Some('}') if depth == 0 => break,
                            Some(c) => {
                                depth += i32::from(c == '{') - i32::from(c == '}');
                                field.push(c);
                            }
                            None => {
                                return Err(Raise::at(
                                    "value-error",
                                    "a `{` is not closed in the format",
                                    args.span,
                                    "here",
                                ));
                            }
                        }
                    }
                    let (path, spec) = field.split_once(':').unwrap_or((&field, ""));
                    let (path, conversion) = path.split_once('!').unwrap_or((path, ""));
                    let end = path.find(['.', '[']).unwrap_or(path.len());
                    let (head, tail) = path.split_at(end);
                    let value = if head.is_empty() {
                        *next += 1;
                        args.positional.get(*next - 1).cloned()
                    } else if let Ok(index) = head.parse::<usize>() {
                        args.positional.get(index).cloned()
                    } else {
                        let name = self.names.intern(head);
                        args.keyword.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone())
                    };
                    let Some(mut value) = value else {
                        let is_position = head.is_empty() || head.parse::<usize>().is_ok();
                        let slug = if is_position { "index-out-of-range" } else { "missing-key" };
                        let message = format!("the format refers to `{{{head}}}`, which is not given");
                        return Err(Raise::at(slug, message, args.span, "here"));
                    };
                    value = self.field_value(value, tail, args.span)?;
                    match conversion {
                        "" => {}
                        "r" => value = Value::str(self.repr(&value)?),
                        "s" => value = Value::str(self.str(&value)?),
                        "a" => value = Value::str(self.ascii(&value)?),
                        other => {
                            let message = format!("`!{other}` is not a conversion: `!r`, `!s` and `!a` are");
                            return Err(Raise::at("value-error", message, args.span, "here"));
                        }
                    }
                    // A specification may itself contain fields, `{:{width}}`, but only one level
                    // deep.
                    let spec = if spec.contains('{') && !is_nested {
                        self.format_fields(spec, args, next, true)?
                    } else {
                        spec.to_owned()
                    };
                    let text = self.format_value(&value, &spec, args.span)?;
                    self.charge_text(out.len().saturating_add(text.len()), args.span)?;
                    out.push_str(&text);
                }
                c => out.push(c),
            }
        }
        Ok(out)
    }
}

/// A parsed format specification.
#[derive(Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    /// Whether a negative zero is shown as zero.
    unsigned_zero: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    group: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(text: &str) -> Option<Self> {
        let chars: Vec<char> = text.chars().collect();
        let mut spec = Self::default();
        let mut at = 0;
        let is_align = |c: Option<&char>| c.is_some_and(|c| "<>^=".contains(*c));
        if is_align(chars.get(1)) {
            spec.fill = chars.first().copied();
            spec.align = chars.get(1).copied();
            at = 2;
        } else if is_align(chars.first()) {
            spec.align = chars.first().copied();
            at = 1;
        }
        if let Some(c) = chars.get(at).filter(|c| "+- ".contains(**c)) {
            spec.sign = Some(*c);
            at += 1;
        }
        if chars.get(at) == Some(&'z') {
            spec.unsigned_zero = true;
            at += 1;
        }
        if chars.get(at) == Some(&'#') {
            spec.alternate = true;
            at += 1;
        }
        if chars.get(at) == Some(&'0') {
            spec.zero = true;
            at += 1;
        }
        let number = |at: &mut usize| {
            let start = *at;
            while chars.get(*at).is_some_and(char::is_ascii_digit) {
                *at += 1;
            }
            if *at == start { Some(None) } else { chars[start..*at].iter().collect::<String>().parse().ok().map(Some) }
        };
        spec.width = number(&mut at)?.unwrap_or(0);
        if let Some(c) = chars.get(at).filter(|c| ",_".contains(**c)) {
            spec.group = Some(*c);
            at += 1;
        }
        if chars.get(at) == Some(&'.') {
            at += 1;
            spec.precision = Some(number(&mut at)??);
        }
        if let Some(c) = chars.get(at) {
            spec.kind = Some(*c);
            at += 1;
        }
        (at == chars.len()).then_some(spec)
    }

    fn pad(&self, sign: &str, body: &str, default_align: char) -> String {
        let len = sign.chars().count() + body.chars().count();
        let missing = self.width.saturating_sub(len);
        let fill = self.fill.unwrap_or(if self.zero { '0' } else { ' ' });
        let align = self.align.unwrap_or(if self.zero && default_align == '>' { '=' } else { default_align });
        let run = |n: usize| fill.to_string().repeat(n);
        match align {
            '<' => format!("{sign}{body}{}", run(missing)),
            '^' => format!("{}{sign}{body}{}", run(missing / 2), run(missing - missing / 2)),
            '=' => format!("{sign}{}{body}", run(missing)),
            _ => format!("{}{sign}{body}", run(missing)),
        }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            _ => "",
        }
    }

    /// The digits with group separators, followed by `rest`. Padding zeros are grouped, too.
    fn grouped(&self, sign: &str, digits: &str, rest: &str, every: usize) -> String {
        let Some(separator) = self.group else { return format!("{digits}{rest}") };
        let is_filled = self.fill.is_none_or(|c| c == '0') && self.zero && self.align.is_none_or(|c| c == '=');
        let width = if is_filled { self.width.saturating_sub(sign.len() + rest.len()) } else { 0 };
        let length = |count: usize| count + count.saturating_sub(1) / every;
        let mut count = digits.len();
        while length(count) < width {
            count += 1;
        }
        let mut out = String::new();
        for (index, c) in format!("{digits:0>count$}").chars().enumerate() {
            if index > 0 && (count - index).is_multiple_of(every) {
                out.push(separator);
            }
            out.push(c);
        }
        out + rest
    }

    fn int(&self, x: i64) -> Option<String> {
        let n = x.unsigned_abs();
        let sign = self.sign(x < 0);
        let prefixed = |prefix: &str, digits: String| {
            let sign = if self.alternate { format!("{sign}{prefix}") } else { sign.to_owned() };
            let body = self.grouped(&sign, &digits, "", 4);
            (sign, body)
        };
        let (sign, body) = match self.kind {
            None | Some('d' | 'n') => (sign.to_owned(), self.grouped(sign, &n.to_string(), "", 3)),
            Some('x' | 'X' | 'b' | 'o') if self.group == Some(',') => return None,
            Some('x') => prefixed("0x", format!("{n:x}")),
            Some('X') => prefixed("0X", format!("{n:X}")),
            Some('b') => prefixed("0b", format!("{n:b}")),
            Some('o') => prefixed("0o", format!("{n:o}")),
            Some('c') => (String::new(), char::from_u32(u32::try_from(x).ok()?)?.to_string()),
            Some(_) => return self.float(x as f64),
        };
        if self.precision.is_some() {
            return None;
        }
        Some(self.pad(&sign, &body, '>'))
    }

    fn float(&self, x: f64) -> Option<String> {
        let a = x.abs();
        let percent = if self.kind == Some('%') { "%" } else { "" };
        let precision = self.precision.unwrap_or(6);
        let mut body = match self.kind {
            Some(kind) if !"fFeEgGn%".contains(kind) => return None,
            Some('n') if self.group.is_some() => return None,
            _ if x.is_nan() => "nan".to_owned(),
            _ if x.is_infinite() => "inf".to_owned(),
            None if self.precision.is_none() => float_repr(a),
            Some('f' | 'F') => format!("{a:.precision$}"),
            Some('%') => format!("{:.precision$}", a * 100.0),
            Some('e' | 'E') => exponent(a, precision),
            _ => general(a, precision.max(1), self.kind.is_none(), self.alternate),
        };
        // The alternate form always has a point.
        if self.alternate && x.is_finite() && !body.contains('.') {
            body.insert(body.find('e').unwrap_or(body.len()), '.');
        }
        if matches!(self.kind, Some('E' | 'G' | 'F')) {
            body = body.to_uppercase();
        }
        let is_zero =
            !body.split(['e', 'E']).next().unwrap_or_default().contains(|c: char| c.is_ascii_digit() && c != '0');
        let is_negative = x.is_sign_negative() && !x.is_nan() && !(self.unsigned_zero && x.is_finite() && is_zero);
        let sign = self.sign(is_negative);
        body += percent;
        let (digits, rest) = body.split_at(body.find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len()));
        let body = if x.is_finite() { self.grouped(sign, digits, rest, 3) } else { body };
        Some(self.pad(sign, &body, '>'))
    }
}

fn exponent(a: f64, precision: usize) -> String {
    let text = format!("{a:.precision$e}");
    let (mantissa, exp) = text.split_once('e').unwrap_or((&text, "0"));
    let exp: i32 = exp.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if exp < 0 { '-' } else { '+' }, exp.abs())
}

/// The arguments of an instance of an exception class.
fn exception_args(instance: &Instance) -> Option<Vec<Value>> {
    let args = || instance.attrs.borrow().get(sym::args).and_then(Value::sequence).unwrap_or_default();
    instance.class.exception_base().map(|_| args())
}

/// A number with `precision` significant digits. Trailing zeros are removed unless `keep_zeros`
/// (the alternate form); `keep_point` writes an integer with `.0`.
pub(crate) fn general(a: f64, precision: usize, keep_point: bool, keep_zeros: bool) -> String {
    let text = format!("{a:.*e}", precision - 1);
    let exp: i32 = text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trim = |s: &str| {
        if s.contains('.') && !keep_zeros {
            s.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            s.to_owned()
        }
    };
    // Without a presentation type, a number that would end at its point uses the exponent form:
    // 2e+00 with precision 1.
    if exp < -4 || exp >= precision as i32 - i32::from(keep_point) {
        let text = exponent(a, precision - 1);
        let (mantissa, e) = text.split_once('e').unwrap_or((&text, "+00"));
        format!("{}e{e}", trim(mantissa))
    } else {
        let decimals = (precision as i32 - 1 - exp).max(0) as usize;
        let text = trim(&format!("{a:.decimals$}"));
        if keep_point && !text.contains('.') { format!("{text}.0") } else { text }
    }
}

/// Python's shortest repr of a float.
pub(crate) fn float_repr(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let shortest = format!("{x:e}");
    // With 17 digits, two texts may be equally short; Python chooses the nearer one, or the even
    // one.
    let text = if shortest.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count() < 17 {
        shortest
    } else {
        format!("{x:.16e}")
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x != 0.0 && !(-4..16).contains(&exponent) {
        return format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
    let decimals = mantissa.split_once('.').map_or(0, |(_, behind)| behind.len() as i32);
    format!("{x:.*}", (decimals - exponent).max(1) as usize)
}

fn quote(text: &str, out: &mut String) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            c if c == mark => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(mark);
}
