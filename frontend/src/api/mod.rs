//! What `nki`, `nki.language` and `nki.isa` provide: the hooks the evaluator calls.
//!
//! Values of the kinds [`Value::is_api`] names are opaque to the evaluator; all it does with them is call these hooks.
//! What the names of a module are is said by the dialect ([`beta2`]); what tensors, registers and instructions do is
//! said by the other modules and would be the same in another dialect.

mod ap;
mod array;
pub(crate) mod beta2;
mod bind;
mod boundary;
mod builder;
mod compose;
mod dynamic;
pub(crate) mod errors;
mod indirect;
mod lower;
#[cfg(test)]
mod lower_tests;
mod random;
mod reshape;
mod state;
mod tensor;
mod trig;
mod values;
mod view;
#[cfg(test)]
mod view_tests;
mod vocab;

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use nki_isa::names::Named;

pub(crate) use self::array::{
    Array, MOST_ELEMENTS, choose as choose_array, concatenate as concatenate_arrays,
    device_dtype as array_device_dtype, dtype_of as array_dtype, host_array, join as join_arrays,
    method as array_method, of as array_of,
};
use self::beta2::region::Region;
use self::beta2::{ApiClass, EnumClass, Handle, NoReorder, NotYet, Removed, TileSize};
pub(crate) use self::boundary::{argument, begin_core, finish};
pub(crate) use self::dynamic::{DynRange, RegisterRef, dynamic_for, dynamic_if, dynamic_while};
use self::errors::{closest, span_of};
pub(crate) use self::state::State;
use self::values::int;
pub(crate) use self::view::Tensor;
pub(crate) use self::vocab::{ApiEnum, NlOp};
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::native::CallArgs;
use crate::eval::value::{Object, Value};
use crate::syntax::{BinOp, CmpOp, Symbol, UnaryOp};

/// `module.attr` of a native module that is not one of Python's (`nki`, `nki.isa`, `nki.language`, ...). `None` if
/// there is no such name. Asked once per name and module; submodules are found by the evaluator.
pub(crate) fn module_attr(_interp: &mut Interp<'_>, module: &str, attr: &str) -> Option<Value> {
    beta2::module_attr(module, attr)
}

/// What a name means that nothing defines: a memory, in kernels of the early releases.
pub(crate) fn undefined(interp: &mut Interp<'_>, name: &str, span: Span) -> Option<Value> {
    beta2::region::named(interp, name, span)
}

/// Names for "did you mean".
pub(crate) fn module_names(module: &str) -> Vec<&'static str> {
    beta2::module_names(module)
}

/// Whether a dotted module is provided here (so that `import` finds it).
pub(crate) fn has_module(module: &str) -> bool {
    beta2::has_module(module)
}

fn object<T: Object + 'static>(value: &Value) -> Option<&T> {
    match value {
        Value::Object(o) => o.as_any().downcast_ref(),
        _ => None,
    }
}

/// Python's name of the type of an API value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Tensor(_) => "tensor",
        Value::Register(_) => "register",
        Value::DynRange(_) => "dynamic_range",
        Value::Dtype(_) => "dtype",
        Value::NlOp(_) => "operator",
        Value::ApiEnum(e) => e.class().name,
        Value::Object(o) => o.type_name(),
        _ => "object",
    }
}

/// `repr(value)`.
pub(crate) fn repr(_interp: &Interp<'_>, value: &Value) -> String {
    match value {
        Value::Tensor(t) => tensor::repr(t),
        Value::Register(r) => format!("<register {}>", r.id.0),
        // Prints as in the guide: "adding tensors of type float16 and shape (128, 512)".
        Value::Dtype(d) => d.name().to_owned(),
        Value::NlOp(op) => format!("nl.{}", op.op().name),
        Value::ApiEnum(e) => format!("{}.{}", e.class().name, e.name()),
        other => match array::of(other) {
            Some(array) => format!("<array of {} with shape {:?}>", array.dtype, array.shape),
            None => format!("<{}>", type_name(other)),
        },
    }
}

/// `isinstance(value, class)` where `class` is an API value or an API value's type name.
pub(crate) fn is_instance(value: &Value, class: &Value) -> bool {
    if let Some(class) = object::<ApiClass>(class) {
        return match value {
            Value::Tensor(_) | Value::Register(_) | Value::Dtype(_) => type_name(value) == class.0,
            Value::Object(o) => o.as_any().is::<Handle>() && class.0 == "NkiInstruction",
            _ => false,
        };
    }
    match (value, object::<EnumClass>(class)) {
        (Value::ApiEnum(e), Some(class)) => e.vocabulary == class.0,
        _ => false,
    }
}

