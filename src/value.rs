//! The `VALUE` of `--arg NAME=VALUE`: a `.npy` file, a generated tensor, a dtype or a Python literal.
//!
//! ```text
//! value     := tensor | dtype | literal
//! tensor    := PATH.npy [":" dtype]  |  dtype "[" [INT {"," INT}] "]" [":" fill] [":" SEED]
//!            | dtype "(" numbers ")"
//! numbers   := "[" [numbers | literal {"," numbers | literal}] "]"
//! fill      := "normal" | "uniform" | "zeros" | "ones" | "arange"
//! literal   := "None" | "True" | "False" | INT | FLOAT | STRING
//!            | "(" [value {"," value}] ")" | "[" ... "]" | "{" [STRING ":" value {"," ...}] "}"
//! ```

mod elements;

use std::fmt;
use std::path::{Path, PathBuf};

use nki_isa::dtype::DType;
use nki_isa::names::Named;
use nki_sim_core::generate::Fill;

/// The source of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TensorSpec {
    /// A file, and optionally the element type for reinterpreting its bytes.
    File { path: PathBuf, dtype: Option<DType> },
    /// Generated data.
    Generated { dtype: DType, shape: Vec<usize>, fill: Fill, seed: Option<u64> },
    /// Literal elements: `float32([[1, 2], [3, 4]])`.
    Written { dtype: DType, shape: Vec<usize>, data: Vec<u8> },
}

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Dtype(DType),
    Tensor(TensorSpec),
    Tuple(Vec<Value>),
    List(Vec<Value>),
    Dict(Vec<(String, Value)>),
}

impl Value {
    /// Calls `note` with the path of each array in the value.
    pub(crate) fn files(&self, note: &mut dyn FnMut(&Path)) {
        match self {
            Value::Tensor(TensorSpec::File { path, .. }) => note(path),
            Value::Tuple(items) | Value::List(items) => items.iter().for_each(|v| v.files(note)),
            Value::Dict(entries) => entries.iter().for_each(|(_, v)| v.files(note)),
            _ => {}
        }
    }
}

/// An error in a value, and its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValueError {
    /// Character of the value, from 1.
    pub(crate) at: usize,
    /// The error message.
    pub(crate) message: String,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at, self.message)
    }
}

/// Maximum nesting depth, so that a hostile value cannot exhaust the stack.
const MAX_DEPTH: usize = 64;

/// Parses a whole value.
pub(crate) fn parse(text: &str) -> Result<Value, ValueError> {
    // A top-level path may contain blanks and brackets.
    if let Some(spec) = file_spec(text.trim()) {
        return Ok(Value::Tensor(spec));
    }
    let mut p = Parser { text, at: 0, depth: 0 };
    let value = p.value()?;
    p.blank();
    if p.at < text.len() {
        return Err(p.error(format!("`{}` is left over after the value", &text[p.at..])));
    }
    Ok(value)
}

/// `PATH.npy` or `PATH.npy:DTYPE`.
fn file_spec(text: &str) -> Option<TensorSpec> {
    if text.starts_with(['(', '[', '{', '"', '\'']) {
        return None;
    }
    if text.ends_with(".npy") {
        return Some(TensorSpec::File { path: text.into(), dtype: None });
    }
    let (path, dtype) = text.rsplit_once(':')?;
    if !path.ends_with(".npy") {
        return None;
    }
    Some(TensorSpec::File { path: path.into(), dtype: Some(dtype_name(dtype)?) })
}

/// The dtype with this name, optionally with a module prefix (`nl.bfloat16`).
pub(crate) fn dtype_name(text: &str) -> Option<DType> {
    let name = text.rsplit('.').next()?;
    DType::from_name(name)
}

/// Says that `word` is not a dtype, which names are, and which one is probably meant.
pub(crate) fn no_dtype(word: &str) -> String {
    let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
    let near = match short_dtype(word) {
        Some(name) => format!("; write {name}"),
        None => crate::kernel::suggestion(word, names.iter().copied()),
    };
    format!("`{word}` is not a dtype ({}){near}", names.join(", "))
}

