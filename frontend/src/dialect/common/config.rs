//! Configuration of a kernel: `nki.compiler.CompileConfig`, `SpecializationConfig` and `AddressRotation`.
//!
//! Source: the page `nki.jit` and the page of `nki.compiler` of NKI 0.7. The compiler's options change no result here: they are kept, compared and
//! otherwise ignored.

use nki_diag::{Diagnostic, Span};

use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise, closest};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::value::{Key, Value};

/// The type of an option's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// True or False, this by default; None leaves the choice to the compiler.
    Flag(Option<bool>),
    /// A member of AddressRotation.
    Rotation,
}

/// A class of configurations.
#[derive(Debug)]
pub(crate) struct ConfigClass {
    name: &'static str,
    options: &'static [(&'static str, Takes)],
}

/// `CompileConfig`. The page gives the defaults of two options.
pub(crate) static COMPILE: ConfigClass = ConfigClass {
    name: "CompileConfig",
    options: &[
        ("address_rotation", Takes::Rotation),
        ("non_ssa_legalization", Takes::Flag(None)),
        ("dead_code_elim", Takes::Flag(None)),
        ("barrier_check", Takes::Flag(None)),
        ("prefetch_auto", Takes::Flag(Some(false))),
        ("nki_alloc_fallback", Takes::Flag(Some(true))),
    ],
};

const OVERRIDE: &str = "allow_nested_config_override";

/// `SpecializationConfig`
pub(crate) static SPECIALIZATION: ConfigClass =
    ConfigClass { name: "SpecializationConfig", options: &[(OVERRIDE, Takes::Flag(Some(false)))] };

/// A class of configurations as a value: calling it makes one.
#[derive(Debug)]
pub(crate) struct ConfigType(pub(crate) &'static ConfigClass);

/// A configuration.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    class: &'static ConfigClass,
    /// One for each option of the class.
    values: Vec<Value>,
}

/// The enum `AddressRotation`. Its members are not published, so any name is accepted.
#[derive(Debug)]
pub(crate) struct RotationEnum;

/// A member of `AddressRotation`.
#[derive(Debug, PartialEq, Eq)]
struct Rotation(String);

impl Takes {
    fn default(self) -> Value {
        match self {
            Takes::Flag(Some(flag)) => Value::Bool(flag),
            Takes::Flag(None) | Takes::Rotation => Value::None,
        }
    }

    fn accepts(self, value: &Value) -> bool {
        value.is_none()
            || match self {
                Takes::Flag(_) => matches!(value, Value::Bool(_)),
                Takes::Rotation => value.downcast::<Rotation>().is_some(),
            }
    }
}

impl Config {
    /// All options at their defaults.
    fn default_of(class: &'static ConfigClass) -> Self {
        Self { class, values: class.options.iter().map(|(_, takes)| takes.default()).collect() }
    }

    fn option(&self, name: &str) -> Option<&Value> {
        self.class.options.iter().position(|(option, _)| *option == name).map(|at| &self.values[at])
    }

    fn agrees(&self, other: &Config) -> bool {
        let same = |(a, b): (&Value, &Value)| match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (a, b) => {
                (a.is_none() && b.is_none())
                    || a.downcast::<Rotation>() == b.downcast::<Rotation>() && !a.is_none() && !b.is_none()
            }
        };
        std::ptr::eq(self.class, other.class) && self.values.iter().zip(&other.values).all(same)
    }
}

impl Object for ConfigType {
    fn type_name(&self) -> &'static str {
        "type"
    }

    fn repr(&self) -> String {
        format!("<class 'nki.compiler.{}'>", self.0.name)
    }

    fn hash_key(&self) -> Option<Key> {
        Some(Key::Name(self.0.name.to_owned()))
    }

    fn is_callable(&self) -> bool {
        true
    }

    fn call(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let class = self.0;
        let span = args.span;
        if args.positional.len() > class.options.len() {
            let message =
                format!("{}() takes {} options, {} given", class.name, class.options.len(), args.positional.len());
            return Err(Raise::at("arguments", message, span, "in this call"));
        }
        let mut config = Config::default_of(class);
        let by_position = args.positional.into_iter().enumerate();
        let mut given: Vec<(usize, Value)> = by_position.collect();
        for (symbol, value) in args.keyword {
            let name = interp.name(symbol);
            let Some(at) = class.options.iter().position(|(option, _)| **option == *name) else {
                let raise =
                    Raise::at("arguments", format!("{} has no option `{name}`", class.name), span, "in this call");
                return Err(match closest(&name, class.options.iter().map(|o| o.0)) {
                    Some(near) => raise.help(format!("did you mean `{near}`?")),
                    None => raise,
                });
            };
            given.push((at, value));
        }
        for (at, value) in given {
            let (option, takes) = class.options[at];
            if !takes.accepts(&value) {
                let wanted = if takes == Takes::Rotation { "a member of AddressRotation" } else { "a bool" };
                let message = format!("{}: {option} takes {wanted}, got {}", class.name, value.a_type());
                return Err(Raise::at("type-error", message, span, "in this call"));
            }
            config.values[at] = value;
        }
        Ok(Value::object(config))
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<ConfigType>().is_some_and(|c| std::ptr::eq(c.0, self.0))
    }

    fn has_instance(&self, value: &Value) -> bool {
        value.downcast::<Config>().is_some_and(|c| std::ptr::eq(c.class, self.0))
    }
}

