//! The parts of the standard library that are written in Python, in the folder `library`. All its
//! files form one module.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use nki_diag::Span;

use super::super::Interp;
use super::super::error::{EvalResult, Raise};
use super::super::generator::{Resumed, Sent};
use super::super::native::{CallArgs, NativeFn};
use super::super::value::*;
use crate::syntax::*;

const SOURCE: &str = concat!(
    include_str!("library/bases.py"),
    "\n\n",
    include_str!("library/collections.py"),
    "\n\n",
    include_str!("library/functions.py")
);

/// The file name under which its lines are reported.
const PATH: &str = "<nki-sim>/library.py";

/// The names that kernels import, with their modules.
const NAMES: &[(&str, &[&str])] = &[
    ("collections", &["deque", "Counter", "OrderedDict", "ChainMap"]),
    ("contextlib", &["ExitStack", "nullcontext", "suppress"]),
    ("dataclasses", &["asdict", "astuple"]),
    ("functools", &["cmp_to_key", "singledispatch"]),
    ("itertools", &["batched", "compress", "groupby"]),
    ("math", &["perm", "sumprod"]),
    ("operator", &["attrgetter", "itemgetter", "methodcaller"]),
    ("types", &["SimpleNamespace"]),
];

/// The classes that replace Python's built-in types as base classes.
const BASES: &[(BuiltinType, &str)] = &[
    (BuiltinType::List, "ListBase"),
    (BuiltinType::Dict, "DictBase"),
    (BuiltinType::Int, "IntBase"),
    (BuiltinType::Float, "FloatBase"),
    (BuiltinType::Str, "StrBase"),
    (BuiltinType::Tuple, "TupleBase"),
    (BuiltinType::Set, "SetBase"),
];

/// Functions that these files need but cannot implement.
const HELPERS: &[(&str, NativeFn)] = &[
    ("enter_context", enter_context),
    ("exit_context", exit_context),
    ("is_type", |interp, args| {
        args.positional_only(interp, "is_type", 1, 1)?;
        Ok(Value::Bool(is_type(&args.positional[0])))
    }),
    ("types_of_first_parameter", types_of_first_parameter),
];

/// Whether a value is a class, of Python or of the dialect.
fn is_type(value: &Value) -> bool {
    match value {
        Value::Object(object) => matches!(object.class(), Some(Value::Type(BuiltinType::Type))),
        value => matches!(value, Value::Class(_) | Value::Type(_) | Value::ExceptionClass(_)),
    }
}

/// Whether the files define this name of a module.
pub(super) fn has(module: &str, name: &str) -> bool {
    NAMES.iter().any(|(known, names)| *known == module && names.contains(&name))
}

impl Interp<'_> {
    /// A name defined in these files. They are run on first use.
    pub(super) fn library(&mut self, name: &str, span: Span) -> EvalResult<Value> {
        let path = PathBuf::from(PATH);
        let known = self.modules.iter().find(|(p, _)| *p == path).and_then(|(_, module)| module.clone());
        let module = match known {
            Some(module) => module,
            None => {
                let helpers = HELPERS.iter().map(|(name, function)| (*name, Value::native(*name, *function, 0)));
                self.load_text(&path, "nki_sim", SOURCE, &helpers.collect::<Vec<_>>())?
            }
        };
        let symbol = self.sym(name);
        let value = self.find_attr(&Value::Module(module), symbol, span)?;
        value.ok_or_else(|| Raise::at("no-attribute", format!("`{name}` is not in the library"), span, "here"))
    }

    /// The class that replaces a built-in type as a base class; `None` if the type cannot be
    /// derived from.
    pub(crate) fn class_for_base(&mut self, base: BuiltinType, span: Span) -> EvalResult<Option<Rc<Class>>> {
        let Some((_, name)) = BASES.iter().find(|(kind, _)| *kind == base) else { return Ok(None) };
        match self.library(name, span)? {
            Value::Class(ref class) => Ok(Some(class.clone())),
            _ => Ok(None),
        }
    }
}