/// The full name of the dtype with a common short name.
fn short_dtype(name: &str) -> Option<&'static str> {
    match name {
        "bf16" => Some("bfloat16"),
        "f16" | "fp16" | "half" => Some("float16"),
        "f32" | "fp32" | "float" => Some("float32"),
        "fp8" | "f8" => Some("float8_e4m3"),
        "i32" | "int" => Some("int32"),
        _ => None,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, message: impl Into<String>) -> ValueError {
        ValueError { at: self.text[..self.at].chars().count() + 1, message: message.into() }
    }

    fn blank(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        if self.peek() == Some(c) {
            self.at += c.len_utf8();
            return true;
        }
        false
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn value(&mut self) -> Result<Value, ValueError> {
        self.blank();
        match self.peek() {
            None => Err(self.error("a value is missing")),
            Some('(') => self.sequence(')'),
            Some('[') => self.sequence(']'),
            Some('{') => self.dict(),
            Some('"' | '\'') => Ok(Value::Str(self.string()?)),
            Some('-' | '+' | '.' | '0'..='9') => self.number_or_path(),
            Some(_) => self.word(),
        }
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, ValueError>) -> Result<T, ValueError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("containers are nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let out = inner(self);
        self.depth -= 1;
        out
    }

    fn sequence(&mut self, close: char) -> Result<Value, ValueError> {
        self.nested(|p| {
            let open = p.at;
            p.at += 1;
            let mut items = Vec::new();
            let mut comma = false;
            loop {
                p.blank();
                if p.eat(close) {
                    break;
                }
                if p.peek().is_none() {
                    p.at = open;
                    return Err(p.error(format!("this bracket is never closed with `{close}`")));
                }
                if !items.is_empty() && !comma {
                    return Err(p.error(format!("`,` or `{close}` expected")));
                }
                items.push(p.value()?);
                p.blank();
                comma = p.eat(',');
            }
            Ok(if close == ']' {
                Value::List(items)
            } else if items.len() == 1 && !comma {
                // Parentheses around a single value without a comma do not make a tuple.
                items.remove(0)
            } else {
                Value::Tuple(items)
            })
        })
    }

    fn dict(&mut self) -> Result<Value, ValueError> {
        self.nested(|p| {
            let open = p.at;
            p.at += 1;
            let mut entries: Vec<(String, Value)> = Vec::new();
            let mut comma = true;
            loop {
                p.blank();
                if p.eat('}') {
                    return Ok(Value::Dict(entries));
                }
                match p.peek() {
                    None => {
                        p.at = open;
                        return Err(p.error("this bracket is never closed with `}`"));
                    }
                    Some(_) if !comma => return Err(p.error("`,` or `}` expected")),
                    Some('"' | '\'') => {}
                    Some(_) => return Err(p.error("a quoted string expected: dictionary keys are strings")),
                }
                let key = p.string()?;
                p.blank();
                if !p.eat(':') {
                    return Err(p.error(format!("`:` expected after the key '{key}'")));
                }
                let value = p.value()?;
                match entries.iter_mut().find(|(k, _)| *k == key) {
                    Some((_, old)) => *old = value,
                    None => entries.push((key, value)),
                }
                p.blank();
                comma = p.eat(',');
            }
        })
    }

    fn string(&mut self) -> Result<String, ValueError> {
        let open = self.at;
        let quote = self.peek().unwrap_or('"');
        self.at += 1;
        let mut out = String::new();
        loop {
            let Some(c) = self.peek() else {
                self.at = open;
                return Err(self.error("this string is never closed"));
            };
            self.at += c.len_utf8();
            if c == quote {
                return Ok(out);
            }
            if c != '\\' {
                out.push(c);
                continue;
            }
            let Some(escaped) = self.peek() else { continue };
            self.at += escaped.len_utf8();
            match escaped {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                '\\' | '\'' | '"' => out.push(escaped),
                other => {
                    return Err(self.error(format!("escape `\\{other}` is not known; \\n \\t \\\\ \\' \\\" are")));
                }
            }
        }
    }

    fn number_or_path(&mut self) -> Result<Value, ValueError> {
        let start = self.at;
        let token = self.take_while(|c| !c.is_whitespace() && !",)]}".contains(c));
        if let Some(spec) = file_spec(token) {
            return Ok(Value::Tensor(spec));
        }
        number(token).ok_or_else(|| {
            self.at = start;
            self.error(format!("`{token}` is not a number"))
        })
    }

    fn word(&mut self) -> Result<Value, ValueError> {
        let start = self.at;
        let word = self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '.');
        if self.peek() == Some('[')
            && let Some(dtype) = dtype_name(word)
        {
            return self.generated(dtype);
        }
        if self.peek() == Some('(')
            && let Some(dtype) = dtype_name(word)
        {
            let open = self.at;
            let elements = self.value()?;
            return elements::encoded(dtype, &elements).map(Value::Tensor).map_err(|message| {
                self.at = open;
                self.error(message)
            });
        }
        self.at = start;
        let token = self.take_while(|c| !c.is_whitespace() && !",)]}".contains(c));
        if let Some(spec) = file_spec(token) {
            return Ok(Value::Tensor(spec));
        }
        let value = match token {
            "None" => Value::None,
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "nan" | "inf" => Value::Float(token.parse().unwrap_or(f64::NAN)),
            _ => match dtype_name(token) {
                Some(dtype) => Value::Dtype(dtype),
                None => {
                    self.at = start;
                    return Err(self.error(self.unknown_word(token)));
                }
            },
        };
        Ok(value)
    }

    fn unknown_word(&self, token: &str) -> String {
        match token {
            "true" => return "`true` is not Python: write True".into(),
            "false" => return "`false` is not Python: write False".into(),
            "none" | "null" => return format!("`{token}` is not Python: write None"),
            _ => {}
        }
        if let Some((word, _)) = token.split_once('[') {
            return no_dtype(word);
        }
        format!(
            "`{token}` is not a value: expected FILE.npy, dtype[d0,d1,...], a dtype or a Python literal; \
             a string needs quotes of its own ('\"{token}\"' in a shell)"
        )
    }

    fn generated(&mut self, dtype: DType) -> Result<Value, ValueError> {
        let open = self.at;
        self.at += 1;
        let mut shape = Vec::new();
        loop {
            self.blank();
            if self.eat(']') {
                break;
            }
            let digits = self.take_while(|c| c.is_ascii_digit());
            match digits.parse::<u32>() {
                Ok(n) if n > 0 => shape.push(n as usize),
                Ok(_) => return Err(self.error("an extent of 0: a tensor needs at least one element")),
                Err(_) if self.peek().is_none() => {
                    self.at = open;
                    return Err(self.error("this bracket is never closed with `]`"));
                }
                Err(_) if !digits.is_empty() => {
                    return Err(self.error(format!("an extent of {digits}: the largest is {}", u32::MAX)));
                }
                Err(_) => return Err(self.error("an extent (a positive integer) expected")),
            }
            self.blank();
            if self.peek().is_none() {
                self.at = open;
                return Err(self.error("this bracket is never closed with `]`"));
            }
            if !self.eat(',') && self.peek() != Some(']') {
                return Err(self.error("`,` or `]` expected"));
            }
        }
        let bytes = shape.iter().try_fold(dtype.size(), |n: usize, &d| n.checked_mul(d));
        if bytes.is_none_or(|n| n > 1 << 40) {
            self.at = open;
            return Err(self.error("the tensor is larger than 1 TiB"));
        }
        let mut fill = Fill::Normal;
        let mut seed = None;
        let mut first = true;
        while self.eat(':') {
            let at = self.at;
            let word = self.take_while(|c| c != ':').trim();
            if first && let Some(f) = Fill::from_name(word) {
                fill = f;
            } else if seed.is_none()
                && let Ok(n) = word.parse()
            {
                seed = Some(n);
            } else {
                self.at = at;
                let expected =
                    if first { "normal, uniform, zeros, ones, arange or a seed" } else { "a seed (an integer)" };
                return Err(self.error(format!("`{word}`: expected {expected}")));
            }
            first = false;
        }
        Ok(Value::Tensor(TensorSpec::Generated { dtype, shape, fill, seed }))
    }
}