/// Equality of two values of which at least one is an API value, for `==` in containers and dict keys.
/// Tensors are compared by identity, dtypes and enum members also with their names (and older integer values).
pub(crate) fn equals(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Tensor(a), Value::Tensor(b)) => Rc::ptr_eq(a, b),
        (Value::Register(a), Value::Register(b)) => a.id == b.id,
        (Value::Dtype(a), Value::Dtype(b)) => a == b,
        (Value::Dtype(a), Value::Str(s)) | (Value::Str(s), Value::Dtype(a)) => Named::from_name(s) == Some(*a),
        (Value::Dtype(a), Value::Host(h)) | (Value::Host(h), Value::Dtype(a)) => {
            h.path.rsplit('.').next().and_then(Named::from_name) == Some(*a)
        }
        (Value::NlOp(a), Value::NlOp(b)) => a == b,
        // Kernels that ask whether a tensor is in HBM name either kind: the manual's for the inputs, nki-library's the other.
        (Value::ApiEnum(a), Value::ApiEnum(b)) => {
            a == b || a.vocabulary == vocab::MEMORY && b.vocabulary == vocab::MEMORY && a.is_hbm() && b.is_hbm()
        }
        (Value::ApiEnum(a), Value::Int(i)) | (Value::Int(i), Value::ApiEnum(a)) => {
            a.vocabulary != vocab::MEMORY && a.value() == *i
        }
        (Value::ApiEnum(a), Value::Str(s)) | (Value::Str(s), Value::ApiEnum(a)) => {
            a.vocabulary == vocab::MEMORY && ApiEnum::memory(s) == Some(*a)
        }
        (Value::Object(a), Value::Object(b)) => {
            Rc::ptr_eq(a, b)
                || match (object::<ApiClass>(left), object::<ApiClass>(right)) {
                    (Some(a), Some(b)) => a.0 == b.0,
                    _ => {
                        matches!((object::<EnumClass>(left), object::<EnumClass>(right)), (Some(a), Some(b)) if a.0 == b.0)
                    }
                }
        }
        _ => false,
    }
}

/// The name under which an enum, dtype or operator can be a dict key; `None` if it cannot.
pub(crate) fn key_name(value: &Value) -> Option<String> {
    match value {
        Value::Dtype(d) => Some(d.name().to_owned()),
        Value::NlOp(op) => Some(format!("nl.{}", op.op().name)),
        Value::ApiEnum(e) => Some(format!("{}.{}", e.class().name, e.name())),
        Value::Tensor(t) => Some(format!("tensor {:p}", Rc::as_ptr(t))),
        Value::Register(r) => Some(format!("register {}", r.id.0)),
        Value::Object(_) => object::<ApiClass>(value).map(|c| c.0.to_owned()),
        _ => None,
    }
}

/// Names of the attributes and methods of a value.
fn attributes(base: &Value) -> Vec<&'static str> {
    match base {
        Value::Tensor(_) => tensor::ATTRIBUTES.iter().chain(tensor::METHODS).copied().collect(),
        Value::Dtype(_) => vec!["name", "itemsize"],
        Value::ApiEnum(_) => vec!["name", "value"],
        Value::NlOp(_) => vec!["__name__"],
        _ if object::<TileSize>(base).is_some() => beta2::TILE_SIZES.to_vec(),
        _ if object::<Handle>(base).is_some() => vec!["depends_on"],
        _ if object::<Region>(base).is_some() => {
            beta2::region::ATTRIBUTES.iter().chain(beta2::region::METHODS).copied().collect()
        }
        _ if array::of(base).is_some() => array::ATTRIBUTES.iter().chain(array::METHODS).copied().collect(),
        _ => match object::<EnumClass>(base) {
            Some(class) => vocab::VOCABULARIES[usize::from(class.0)].members.iter().map(|m| m.0).collect(),
            None => Vec::new(),
        },
    }
}

fn no_attribute(_interp: &Interp<'_>, base: &Value, name: &str, span: Span) -> Box<Raise> {
    let mut diagnostic =
        Diagnostic::error("unknown-attribute", format!("{} has no attribute `{name}`", base.a_type())).at(span, "here");
    let names = attributes(base);
    if let Some(near) = closest(name, names.iter().copied()) {
        diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
    } else if !names.is_empty() {
        diagnostic = diagnostic.help(format!("it has: {}", names.join(", ")));
    }
    if let Value::Register(_) = base {
        diagnostic = diagnostic.help(dynamic::REGISTER_HELP);
    }
    Raise::new(diagnostic)
}

