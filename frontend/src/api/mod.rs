//! What `nki`, `nki.language` and `nki.isa` provide: the hooks the evaluator calls.
//!
//! Values of the kinds [`Value::is_api`] names are opaque to the evaluator; all it does with them is call these hooks.

use nki_diag::{Diagnostic, Span};
use nki_isa::Program;

use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::Value;
use crate::syntax::{BinOp, CmpOp, Symbol, UnaryOp};
use crate::{Arg, Options};

/// A tensor handle.
#[derive(Debug)]
pub(crate) struct Tensor;

/// A register handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegisterRef(pub(crate) u32);

/// `nl.dynamic_range(...)`
#[derive(Debug)]
pub(crate) struct DynRange;

/// A name such as `nl.add`, usable as an operator argument (and callable).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NlOp(pub(crate) u32);

/// A member of an enum of the API, such as `nisa.vector_engine` or `nl.sbuf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApiEnum(pub(crate) u32);

/// The program being built.
pub(crate) struct State;

impl State {
    /// For a kernel that is to be compiled with these options.
    pub(crate) fn new(_options: &Options) -> Self {
        Self
    }
}

fn no(what: &str, span: Span) -> Box<Raise> {
    Raise::new(Diagnostic::error("unsupported-api", format!("{what} is not supported")).at(span, "here"))
}

/// `module.attr` of a native module that is not one of Python's (`nki`, `nki.isa`, `nki.language`, ...). `None` if
/// there is no such name. Asked once per name and module; submodules are found by the evaluator.
pub(crate) fn module_attr(_interp: &mut Interp<'_>, _module: &str, _attr: &str) -> Option<Value> {
    None
}

/// Names for "did you mean".
pub(crate) fn module_names(_module: &str) -> Vec<&'static str> {
    Vec::new()
}

/// Whether a dotted module is provided here (so that `import` finds it).
pub(crate) fn has_module(module: &str) -> bool {
    module == "nki" || module.starts_with("nki.")
}

/// Python's name of the type of an API value.
pub(crate) fn type_name(_value: &Value) -> &'static str {
    "tensor"
}

/// `repr(value)`.
pub(crate) fn repr(_interp: &Interp<'_>, value: &Value) -> String {
    format!("<{}>", type_name(value))
}

/// `isinstance(value, class)` where `class` is an API value or an API value's type name.
pub(crate) fn is_instance(_value: &Value, _class: &Value) -> bool {
    false
}

/// Equality of two values of which at least one is an API value, for `==` in containers and dict keys.
pub(crate) fn equals(_left: &Value, _right: &Value) -> bool {
    false
}

/// The name under which an enum, dtype or operator can be a dict key; `None` if it cannot.
pub(crate) fn key_name(_value: &Value) -> Option<String> {
    None
}

/// `base.name` where it is not called at once. For a method, return [`Value::BoundBuiltin`].
pub(crate) fn getattr(_interp: &mut Interp<'_>, base: &Value, _name: Symbol, span: Span) -> EvalResult<Value> {
    Err(no(&format!("an attribute of a {}", base.type_name()), span))
}

/// Whether the value has this attribute or method (`hasattr`).
pub(crate) fn has_attr(_interp: &mut Interp<'_>, _base: &Value, _name: Symbol) -> bool {
    false
}

/// `base.name(...)`.
pub(crate) fn call_method(_interp: &mut Interp<'_>, base: &Value, _name: Symbol, args: CallArgs) -> EvalResult<Value> {
    Err(no(&format!("a method of a {}", base.type_name()), args.span))
}

/// `callee(...)`.
pub(crate) fn call(_interp: &mut Interp<'_>, callee: &Value, args: CallArgs) -> EvalResult<Value> {
    Err(no(&format!("calling a {}", callee.type_name()), args.span))
}

/// `base[index]`.
pub(crate) fn getitem(_interp: &mut Interp<'_>, base: &Value, _index: &Value, span: Span) -> EvalResult<Value> {
    Err(no(&format!("indexing a {}", base.type_name()), span))
}

/// `base[index] = value`.
pub(crate) fn setitem(
    _interp: &mut Interp<'_>,
    base: &Value,
    _index: &Value,
    _value: &Value,
    span: Span,
) -> EvalResult<()> {
    Err(no(&format!("assigning to an item of a {}", base.type_name()), span))
}

