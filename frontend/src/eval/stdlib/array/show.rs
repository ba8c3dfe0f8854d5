//! NumPy 2's `str` and `repr` of arrays and scalars, with its default print options.

use nki_isa::{DType, Imm};

use super::{Array, float, product, text as shape_text};
use crate::eval::format::general;
use crate::host::HostDtype;

/// Digits after the point for elements of arrays.
const PRECISION: usize = 8;
/// Number of elements above which an array is summarised.
const THRESHOLD: usize = 1000;
/// Number of elements that a summary shows at each end of an axis.
const EDGE: usize = 3;
/// Line width in characters.
const LINE: usize = 75;

/// `str` of an array or scalar.
pub(crate) fn text(array: &Array) -> String {
    match array.values.first() {
        Some(&value) if array.shape.is_empty() => number(array.dtype, value),
        _ => nested(array, " ", " ", LINE),
    }
}

/// `repr(array)`
pub(super) fn repr(array: &Array) -> String {
    const PREFIX: &str = "array(";
    let elements = product(&array.shape);
    let mut out = format!("{PREFIX}{}", nested(array, ", ", &" ".repeat(PREFIX.len() + 1), LINE - 1));
    let mut extras = Vec::new();
    if elements == 0 && array.shape != [0] || elements > THRESHOLD {
        extras.push(format!("shape={}", shape_text(&array.shape)));
    }
    let is_implied = matches!(array.dtype, HostDtype::I64 | HostDtype::F64 | HostDtype::Device(DType::Bool));
    if !is_implied || elements == 0 {
        let name = array.dtype.name();
        let quote = if name.contains('_') { "'" } else { "" };
        extras.push(format!("dtype={quote}{name}{quote}"));
    }
    if extras.is_empty() {
        return out + ")";
    }
    let extras = extras.join(", ") + ")";
    out.push(',');
    let last = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
    let space = if last + extras.len() + 1 > LINE { format!("\n{}", " ".repeat(PREFIX.len())) } else { " ".into() };
    out + &space + &extras
}

/// `str` of a scalar.
fn number(dtype: HostDtype, value: Imm) -> String {
    match value {
        Imm::Int(n) if dtype == HostDtype::Device(DType::Bool) => if n != 0 { "True" } else { "False" }.into(),
        Imm::Int(n) => n.to_string(),
        Imm::Float(x) => scalar(dtype, x),
    }
}

/// `str` of a floating-point scalar.
fn scalar(dtype: HostDtype, x: f64) -> String {
    if !x.is_finite() {
        return special(x).into();
    }
    if !dtype.is_of_numpy() {
        return format!("{}{}", sign(x), general(x.abs(), 6, false, false));
    }
    let most = match dtype {
        HostDtype::Device(DType::F16) => 1e3,
        HostDtype::Device(_) => 1e6,
        _ => 1e16,
    };
    if x == 0.0 || (1e-4..most).contains(&x.abs()) {
        let Parts { whole, fraction } = positional(dtype, x, usize::MAX);
        return format!("{whole}.{}", if fraction.is_empty() { "0" } else { &fraction });
    }
    let (Parts { whole, fraction }, exponent) = scientific(dtype, x, usize::MAX);
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{whole}{point}{fraction}e{exponent}")
}

fn special(x: f64) -> &'static str {
    match x {
        _ if x.is_nan() => "nan",
        _ if x < 0.0 => "-inf",
        _ => "inf",
    }
}

/// The digits before the point, with the sign, and after the point.
struct Parts {
    whole: String,
    fraction: String,
}

/// The shortest digits that identify the number within its type, and the exponent of the first
/// digit.
fn shortest(dtype: HostDtype, x: f64) -> (String, i32) {
    let same = |text: &String| text.parse().is_ok_and(|y| float(dtype.fit(Imm::Float(y))) == x);
    // If several texts are equally short, use the nearest one, or the even one of two.
    let nearest = |text: String| {
        let digits = text.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
        Some(format!("{x:.*e}", digits.saturating_sub(1))).filter(same).unwrap_or(text)
    };
    let text = match dtype {
        HostDtype::F64 => nearest(format!("{x:e}")),
        HostDtype::Device(DType::F32) => nearest(format!("{:e}", x as f32)),
        _ => {
            // Below a power of two, numbers are more closely spaced than above it: the digits above
            // may identify the number where the nearest do not.
            let both = |digits: usize| {
                let near = format!("{x:.digits$e}");
                let exponent: i32 = near.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
                let step = 10f64.powi(exponent - digits as i32).copysign(x);
                let above = format!("{:.digits$e}", near.parse().unwrap_or(x) + step);
                [near, above]
            };
            (0..PRECISION).flat_map(both).find(same).unwrap_or_else(|| format!("{x:e}"))
        }
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.replace(['.', '-'], ""), exponent.parse().unwrap_or(0))
}