impl Class {
    /// The built-in type from which it derives.
    pub(crate) fn builtin_base(&self) -> Option<BuiltinType> {
        let mro = self.mro.get()?;
        let of = |class: &Rc<Class>| BASES.iter().find(|(_, name)| *name == &*class.name && class.is_of_library());
        mro.iter().find_map(of).map(|(kind, _)| *kind)
    }

    /// The class in these files that represents this type, if it derives from it.
    fn library_base(&self, kind: BuiltinType) -> Option<Rc<Class>> {
        let (_, wanted) = BASES.iter().find(|(base, _)| *base == kind)?;
        self.mro.get()?.iter().find(|class| *class.name == **wanted && class.is_of_library()).cloned()
    }

    /// Whether this is one of the classes in these files.
    pub(crate) fn is_of_library(&self) -> bool {
        self.attrs.borrow().iter().any(|(_, value)| match value {
            Value::Function(function) => function.module.path == Path::new(PATH),
            _ => false,
        })
    }
}

impl Instance {
    /// The number, string or tuple that the object is, if its class derives from such a type.
    pub(crate) fn base_value(&self) -> Option<Value> {
        let value = self.attrs.borrow().get(sym::base_value).cloned()?;
        matches!(self.class.builtin_base(), Some(kind) if kind.is_immutable()).then_some(value)
    }

    /// The number that the object is, if its class derives from int.
    pub(crate) fn base_int(&self) -> Option<i64> {
        match self.base_value() {
            Some(Value::Int(value)) => Some(value),
            _ => None,
        }
    }

    /// The number that the object is, if its class derives from float.
    pub(crate) fn base_float(&self) -> Option<f64> {
        match self.base_value() {
            Some(Value::Float(value)) => Some(value),
            _ => None,
        }
    }
}

impl Value {
    /// This value as passed to functions that do not handle classes: see [`Value::plain`] and
    /// [`Instance::base_value`].
    pub(crate) fn plain_value(&self) -> Value {
        match self {
            Value::Instance(instance) if instance.class.kind.get() == ClassKind::NamedTuple => {
                let attrs = instance.attrs.borrow();
                let fields = instance.class.fields.borrow();
                Value::tuple(fields.iter().filter_map(|f| attrs.get(f.name).cloned()).collect::<Vec<_>>())
            }
            Value::Instance(instance) => instance.base_value().unwrap_or_else(|| self.clone()),
            other => other.number().unwrap_or_else(|| other.plain()).clone(),
        }
    }
}

/// `str.lower`: a method called with its receiver as an argument. The data is the symbol of the
/// method with, in the bits above, the index of the type in [`UNBOUND`].
pub(super) fn unbound(interp: &mut Interp<'_>, kind: BuiltinType, name: Symbol) -> EvalResult<Option<Value>> {
    let text = interp.name(name);
    if super::super::methods::exists_for(kind, &text) {
        let at = UNBOUND.iter().position(|known| *known == kind).unwrap_or_default() as u32;
        let function = Value::native(format!("{}.{text}", kind.name()), call_unbound, at << 24 | name.0);
        return Ok(Some(Value::Descriptor(Rc::new(Descriptor::Method(function)))));
    }
    // `dict.__setitem__(self, key, value)` in a class derived from dict.
    match interp.class_for_base(kind, Span::default())? {
        Some(class) if text.starts_with("__") => Ok(class.lookup(name)),
        _ => Ok(None),
    }
}

/// Types whose methods can be called with the receiver as an argument.
const UNBOUND: [BuiltinType; 7] = [
    BuiltinType::Str,
    BuiltinType::List,
    BuiltinType::Dict,
    BuiltinType::Set,
    BuiltinType::Tuple,
    BuiltinType::Int,
    BuiltinType::Float,
];

fn call_unbound(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let (kind, name) = (UNBOUND[(args.data >> 24) as usize % UNBOUND.len()], Symbol(args.data & 0x00ff_ffff));
    let text = interp.name(name);
    if args.positional.is_empty() {
        let message = format!("{}.{text}() needs an object: it is a method", kind.name());
        return Err(Raise::at("type-error", message, span, "in this call"));
    }
    let receiver = args.positional.remove(0);
    if let Value::Instance(instance) = &receiver
        && let Some(method) = instance.class.library_base(kind).and_then(|class| class.lookup(name))
    {
        return interp.call_with(&method, receiver, args);
    }
    let class = Value::Type(kind);
    if !interp.is_instance(receiver.plain(), &class, span)? {
        let message = format!("{}.{text}() needs a {}, not {}", kind.name(), kind.name(), receiver.a_type());
        return Err(Raise::at("type-error", message, span, "in this call"));
    }
    interp.call_builtin_method(receiver.plain(), name, args)
}