/// A Python number: decimal, hexadecimal, octal or binary integer, or a float.
fn number(token: &str) -> Option<Value> {
    let (negative, digits) = match token.as_bytes().first()? {
        b'-' => (true, &token[1..]),
        b'+' => (false, &token[1..]),
        _ => (false, token),
    };
    let plain = digits.replace('_', "");
    let radix = match plain.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => 10,
    };
    let body = if radix == 10 { plain.as_str() } else { &plain[2..] };
    if !body.is_empty() && body.chars().all(|c| c.is_digit(radix)) {
        let n = i128::from_str_radix(body, radix).ok()?;
        return i64::try_from(if negative { -n } else { n }).ok().map(Value::Int);
    }
    if plain == "inf" || plain == "nan" || plain.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        let x: f64 = plain.parse().ok()?;
        return Some(Value::Float(if negative { -x } else { x }));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> Value {
        parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn literals() {
        assert_eq!(ok("None"), Value::None);
        assert_eq!(ok("-12"), Value::Int(-12));
        assert_eq!(ok("0x10"), Value::Int(16));
        assert_eq!(ok("1_000"), Value::Int(1000));
        assert_eq!(ok("-1.5e-3"), Value::Float(-0.0015));
        assert_eq!(ok(".5"), Value::Float(0.5));
        assert_eq!(ok("-inf"), Value::Float(f64::NEG_INFINITY));
        assert_eq!(ok("'a\\'b'"), Value::Str("a'b".into()));
        assert_eq!(ok("(1)"), Value::Int(1));
        assert_eq!(ok("(1,)"), Value::Tuple(vec![Value::Int(1)]));
        assert_eq!(ok("()"), Value::Tuple(vec![]));
        assert_eq!(ok("nl.bfloat16"), Value::Dtype(DType::BF16));
        assert_eq!(
            ok("{'a': [1, (2.0, True)], \"b\": None,}"),
            Value::Dict(vec![
                (
                    "a".into(),
                    Value::List(vec![Value::Int(1), Value::Tuple(vec![Value::Float(2.0), Value::Bool(true)])])
                ),
                ("b".into(), Value::None),
            ])
        );
    }

    #[test]
    fn tensors() {
        let made = |dtype, shape: &[usize], fill, seed| {
            Value::Tensor(TensorSpec::Generated { dtype, shape: shape.to_vec(), fill, seed })
        };
        assert_eq!(ok("float32[128,512]"), made(DType::F32, &[128, 512], Fill::Normal, None));
        assert_eq!(ok("bfloat16[ 8 ]:uniform:7"), made(DType::BF16, &[8], Fill::Uniform, Some(7)));
        assert_eq!(ok("int32[2,2]:arange"), made(DType::I32, &[2, 2], Fill::Arange, None));
        assert_eq!(ok("int32[4]:3"), made(DType::I32, &[4], Fill::Normal, Some(3)));
        assert_eq!(
            ok("my dir/a(1).npy"),
            Value::Tensor(TensorSpec::File { path: "my dir/a(1).npy".into(), dtype: None })
        );
        assert_eq!(
            ok("a.npy:float8_e5m2"),
            Value::Tensor(TensorSpec::File { path: "a.npy".into(), dtype: Some(DType::F8E5M2) })
        );
        let Value::Tuple(items) = ok("(float32[2], ./b.npy, 3)") else { panic!() };
        assert_eq!(items.len(), 3);
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, at, want) in [
            ("", 1, "missing"),
            ("[1, 2", 1, "never closed"),
            ("[1 2]", 4, "`,` or `]`"),
            ("(1,,2)", 4, "not a value"),
            ("{1: 2}", 2, "keys are strings"),
            ("{'a' 2}", 6, "`:` expected"),
            ("'abc", 1, "never closed"),
            ("true", 1, "write True"),
            ("relu", 1, "needs quotes"),
            ("float31[2]", 1, "is not a dtype"),
            ("bf16[2]", 1, "; write bfloat16"),
            ("fp32[2]", 1, "; write float32"),
            ("float32[2", 8, "never closed"),
            ("float32[a]", 9, "extent"),
            ("float32[0]", 10, "extent of 0"),
            ("float32[2]:gauss", 12, "expected normal"),
            ("float32[2]:ones:x", 17, "seed"),
            ("1 2", 3, "left over"),
            ("12ab", 1, "not a number"),
            ("99999999999999999999", 1, "not a number"),
        ] {
            let e = parse(text).expect_err(text);
            assert!(e.message.contains(want), "{text}: {e}");
            assert_eq!(e.at, at, "{text}: {e}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