fn is_method(base: &Value, name: &str) -> bool {
    match base {
        Value::Tensor(_) => tensor::METHODS.contains(&name),
        _ if array::of(base).is_some() => array::METHODS.contains(&name),
        _ if object::<Region>(base).is_some() => beta2::region::METHODS.contains(&name),
        _ => object::<Handle>(base).is_some() && name == "depends_on",
    }
}

fn attribute(interp: &Interp<'_>, base: &Value, name: &str) -> Option<Value> {
    match base {
        Value::Tensor(t) => tensor::attribute(t, name),
        Value::Dtype(d) => match name {
            "name" | "__name__" => Some(Value::str(d.name())),
            "itemsize" => Some(Value::Int(d.size() as i64)),
            _ => None,
        },
        Value::ApiEnum(e) => match name {
            "name" => Some(Value::str(e.name())),
            "value" if e.vocabulary == vocab::MEMORY => Some(Value::str(e.name())),
            "value" => Some(Value::Int(e.value())),
            _ => None,
        },
        Value::NlOp(op) => (name == "__name__").then(|| Value::str(op.op().name)),
        _ if array::of(base).is_some() => array::of(base).and_then(|a| array::attribute(a, name)),
        _ if object::<TileSize>(base).is_some() => beta2::tile_size(interp, name),
        _ if object::<Region>(base).is_some() => object::<Region>(base).and_then(|r| r.attribute(name)),
        _ => {
            let class = object::<EnumClass>(base)?;
            let name = if class.0 == vocab::MEMORY && name == "hbm" { "private_hbm" } else { name };
            ApiEnum::find(class.0, name).map(Value::ApiEnum)
        }
    }
}

/// `base.name` where it is not called at once. For a method, return [`Value::BoundBuiltin`].
pub(crate) fn getattr(interp: &mut Interp<'_>, base: &Value, name: Symbol, span: Span) -> EvalResult<Value> {
    let text = interp.name(name);
    if let Some(value) = attribute(interp, base, &text) {
        return Ok(value);
    }
    if is_method(base, &text) {
        return Ok(Value::BoundBuiltin(Rc::new((base.clone(), name))));
    }
    if let Some(removed) = object::<Removed>(base) {
        return Err(beta2::removed_use(interp, removed, span));
    }
    Err(no_attribute(interp, base, &text, span))
}

/// Whether the value has this attribute or method (`hasattr`).
pub(crate) fn has_attr(interp: &mut Interp<'_>, base: &Value, name: Symbol) -> bool {
    let text = interp.name(name);
    is_method(base, &text) || attribute(interp, base, &text).is_some()
}

/// `base.name(...)`.
pub(crate) fn call_method(interp: &mut Interp<'_>, base: &Value, name: Symbol, args: CallArgs) -> EvalResult<Value> {
    let text = interp.name(name);
    if let Value::Tensor(t) = base
        && is_method(base, &text)
    {
        return tensor::method(interp, t, &text, args);
    }
    if let Some(array) = array::of(base)
        && is_method(base, &text)
    {
        return array::method(interp, array, &text, args);
    }
    if let Some(region) = object::<Region>(base)
        && is_method(base, &text)
    {
        return region.method(interp, &text, args);
    }
    let span = args.span;
    if let Some(Handle(later)) = object::<Handle>(base)
        && &*text == "depends_on"
    {
        if let Some((name, _)) = args.keyword.first() {
            let message = format!("depends_on takes no keyword argument `{}`", interp.name(*name));
            return Err(Raise::at("arguments", message, span, "in this call"));
        }
        // One call may list several, also in a list.
        let listed = args.positional.iter().flat_map(|v| v.sequence().unwrap_or_else(|| vec![v.clone()]));
        for value in listed.collect::<Vec<_>>() {
            let Some(Handle(earlier)) = object::<Handle>(&value) else {
                return Err(values::wrong("depends_on", "what instructions return", &value, span));
            };
            interp.api.builder.order(*later, *earlier).map_err(|v| errors::raise("", &v, span, &[]))?;
        }
        return Ok(base.clone());
    }
    let callee = getattr(interp, base, name, span)?;
    interp.call(&callee, args)
}

