//! Values of the API: results of instructions, classes, groups of ranks, spans of an index.

use nki_diag::Span;
use nki_isa::Arg;

use super::enums::ApiEnum;
use super::errors::raise;
use super::state::state;
use crate::build::builder::{Dependency, NodeAt};
use crate::eval::Interp;
use crate::eval::convert::wrong;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::value::{BuiltinType, Class, ClassKind, Key, Value};

/// The result of an instruction.
#[derive(Debug)]
pub(crate) struct Handle(pub(crate) NodeAt);

impl Object for Handle {
    fn type_name(&self) -> &'static str {
        "NkiInstruction"
    }

    fn class(&self) -> Option<Value> {
        ApiClass::of(self)
    }

    fn methods(&self) -> &'static [&'static str] {
        &["depends_on"]
    }

    /// `later.depends_on(earlier, ..., kind=None)`: each argument is an instruction or a list of them. Without a kind it is `runtime`.
    fn call_method(&self, interp: &mut Interp<'_>, this: &Value, _name: &str, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let mut kind = Dependency::Runtime;
        for (name, value) in &args.keyword {
            if &*interp.name(*name) != "kind" {
                let message = format!("depends_on takes no keyword argument `{}`", interp.name(*name));
                return Err(Raise::at("arguments", message, span, "in this call"));
            }
            let member = value.downcast::<ApiEnum>().filter(|m| m.class.name == "dependency");
            kind = match member.map(|m| m.name()) {
                Some("schedule") => Dependency::Schedule,
                Some(_) => Dependency::Runtime,
                None if value.is_none() => Dependency::Runtime,
                None => {
                    let wanted = "nisa.dependency.runtime or nisa.dependency.schedule";
                    return Err(wrong("depends_on: kind", wanted, value, span));
                }
            };
        }
        let listed = args.positional.iter().flat_map(|v| v.sequence().unwrap_or_else(|| vec![v.clone()]));
        for value in listed.collect::<Vec<_>>() {
            let Some(Handle(earlier)) = value.downcast::<Handle>() else {
                return Err(wrong("depends_on", "what instructions return", &value, span));
            };
            state(interp).builder.order(self.0, *earlier, kind).map_err(|v| raise("", &v, span, &[]))?;
        }
        Ok(this.clone())
    }
}

/// `nl.ds(start, size)`: elements of one dimension.
#[derive(Debug)]
pub(crate) struct Ds {
    /// An int, a register or a tensor of one element.
    pub(crate) start: Value,
    /// Number of elements.
    pub(crate) size: i64,
}

impl Object for Ds {
    fn type_name(&self) -> &'static str {
        "nl.ds"
    }
}

/// A class of the API, for annotations, `isinstance` and `type`: the type name of its objects.
#[derive(Debug)]
pub(crate) struct ApiClass(pub(crate) &'static str);

impl ApiClass {
    /// The class of an object.
    pub(crate) fn of(object: &impl Object) -> Option<Value> {
        Some(Value::object(ApiClass(object.type_name())))
    }

    /// Its name in the API.
    fn name(&self) -> &'static str {
        match self.0 {
            "tensor" => "NkiTensor",
            "register" => "VirtualRegister",
            name => name,
        }
    }

    /// Whether it is the class of objects of this type name, or derives from that class.
    fn derives_from(&self, base: &str) -> bool {
        self.0 == base || base == "NkiGrid" && matches!(self.0, "NkiTileGrid" | "NkiBlockGrid")
    }

    /// Whether it derives from `nl.NKIObject`.
    fn is_nki_object(&self) -> bool {
        matches!(self.0, "tensor" | "register" | "NkiInstruction")
    }
}

impl Object for ApiClass {
    fn type_name(&self) -> &'static str {
        "type"
    }

    fn repr(&self) -> String {
        let module = if matches!(self.0, "register" | "NkiScalar" | "NkiInstruction") { "isa" } else { "language" };
        format!("<class 'nki.{module}.{}'>", self.name())
    }

    fn class(&self) -> Option<Value> {
        Some(Value::Type(BuiltinType::Type))
    }

    fn hash_key(&self) -> Option<Key> {
        Some(Key::Name(self.0.to_owned()))
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        matches!(name, "__name__" | "__qualname__").then(|| Value::str(self.name()))
    }

    /// `nt.tensor[128, 512]` in an annotation.
    fn item(&self, _interp: &mut Interp<'_>, this: &Value, _index: &Value, _span: Span) -> EvalResult<Value> {
        Ok(this.clone())
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<ApiClass>().is_some_and(|c| c.0 == self.0)
    }

    fn has_instance(&self, value: &Value) -> bool {
        matches!(value, Value::Object(o) if ApiClass(o.type_name()).derives_from(self.0))
    }

    fn has_subclass(&self, class: &Value) -> bool {
        class.downcast::<ApiClass>().is_some_and(|class| class.derives_from(self.0))
    }
}

/// `nl.NKIObject`: the base class of records.
#[derive(Debug)]
pub(crate) struct NkiObject;

impl Object for NkiObject {
    fn type_name(&self) -> &'static str {
        "type"
    }

    fn repr(&self) -> String {
        "<class 'NKIObject'>".into()
    }

    fn class(&self) -> Option<Value> {
        Some(Value::Type(BuiltinType::Type))
    }

    fn hash_key(&self) -> Option<Key> {
        Some(Key::Name("NKIObject".into()))
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        matches!(name, "__name__" | "__qualname__").then(|| Value::str("NKIObject"))
    }

    fn is_callable(&self) -> bool {
        true
    }

    fn call(&self, _interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        Err(Raise::at("type-error", "`NKIObject` cannot be called", args.span, "in this call"))
    }

    fn item(&self, _interp: &mut Interp<'_>, this: &Value, _index: &Value, _span: Span) -> EvalResult<Value> {
        Ok(this.clone())
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<NkiObject>().is_some()
    }

    fn is_record_base(&self) -> bool {
        true
    }

    fn has_instance(&self, value: &Value) -> bool {
        match value {
            Value::Instance(instance) => is_record(&instance.class),
            Value::Object(object) => ApiClass(object.type_name()).is_nki_object(),
            _ => false,
        }
    }

    fn has_subclass(&self, class: &Value) -> bool {
        match class {
            Value::Class(class) => is_record(class),
            class => class.downcast::<ApiClass>().is_some_and(ApiClass::is_nki_object) || self.equals(class),
        }
    }
}

/// Whether a class derives from `nl.NKIObject`.
fn is_record(class: &Class) -> bool {
    class.mro.get().into_iter().flatten().any(|c| c.kind.get() == ClassKind::Record)
}

/// A documented function that is not implemented yet: it can be imported, but not used.
#[derive(Debug)]
pub(crate) struct NotYet(pub(crate) String);

impl Object for NotYet {
    fn type_name(&self) -> &'static str {
        "function"
    }

    fn call(&self, _interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let message = format!("{} is not supported yet", self.0);
        Err(Raise::at("unsupported-api", message, args.span, "in this call"))
    }
}

/// `ReplicaGroup([[0, 1], [2, 3]])`: groups of ranks.
#[derive(Debug)]
pub(crate) struct ReplicaGroup(pub(crate) Vec<Vec<i64>>);

impl Object for ReplicaGroup {
    fn type_name(&self) -> &'static str {
        "ReplicaGroup"
    }
}

impl ReplicaGroup {
    /// As an operand.
    pub(crate) fn to_arg(&self) -> Arg {
        let list = |g: &Vec<i64>| Arg::List(g.iter().map(|&r| Arg::Int(r)).collect());
        Arg::List(self.0.iter().map(list).collect())
    }
}
