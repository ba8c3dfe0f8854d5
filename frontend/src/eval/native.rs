//! Functions implemented in Rust, and how they receive their arguments.

use nki_diag::{Diagnostic, Span};
use smallvec::SmallVec;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::value::Value;
use crate::syntax::Symbol;

/// A function implemented in Rust.
pub(crate) type NativeFn = fn(&mut Interp<'_>, CallArgs) -> EvalResult<Value>;

/// A named function implemented in Rust, with a number (such as an index into a table of schemas).
#[derive(Debug)]
pub(crate) struct Native {
    /// The full name, such as `nki.isa.dma_copy`.
    pub(crate) name: String,
    /// The implementation.
    pub(crate) func: NativeFn,
    /// Passed on as [`CallArgs::data`].
    pub(crate) data: u32,
}

/// The arguments of a call.
#[derive(Clone, Debug)]
pub(crate) struct CallArgs {
    /// Positional arguments, without the receiver.
    pub(crate) positional: SmallVec<[Value; 6]>,
    /// Keyword arguments in source order, without duplicates.
    pub(crate) keyword: SmallVec<[(Symbol, Value); 6]>,
    /// The whole call expression.
    pub(crate) span: Span,
    /// [`Native::data`] of the callee.
    pub(crate) data: u32,
}

impl CallArgs {
    /// No arguments.
    pub(crate) fn none(span: Span) -> Self {
        Self { positional: SmallVec::new(), keyword: SmallVec::new(), span, data: 0 }
    }

    /// Only positional arguments.
    pub(crate) fn of(values: impl IntoIterator<Item = Value>, span: Span) -> Self {
        Self { positional: values.into_iter().collect(), keyword: SmallVec::new(), span, data: 0 }
    }

    /// Whether an argument is an Enum member, an object of a class or a NumPy scalar, which may
    /// stand for a number, a string or a tuple.
    pub(crate) fn has_members(&self) -> bool {
        let is_member =
            |value: &Value| matches!(value, Value::EnumMember(_) | Value::Instance(_)) || value.number().is_some();
        self.positional.iter().any(is_member) || self.keyword.iter().any(|(_, value)| is_member(value))
    }

    /// The first argument that represents data on the device.
    pub(crate) fn device_data(&self) -> Option<&Value> {
        self.values().find(|value| matches!(value, Value::Object(object) if object.is_device_data()))
    }

    /// Replaces such arguments with their plain values, for functions that do not handle classes.
    pub(crate) fn take_plain_values(&mut self) {
        for value in self.positional.iter_mut().chain(self.keyword.iter_mut().map(|(_, value)| value)) {
            *value = value.plain_value();
        }
    }

    /// Replaces NumPy scalars with Python numbers.
    pub(crate) fn take_numbers(&mut self) {
        for value in self.positional.iter_mut().chain(self.keyword.iter_mut().map(|(_, value)| value)) {
            if let Some(number) = value.number().cloned() {
                *value = number;
            }
        }
    }

    /// Removes and returns a keyword argument.
    pub(crate) fn take_keyword(&mut self, name: Symbol) -> Option<Value> {
        let index = self.keyword.iter().position(|(n, _)| *n == name)?;
        Some(self.keyword.remove(index).1)
    }

    /// Rejects more than `n` positional arguments: the others are keyword-only.
    pub(crate) fn at_most_positional(&self, function: &str, n: usize) -> EvalResult<()> {
        let given = self.positional.len();
        if given <= n {
            return Ok(());
        }
        let message = format!("{function}() takes {}, {given} given", count(n, "positional argument"));
        Err(Raise::at("arguments", message, self.span, "in this call").help("give the others by name"))
    }

    /// Binds the arguments to the parameters `names`, the first `required` of which are mandatory.
    pub(crate) fn bind<const N: usize>(
        self,
        interp: &Interp<'_>,
        function: &str,
        names: [&str; N],
        required: usize,
    ) -> EvalResult<[Option<Value>; N]> {
        let mut out = [const { None }; N];
        let given = self.positional.len();
        if given > N {
            return Err(Raise::at(
                "arguments",
                format!(
                    "{function}() takes {} but {given} {} given",
                    count(N, "positional argument"),
                    if given == 1 { "was" } else { "were" }
                ),
                self.span,
                "too many arguments",
            ));
        }
        for (slot, value) in out.iter_mut().zip(self.positional) {
            *slot = Some(value);
        }
        for (symbol, value) in self.keyword {
            let name = interp.name(symbol);
            let Some(index) = names.iter().position(|n| *n == &*name) else {
                return Err(Raise::new(
                    Diagnostic::error("arguments", format!("{function}() has no parameter `{name}`"))
                        .at(self.span, "in this call")
                        .help(format!("it has: {}", names.join(", "))),
                ));
            };
            if out[index].is_some() {
                return Err(Raise::at(
                    "arguments",
                    format!("{function}() got `{name}` twice"),
                    self.span,
                    "by position and by name",
                ));
            }
            out[index] = Some(value);
        }
        if let Some(index) = out[..required].iter().position(Option::is_none) {
            return Err(Raise::at(
                "arguments",
                format!("{function}() is missing its argument `{}`", names[index]),
                self.span,
                "in this call",
            ));
        }
        Ok(out)
    }

    /// Checks that there are only positional arguments, between `min` and `max` of them.
    pub(crate) fn positional_only(
        &self,
        interp: &Interp<'_>,
        function: &str,
        min: usize,
        max: usize,
    ) -> EvalResult<()> {
        if let Some((name, _)) = self.keyword.first() {
            return Err(Raise::at(
                "arguments",
                format!("{function}() takes no keyword argument `{}`", interp.name(*name)),
                self.span,
                "in this call",
            ));
        }
        let given = self.positional.len();
        if given < min || given > max {
            let wanted = if min == max { count(min, "argument") } else { format!("{min} to {max} arguments") };
            return Err(Raise::at(
                "arguments",
                format!("{function}() takes {wanted}, {given} given"),
                self.span,
                "in this call",
            ));
        }
        Ok(())
    }
}

/// A number with a noun: `1 argument`, `2 arguments`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