/// `callee(...)`.
pub(crate) fn call(interp: &mut Interp<'_>, callee: &Value, args: CallArgs) -> EvalResult<Value> {
    match callee {
        Value::NlOp(op) => beta2::call_op(interp, *op, args),
        Value::Dtype(d) => {
            // nl.int32(3): a conversion of a number, for what it is worth at specialisation.
            let span = args.span;
            let [x] = args.bind(interp, d.name(), ["x"], 1)?;
            let x = x.unwrap_or(Value::None);
            match values::number(&x, d.name(), span)? {
                n if d.is_int() => Ok(Value::Int(n.as_i64().unwrap_or(n.as_f32() as i64))),
                nki_isa::Imm::Int(i) => Ok(Value::Float(i as f64)),
                nki_isa::Imm::Float(x) => Ok(Value::Float(x)),
            }
        }
        _ => {
            if let Some(removed) = object::<Removed>(callee) {
                return Err(beta2::removed_use(interp, removed, args.span));
            }
            if let Some(function) = object::<NotYet>(callee) {
                let message = format!("{} is not supported yet", function.0);
                return Err(Raise::at("unsupported-api", message, args.span, "in this call"));
            }
            if let Some(class) = object::<EnumClass>(callee) {
                // nisa.engine(1)
                let span = args.span;
                let [x] = args.bind(interp, "enum", ["value"], 1)?;
                let value = int(&x.unwrap_or(Value::None), "an enum", span)?;
                let vocabulary = &vocab::VOCABULARIES[usize::from(class.0)];
                if let Some(member) = vocabulary.members.iter().position(|m| m.1 == value) {
                    return Ok(Value::ApiEnum(ApiEnum { vocabulary: class.0, member: member as u8 }));
                }
                return Err(Raise::at("operand-kind", format!("{value} is no {}", vocabulary.name), span, "here"));
            }
            Err(Raise::at("not-callable", format!("{} cannot be called", callee.a_type()), args.span, "in this call"))
        }
    }
}

/// `base[index]`.
pub(crate) fn getitem(interp: &mut Interp<'_>, base: &Value, index: &Value, span: Span) -> EvalResult<Value> {
    match base {
        Value::Tensor(t) => tensor::getitem(interp, t, index, span),
        Value::Object(_) => {
            if let Some(array) = array::of(base) {
                return array::getitem(interp, array, index, span);
            }
            if let Some(removed) = object::<Removed>(base) {
                return Err(beta2::removed_use(interp, removed, span));
            }
            if let Some(region) = object::<Region>(base) {
                return region.getitem(index, span);
            }
            if object::<ApiClass>(base).is_some() {
                // nt.tensor[128, 512] in an annotation.
                return Ok(base.clone());
            }
            if let (Some(class), Value::Str(name)) = (object::<EnumClass>(base), index)
                && let Some(member) = ApiEnum::find(class.0, name)
            {
                return Ok(Value::ApiEnum(member));
            }
            Err(Raise::at("not-indexable", format!("{} cannot be indexed", base.a_type()), span, "here"))
        }
        Value::Register(_) => {
            Err(Raise::at("register-arithmetic", "a register cannot be indexed", span, "here")
                .help(dynamic::REGISTER_HELP))
        }
        other => Err(Raise::at("not-indexable", format!("{} cannot be indexed", other.a_type()), span, "here")),
    }
}

/// `base[index] = value`: a tensor is copied there, as in the migration guide's kernels (`NkiTensor.__setitem__`).
pub(crate) fn setitem(
    interp: &mut Interp<'_>,
    base: &Value,
    index: &Value,
    value: &Value,
    span: Span,
) -> EvalResult<()> {
    let Value::Tensor(t) = base else {
        if array::of(base).is_some() {
            return Err(Raise::at("unsupported-operator", "assignment to an element of an array", span, "here")
                .help("arrays in a kernel are constants: make it in one piece, np.where or a list"));
        }
        return Err(Raise::at("not-indexable", format!("items of {} cannot be assigned", base.a_type()), span, "here"));
    };
    let (slug, help) = match value {
        Value::Tensor(value) => {
            let Value::Tensor(dst) = tensor::getitem(interp, t, index, span)? else { return Ok(()) };
            return beta2::assign(interp, &dst, value, span);
        }
        Value::Object(o) if o.as_any().is::<Handle>() => (
            "missing-dst",
            "since Beta 2 instructions write to dst=..., which is their first argument: nisa.op(dst=t[...], ...)",
        ),
        _ => ("tensor-assignment", "fill with nisa.memset(dst=t[...], value=...)"),
    };
    let message = format!("`{}[...] = ...`: only a tensor can be assigned to a tensor", t.storage.name);
    Err(Raise::new(
        Diagnostic::error(slug, message)
            .at(span, "here")
            .with(span_of(t.storage.loc), format!("`{}` is made here", t.storage.name))
            .help(help),
    ))
}