fn sign(x: f64) -> &'static str {
    if x.is_sign_negative() { "-" } else { "" }
}

fn split(text: &str) -> Parts {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    Parts { whole: whole.into(), fraction: fraction.trim_end_matches('0').into() }
}

/// A number without an exponent, with at most `most` digits after the point.
fn positional(dtype: HostDtype, x: f64, most: usize) -> Parts {
    let (digits, exponent) = shortest(dtype, x);
    let whole = usize::try_from(exponent + 1).unwrap_or(0);
    let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
    if (zeros + digits.len()).saturating_sub(whole) > most {
        return split(&format!("{x:.most$}"));
    }
    let (before, behind) = digits.split_at(whole.min(digits.len()));
    let before = if before.is_empty() { "0" } else { before };
    let filling = "0".repeat(whole.saturating_sub(digits.len()));
    split(&format!("{}{before}{filling}.{}{behind}", sign(x), "0".repeat(zeros)))
}

/// A number and its exponent, which has a sign and at least two digits.
fn scientific(dtype: HostDtype, x: f64, most: usize) -> (Parts, String) {
    let (digits, exponent) = shortest(dtype, x);
    if digits.len() - 1 > most {
        return exact(x, most);
    }
    (split(&format!("{}{}.{}", sign(x), &digits[..1], &digits[1..])), format!("{exponent:+03}"))
}

/// The same for the exact value with this many digits after the point.
fn exact(x: f64, digits: usize) -> (Parts, String) {
    let text = format!("{x:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (split(mantissa), format!("{:+03}", exponent.parse().unwrap_or(0)))
}

/// A format in which all elements of an array have the same width.
enum Format {
    Bools,
    Ints {
        width: usize,
    },
    Positional {
        left: usize,
        right: usize,
    },
    Scientific {
        left: usize,
        digits: usize,
        exponent: usize,
    },
    /// Each element on its own.
    Plain,
}

impl Format {
    /// The format for these elements.
    fn of(dtype: HostDtype, values: &[Imm]) -> Format {
        if dtype == HostDtype::Device(DType::Bool) {
            return Format::Bools;
        }
        if !dtype.is_float() {
            let width = values.iter().map(|v| number(dtype, *v).len()).max().unwrap_or(0);
            return Format::Ints { width };
        }
        if !dtype.is_of_numpy() {
            return Format::Plain;
        }
        let finite: Vec<f64> = values.iter().map(|v| float(*v)).filter(|x| x.is_finite()).collect();
        let has_negative = values.iter().any(|v| float(*v) == f64::NEG_INFINITY);
        // The width that nan and inf need before the point.
        let special = |right: usize| match finite.len() == values.len() {
            true => 0,
            false => (3 + usize::from(has_negative)).saturating_sub(right + 1),
        };
        let longest = |parts: &[Parts], of: fn(&Parts) -> usize| parts.iter().map(of).max().unwrap_or(0);
        let (whole, fraction) = (|p: &Parts| p.whole.len(), |p: &Parts| p.fraction.len());
        if needs_exponent(dtype, &finite) {
            let (parts, exponents): (Vec<_>, Vec<_>) =
                finite.iter().map(|x| scientific(dtype, *x, PRECISION)).collect();
            let exponent = exponents.iter().map(String::len).max().unwrap_or(0) - 1;
            let digits = longest(&parts, fraction);
            let left = longest(&parts, whole).max(special(digits + exponent + 2));
            return Format::Scientific { left, digits, exponent };
        }
        let parts: Vec<Parts> = finite.iter().map(|x| positional(dtype, *x, PRECISION)).collect();
        let right = longest(&parts, fraction);
        Format::Positional { left: longest(&parts, whole).max(special(right)), right }
    }

    fn word(&self, dtype: HostDtype, value: Imm) -> String {
        let x = float(value);
        match *self {
            Format::Bools => format!("{:>5}", number(dtype, value)),
            Format::Ints { width } => format!("{:>width$}", number(dtype, value)),
            Format::Plain => number(dtype, value),
            Format::Positional { left, right } if !x.is_finite() => format!("{:>1$}", special(x), left + right + 1),
            Format::Positional { left, right } => {
                let Parts { whole, fraction } = positional(dtype, x, PRECISION);
                format!("{whole:>left$}.{fraction:<right$}")
            }
            Format::Scientific { left, digits, exponent } if !x.is_finite() => {
                format!("{:>1$}", special(x), left + digits + exponent + 3)
            }
            Format::Scientific { left, digits, exponent: width } => {
                let (mut parts, mut exponent) = scientific(dtype, x, PRECISION);
                if parts.fraction.len() < digits {
                    // Padding digits are those of the exact value.
                    (parts, exponent) = exact(x, digits);
                }
                let Parts { whole, fraction } = parts;
                let (sign, power) = exponent.split_at(1);
                format!("{whole:>left$}.{fraction:0<digits$}e{sign}{power:0>width$}")
            }
        }
    }
}

/// Whether NumPy writes these numbers with exponents: they are large, small, or far apart.
fn needs_exponent(dtype: HostDtype, finite: &[f64]) -> bool {
    let magnitudes = || finite.iter().map(|x| x.abs()).filter(|x| *x != 0.0);
    let Some(largest) = magnitudes().reduce(f64::max) else { return false };
    let smallest = magnitudes().fold(largest, f64::min);
    let most = match dtype {
        HostDtype::Device(DType::F16) => 1e3,
        HostDtype::Device(_) => 1e6,
        _ => 1e8,
    };
    let fit = |x: f64| float(dtype.fit(Imm::Float(x)));
    largest >= most || smallest < fit(0.0001) || fit(largest / smallest) > 1000.0
}

/// Prints an array in brackets.
struct Printer<'a> {
    array: &'a Array,
    format: Format,
    separator: &'a str,
    is_summary: bool,
}