impl Object for Config {
    fn type_name(&self) -> &'static str {
        self.class.name
    }

    fn attributes(&self) -> Vec<&'static str> {
        self.class.options.iter().map(|o| o.0).collect()
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        self.option(name).cloned()
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<Config>().is_some_and(|c| self.agrees(c))
    }
}

impl Object for RotationEnum {
    fn type_name(&self) -> &'static str {
        "AddressRotation"
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        (!name.starts_with('_')).then(|| Value::object(Rotation(name.to_owned())))
    }

    fn has_instance(&self, value: &Value) -> bool {
        value.downcast::<Rotation>().is_some()
    }
}

impl Object for Rotation {
    fn type_name(&self) -> &'static str {
        "AddressRotation"
    }

    fn repr(&self) -> String {
        format!("<AddressRotation.{}>", self.0)
    }

    fn hash_key(&self) -> Option<Key> {
        Some(Key::Name(format!("AddressRotation.{}", self.0)))
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        (name == "name").then(|| Value::str(&self.0))
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<Rotation>() == Some(self)
    }
}

/// The configuration in a keyword of `nki.jit`; None without.
pub(super) fn given(
    interp: &Interp<'_>,
    args: &CallArgs,
    keyword: &str,
    class: &'static ConfigClass,
) -> EvalResult<Value> {
    let value = args.keyword.iter().find(|(name, _)| &*interp.name(*name) == keyword).map(|(_, v)| v);
    match value {
        None | Some(Value::None) => Ok(Value::None),
        Some(value) if value.downcast::<Config>().is_some_and(|c| std::ptr::eq(c.class, class)) => Ok(value.clone()),
        Some(other) => {
            let message = format!("nki.jit: {keyword} takes a {}, got {}", class.name, other.a_type());
            Err(Raise::at("type-error", message, args.span, "in this call")
                .help(format!("from nki.compiler import {}", class.name)))
        }
    }
}

/// Checks that the `compile_config` of a nested kernel agrees with that of the outermost one. A kernel without a
/// configuration agrees with any (the manual does not specify this).
pub(crate) fn nested(interp: &mut Interp<'_>, inner: &Value, span: Span) -> EvalResult<()> {
    let Some(inner) = inner.downcast::<Config>() else { return Ok(()) };
    let fallback = Config::default_of(&COMPILE);
    let (compile, specialization) = interp.outer_config.clone();
    let outer = compile.downcast::<Config>().unwrap_or(&fallback);
    if inner.agrees(outer) {
        return Ok(());
    }
    let differs: Vec<&str> = COMPILE
        .options
        .iter()
        .filter(|(name, _)| {
            let one = |of: &Config| Config { class: &COMPILE, values: of.option(name).cloned().into_iter().collect() };
            !one(inner).agrees(&one(outer))
        })
        .map(|(name, _)| *name)
        .collect();
    let message = format!(
        "the compile_config of the kernel called here differs from that of the outermost kernel: {}",
        differs.join(", ")
    );
    let allowed = specialization.downcast::<Config>().and_then(|c| c.option(OVERRIDE).cloned());
    if matches!(allowed, Some(Value::Bool(true))) {
        let finding = Diagnostic::warning("kernel-config", message)
            .at(span, "the configuration of the outermost kernel is used")
            .help("give both the same configuration, or none to the inner one");
        interp.report_once(finding, span);
        return Ok(());
    }
    Err(Raise::at("kernel-config", message, span, "in this nested call").help(
        "give both the same configuration, or decorate the outer one with \
         specialization_config=SpecializationConfig(allow_nested_config_override=True)",
    ))
}