/// `base.name = value`.
pub(crate) fn setattr(
    _interp: &mut Interp<'_>,
    base: &Value,
    _name: Symbol,
    _value: &Value,
    span: Span,
) -> EvalResult<()> {
    Err(no(&format!("assigning to an attribute of a {}", base.type_name()), span))
}

/// `left op right` where at least one side is an API value.
pub(crate) fn binary(
    _interp: &mut Interp<'_>,
    op: BinOp,
    _left: &Value,
    _right: &Value,
    span: Span,
) -> EvalResult<Value> {
    Err(no(&format!("`{}` on these values", op.text()), span))
}

/// `op value`; `not` is asked of [`truth`].
pub(crate) fn unary(_interp: &mut Interp<'_>, _op: UnaryOp, _value: &Value, span: Span) -> EvalResult<Value> {
    Err(no("this operator", span))
}

/// `left op right` where at least one side is an API value. `is` arrives as `==`; membership does not arrive.
pub(crate) fn compare(
    _interp: &mut Interp<'_>,
    op: CmpOp,
    _left: &Value,
    _right: &Value,
    span: Span,
) -> EvalResult<Value> {
    Err(no(&format!("`{}` on these values", op.text()), span))
}

/// Whether an API value counts as true at specialisation.
pub(crate) fn truth(_interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<bool> {
    Err(no(&format!("the truth of a {}", value.type_name()), span))
}

/// `len(value)`.
pub(crate) fn len(_interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<i64> {
    Err(no(&format!("the length of a {}", value.type_name()), span))
}

/// The items of an API value (static ranges arrive as plain ranges).
pub(crate) fn iterate(_interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<Vec<Value>> {
    Err(no(&format!("iterating over a {}", value.type_name()), span))
}

/// `for target in dynamic_range:`. `body` is run once with the loop variable; it binds the target and runs the block.
pub(crate) fn dynamic_for(
    _interp: &mut Interp<'_>,
    _range: &DynRange,
    span: Span,
    _body: &mut dyn FnMut(&mut Interp<'_>, Value) -> EvalResult<()>,
) -> EvalResult<()> {
    Err(no("a dynamic loop", span))
}

/// `while register:`. `body` is run once.
pub(crate) fn dynamic_while(
    _interp: &mut Interp<'_>,
    _register: RegisterRef,
    span: Span,
    _body: &mut dyn FnMut(&mut Interp<'_>) -> EvalResult<()>,
) -> EvalResult<()> {
    Err(no("a dynamic loop", span))
}

/// `if register:`. Both bodies are run once.
pub(crate) fn dynamic_if(
    _interp: &mut Interp<'_>,
    _register: RegisterRef,
    span: Span,
    _then: &mut dyn FnMut(&mut Interp<'_>) -> EvalResult<()>,
    _otherwise: &mut dyn FnMut(&mut Interp<'_>) -> EvalResult<()>,
) -> EvalResult<()> {
    Err(no("a dynamic branch", span))
}

/// `with context:` begins. Returns what `as` binds.
pub(crate) fn enter(_interp: &mut Interp<'_>, context: &Value, span: Span) -> EvalResult<Value> {
    Err(no(&format!("`with` on a {}", context.type_name()), span))
}

/// `with context:` ends.
pub(crate) fn exit(_interp: &mut Interp<'_>, _context: &Value, _span: Span) -> EvalResult<()> {
    Ok(())
}

/// The value of a kernel argument; called in the order of the parameters, for core 0 first.
/// For a tensor argument, makes an input tensor of that name (the same one for each core).
pub(crate) fn argument(_interp: &mut Interp<'_>, _name: &str, _arg: &Arg, span: Span) -> EvalResult<Value> {
    Err(no("a tensor argument", span))
}

/// The kernel named so is about to be run for this core (0, then 1 with `lnc == 2`).
pub(crate) fn begin_core(_interp: &mut Interp<'_>, _kernel: &str, _core: u32) {}

/// The kernel has been run for every core: `outputs` are core 0's returned tensors with their names. Builds the program.
pub(crate) fn finish(_interp: &mut Interp<'_>, _outputs: Vec<(String, Value)>, span: Span) -> EvalResult<Program> {
    Err(no("finishing a program", span))
}