/// Enters a context and returns its value.
fn enter_context(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "enter_context", 1, 1)?;
    let span = args.span;
    match &args.positional[0] {
        Value::Iterator(context) if context.is_context() => interp.enter_generator(context, span),
        Value::Object(object) => object.clone().enter(interp, span),
        context @ Value::Instance(_) => interp.call_method(context, sym::enter, CallArgs::none(span)),
        other => Err(Raise::at("type-error", format!("{} is not a context", other.a_type()), span, "entered here")),
    }
}

/// Leaves a context. The arguments are the context, the class and the object of an exception (or
/// None), and a traceback. Returns whether the context suppresses the exception.
fn exit_context(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    args.positional_only(interp, "exit_context", 4, 4)?;
    let span = args.span;
    let [context, class, error, trace] = args.positional.as_slice() else { return Ok(Value::None) };
    match context {
        Value::Iterator(generator) if error.is_none() => {
            match interp.resume(generator, Sent::Value(Value::None), span)? {
                Resumed::Returned(_) => Ok(Value::Bool(false)),
                Resumed::Yielded(_) => Err(runtime_error(interp, "generator didn't stop", span)?),
            }
        }
        Value::Iterator(generator) => {
            let raise = interp.raise_value(Some(error.clone()), span)?;
            match interp.resume(generator, Sent::Raise(raise), span) {
                Ok(Resumed::Returned(_)) => Ok(Value::Bool(true)),
                Ok(Resumed::Yielded(_)) => Err(runtime_error(interp, "generator didn't stop after throw()", span)?),
                // The context re-raised the exception that it received.
                Err(raise) if raise.exception.as_ref().is_some_and(|passed| passed.is_same(error)) => {
                    Ok(Value::Bool(false))
                }
                Err(raise) => Err(raise),
            }
        }
        Value::Object(object) => {
            object.clone().exit(interp);
            Ok(Value::Bool(false))
        }
        context => {
            interp.call_method(context, sym::exit, CallArgs::of([class.clone(), error.clone(), trace.clone()], span))
        }
    }
}

fn runtime_error(interp: &mut Interp<'_>, text: &str, span: Span) -> EvalResult<Box<Raise>> {
    let class = interp.sym("RuntimeError");
    interp.raise_value(Some(Value::exception(class, vec![Value::str(text)])), span)
}

/// The classes in the annotation of a function's first parameter: two for `x: int | Tile`.
fn types_of_first_parameter(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let refuse = |text: String| {
        Err(Raise::at("unsupported-syntax", text, span, "in this call")
            .help("give register() the class: @f.register(int)"))
    };
    let Some(Value::Function(function)) = args.positional.first() else {
        return refuse("register() takes a class, or a function whose first parameter is annotated".into());
    };
    let Some(annotation) = function.def.params.first().and_then(|p| p.annotation) else {
        return refuse("register() of a function whose first parameter is not annotated".into());
    };
    let text = interp.source_text(annotation);
    let mut found = Vec::new();
    for path in text.trim_matches(['"', '\'']).split('|').map(str::trim) {
        let mut parts = path.split('.');
        let first = interp.sym(parts.next().unwrap_or(""));
        let module = Value::Module(function.module.clone());
        let mut value = match interp.find_attr(&module, first, span)? {
            Some(value) => Some(value),
            None => interp.builtin(path),
        };
        for part in parts {
            let name = interp.sym(part);
            value = match value {
                Some(outer) => interp.find_attr(&outer, name, span)?,
                None => None,
            };
        }
        match value {
            Some(Value::None) => found.push(Value::Type(BuiltinType::NoneType)),
            Some(value) if is_type(&value) => found.push(value),
            _ => return refuse(format!("register(): the annotation `{text}` is not a class of this module")),
        }
    }
    Ok(Value::tuple(found))
}