/// `base.name = value`.
pub(crate) fn setattr(
    interp: &mut Interp<'_>,
    base: &Value,
    name: Symbol,
    _value: &Value,
    span: Span,
) -> EvalResult<()> {
    let name = interp.name(name);
    Err(Raise::at("tensor-assignment", format!("`{name}` of {} cannot be assigned", base.a_type()), span, "here")
        .help("attributes of tensors and enums are fixed; view methods such as reshape make new tensors"))
}

/// What to write instead of an operator on a tensor or register.
fn arithmetic(what: &str, left: &Value, right: &Value, span: Span) -> Box<Raise> {
    if matches!(left, Value::Register(_)) || matches!(right, Value::Register(_)) {
        return Raise::at("register-arithmetic", format!("`{what}` on a register"), span, "here")
            .help(dynamic::REGISTER_HELP);
    }
    if matches!(left, Value::Tensor(_)) || matches!(right, Value::Tensor(_)) {
        let function = match what {
            "+" => "add",
            "-" => "subtract",
            "*" => "multiply",
            "/" => "divide",
            "@" => "matmul",
            "**" => "power",
            "%" => "mod",
            "<" => "less",
            "<=" => "less_equal",
            ">" => "greater",
            ">=" => "greater_equal",
            "&" => "bitwise_and",
            "|" => "bitwise_or",
            "^" => "bitwise_xor",
            _ => "...",
        };
        return Raise::at("tensor-operator", format!("`{what}` on a tensor"), span, "here").help(format!(
            "tensors have no Python operators: use nl.{function}(x, y), or nisa.tensor_tensor / nisa.tensor_scalar with a dst"
        ));
    }
    let message = format!("`{what}` of {} and {}", left.type_name(), right.type_name());
    Raise::at("unsupported-operator", message, span, "here")
}

/// `left op right` where at least one side is an API value.
pub(crate) fn binary(interp: &mut Interp<'_>, op: BinOp, left: &Value, right: &Value, span: Span) -> EvalResult<Value> {
    if array::involved(left, right) {
        return match array::host_of(left, right) {
            Some(host) => interp.host_value(host, span),
            None => array::binary(op, left, right, span),
        };
    }
    Err(arithmetic(op.text(), left, right, span))
}

/// `op value`; `not` is asked of [`truth`].
pub(crate) fn unary(_interp: &mut Interp<'_>, op: UnaryOp, value: &Value, span: Span) -> EvalResult<Value> {
    let what = match op {
        UnaryOp::Neg => "-",
        UnaryOp::Pos => "+",
        UnaryOp::Invert => "~",
        UnaryOp::Not => "not",
    };
    match value {
        Value::Tensor(_) => Err(Raise::at("tensor-operator", format!("`{what}` on a tensor"), span, "here").help(
            "tensors have no Python operators: use nl.negative(x), nl.invert(x) or nisa.tensor_scalar with a dst",
        )),
        other => match array::of(other) {
            Some(array) => array::unary(op, array, span),
            None => Err(arithmetic(what, other, &Value::None, span)),
        },
    }
}

/// `left op right` where at least one side is an API value. `is` arrives as `==`; membership does not arrive.
pub(crate) fn compare(
    _interp: &mut Interp<'_>,
    op: CmpOp,
    left: &Value,
    right: &Value,
    span: Span,
) -> EvalResult<Value> {
    let same = || equals(left, right);
    if array::involved(left, right) && !matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn) {
        return array::compare(op, left, right, span);
    }
    match op {
        CmpOp::Eq | CmpOp::Is | CmpOp::Ne | CmpOp::IsNot => {
            // A register against a number is a question that only the device can answer.
            if let (Value::Register(_), Value::Int(_) | Value::Float(_))
            | (Value::Int(_) | Value::Float(_), Value::Register(_)) = (left, right)
            {
                return Err(arithmetic(op.text(), left, right, span));
            }
            let wanted = matches!(op, CmpOp::Eq | CmpOp::Is);
            Ok(Value::Bool(same() == wanted))
        }
        CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge => {
            // Versions are ordered (nisa.get_nc_version() >= nisa.nc_version.gen3).
            let number = |v: &Value| match v {
                Value::ApiEnum(e) if e.vocabulary != vocab::MEMORY => Some(e.value()),
                other => other.as_int(),
            };
            match (number(left), number(right)) {
                (Some(a), Some(b)) => Ok(Value::Bool(match op {
                    CmpOp::Lt => a < b,
                    CmpOp::Le => a <= b,
                    CmpOp::Gt => a > b,
                    _ => a >= b,
                })),
                _ => Err(arithmetic(op.text(), left, right, span)),
            }
        }
        CmpOp::In | CmpOp::NotIn => Err(arithmetic(op.text(), left, right, span)),
    }
}