/// The elements in brackets; lines after the first start with `indent`.
fn nested(array: &Array, separator: &str, indent: &str, width: usize) -> String {
    if let (true, Some(&value)) = (array.shape.is_empty(), array.values.first()) {
        let word = Format::of(array.dtype, &[value]).word(array.dtype, value);
        return word.trim_start().to_owned();
    }
    let elements = product(&array.shape);
    if elements == 0 {
        return "[]".into();
    }
    let mut printer = Printer { array, format: Format::Plain, separator, is_summary: elements > THRESHOLD };
    let mut shown = Vec::new();
    printer.collect(0, 0, &mut shown);
    printer.format = Format::of(array.dtype, &shown);
    printer.axis(0, 0, indent, width)
}

impl Printer<'_> {
    /// The positions along an axis that are shown; `None` stands for omitted ones.
    fn positions(&self, axis: usize) -> Vec<Option<usize>> {
        let n = self.array.shape[axis];
        if self.is_summary && n > 2 * EDGE {
            return (0..EDGE).map(Some).chain([None]).chain((n - EDGE..n).map(Some)).collect();
        }
        (0..n).map(Some).collect()
    }

    /// The start of the subarray at a position along an axis.
    fn start(&self, axis: usize, offset: usize, at: usize) -> usize {
        offset + at * product(&self.array.shape[axis + 1..])
    }

    /// The elements that are shown.
    fn collect(&self, axis: usize, offset: usize, out: &mut Vec<Imm>) {
        if axis == self.array.shape.len() {
            out.push(self.array.values[offset]);
            return;
        }
        for at in self.positions(axis).into_iter().flatten() {
            self.collect(axis + 1, self.start(axis, offset, at), out);
        }
    }

    /// Prints the subarray that starts at an element, along this axis and the axes after it.
    fn axis(&self, axis: usize, offset: usize, indent: &str, width: usize) -> String {
        let deeper = format!("{indent} ");
        let left = self.array.shape.len() - axis;
        let word = |at: Option<usize>| match at {
            None => "...".to_owned(),
            Some(at) if left == 1 => {
                self.format.word(self.array.dtype, self.array.values[self.start(axis, offset, at)])
            }
            Some(at) => self.axis(axis + 1, self.start(axis, offset, at), &deeper, width.saturating_sub(1)),
        };
        let positions = self.positions(axis);
        if left > 1 {
            let between = format!("{}{}{indent}", self.separator.trim_end(), "\n".repeat(left - 1));
            return format!("[{}]", positions.into_iter().map(word).collect::<Vec<_>>().join(&between));
        }
        // Break a line before the first element that would exceed the width.
        let width = width.saturating_sub(self.separator.trim_end().len().max(1));
        let (mut out, mut line) = (String::new(), indent.to_owned());
        for (i, word) in positions.into_iter().map(word).enumerate() {
            if i > 0 {
                line.push_str(self.separator);
            }
            if line.len() + word.len() > width && line.len() > indent.len() {
                out.push_str(line.trim_end());
                out.push('\n');
                line = indent.to_owned();
            }
            line.push_str(&word);
        }
        out.push_str(&line);
        format!("[{}]", &out[indent.len()..])
    }
}