/// Whether an API value counts as true at specialisation.
pub(crate) fn truth(interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<bool> {
    match value {
        // `if bias:` for an optional tensor: an object without a truth of its own is true. On chip, where a tensor is
        // more often a value than an argument, that is worth a word.
        Value::Tensor(t) => {
            if t.on_chip() {
                let message = format!("tensor `{}` as a condition is always true", t.storage.name);
                interp.report_once(
                    Diagnostic::warning("tensor-condition", message)
                        .at(span, "its values are not known when the kernel is specialised")
                        .help("test `t is not None` for an optional tensor; for control flow on the device load the value into a register: nisa.register_load"),
                    span,
                );
            }
            Ok(true)
        }
        Value::Register(_) => Err(Raise::at(
            "register-arithmetic",
            "the value of a register is not known when the kernel is specialised",
            span,
            "used as a condition here",
        )
        .help("only `if register:` and `while register:` run on the device")),
        other => array::of(other).map_or(Ok(true), |a| array::truth(a, span)),
    }
}

/// `len(value)`.
pub(crate) fn len(_interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<i64> {
    match value {
        Value::Tensor(t) => Ok(i64::from(t.view.dims[0].count)),
        other if array::of(other).is_some() => array::of(other).map_or(Ok(0), |a| array::len(a, span)),
        _ => match object::<EnumClass>(value) {
            Some(class) => Ok(vocab::VOCABULARIES[usize::from(class.0)].members.len() as i64),
            None => Err(Raise::at("operand-kind", format!("{} has no len()", value.a_type()), span, "here")),
        },
    }
}

/// The items of an API value (static ranges arrive as plain ranges).
pub(crate) fn iterate(_interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<Vec<Value>> {
    match value {
        Value::DynRange(_) => {
            Err(Raise::at("dynamic-loop", "nl.dynamic_range can only be the range of a `for` statement", span, "here"))
        }
        Value::Tensor(t) => {
            Err(Raise::at("not-iterable", format!("tensor `{}` cannot be iterated over", t.storage.name), span, "here")
                .help(format!(
                    "loop over indices: for i in range({}.shape[0]): {}[i, ...]",
                    t.storage.name, t.storage.name
                )))
        }
        Value::Register(_) => Err(Raise::at("register-arithmetic", "a register cannot be iterated over", span, "here")
            .help("for i in nl.dynamic_range(register): ...")),
        other if array::of(other).is_some() => array::of(other).map_or(Ok(Vec::new()), |a| array::iterate(a, span)),
        _ => match object::<EnumClass>(value) {
            Some(class) => Ok((0..vocab::VOCABULARIES[usize::from(class.0)].members.len())
                .map(|member| Value::ApiEnum(ApiEnum { vocabulary: class.0, member: member as u8 }))
                .collect()),
            None => Err(Raise::at("not-iterable", format!("{} cannot be iterated over", value.a_type()), span, "here")),
        },
    }
}

/// `with context:` begins. Returns what `as` binds.
pub(crate) fn enter(interp: &mut Interp<'_>, context: &Value, span: Span) -> EvalResult<Value> {
    if object::<NoReorder>(context).is_some() {
        interp.api.no_reorder += 1;
        return Ok(Value::None);
    }
    Err(Raise::at("unsupported-with", format!("`with` on {}", context.a_type()), span, "here")
        .help("the only context of the language is nl.no_reorder()"))
}

/// `with context:` ends.
pub(crate) fn exit(interp: &mut Interp<'_>, context: &Value, _span: Span) -> EvalResult<()> {
    if object::<NoReorder>(context).is_some() {
        interp.api.no_reorder = interp.api.no_reorder.saturating_sub(1);
    }
    Ok(())
}
