//! Enum members and operator names as values.

use nki_diag::Span;

use crate::build::ops::{OPS, Op};
use crate::eval::Interp;
use crate::eval::convert::int;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::value::{BuiltinType, Key, Value};
use crate::syntax::CmpOp;

/// An enum of the API.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    /// Its name, for example `engine`.
    pub(crate) name: &'static str,
    /// Its module.
    pub(crate) module: &'static str,
    /// Members with their integer values.
    pub(crate) members: &'static [(&'static str, i64)],
}

/// The memories, which all dialects share.
pub(crate) static MEMORY: Vocabulary = Vocabulary {
    name: "MemoryRegion",
    module: "nki.language",
    members: &[("sbuf", 0), ("psum", 1), ("private_hbm", 2), ("shared_hbm", 3)],
};

impl Vocabulary {
    /// The member of this name.
    pub(crate) fn member(&'static self, name: &str) -> Option<ApiEnum> {
        let member = self.members.iter().position(|m| m.0 == name)?;
        Some(ApiEnum { class: self, member: member as u8 })
    }

    fn is(&self, other: &Vocabulary) -> bool {
        std::ptr::eq(self, other)
    }

    /// Whether the values of its members are their names, as the manual lists them.
    fn has_names(&self) -> bool {
        self.is(&MEMORY) || self.name == "matmul_perf_mode"
    }
}

/// A member of an enum of the API, such as `nisa.engine.vector` or `nl.sbuf`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiEnum {
    /// Its enum.
    pub(crate) class: &'static Vocabulary,
    /// Index into its members.
    member: u8,
}

impl ApiEnum {
    /// A memory, `hbm` being an alias of `private_hbm`.
    pub(crate) fn memory(name: &str) -> Option<ApiEnum> {
        MEMORY.member(if name == "hbm" { "private_hbm" } else { name })
    }

    /// Whether it is a memory.
    pub(crate) fn is_memory(self) -> bool {
        self.class.is(&MEMORY)
    }

    /// Whether a memory is one of the kinds of HBM.
    fn is_hbm(self) -> bool {
        self.name().ends_with("hbm")
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        self.class.members[usize::from(self.member)].0
    }

    /// Its integer value.
    pub(crate) fn value(self) -> i64 {
        self.class.members[usize::from(self.member)].1
    }

    /// Whether both are the same member.
    pub(crate) fn is(self, other: ApiEnum) -> bool {
        self.class.is(other.class) && self.member == other.member
    }
}

impl Object for ApiEnum {
    fn type_name(&self) -> &'static str {
        self.class.name
    }

    fn repr(&self) -> String {
        format!("{}.{}", self.class.name, self.name())
    }

    fn class(&self) -> Option<Value> {
        Some(Value::object(EnumClass(self.class)))
    }

    fn hash_key(&self) -> Option<Key> {
        Some(Key::Name(self.repr()))
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["name", "value"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        match name {
            "name" => Some(Value::str(self.name())),
            "value" if self.class.has_names() => Some(Value::str(self.name())),
            "value" => Some(Value::Int(ApiEnum::value(*self))),
            _ => None,
        }
    }

    /// Versions are ordered: `nisa.get_nc_version() >= nisa.nc_version.gen3`.
    fn compare(
        &self,
        _interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        _span: Span,
    ) -> EvalResult<Option<Value>> {
        let number = |v: &Value| match v.downcast::<ApiEnum>() {
            Some(e) => (!e.is_memory()).then(|| ApiEnum::value(*e)),
            None => v.as_int(),
        };
        let (Some(a), Some(b)) = (number(left), number(right)) else { return Ok(None) };
        Ok(match op {
            CmpOp::Lt => Some(a < b),
            CmpOp::Le => Some(a <= b),
            CmpOp::Gt => Some(a > b),
            CmpOp::Ge => Some(a >= b),
            _ => None,
        }
        .map(Value::Bool))
    }

    /// Members equal their integers, memories their names. Kernels that check whether a tensor is in HBM use either kind: the manual's for
    /// the inputs, nki-library's the other.
    fn equals(&self, other: &Value) -> bool {
        match other {
            Value::Int(i) => !self.is_memory() && ApiEnum::value(*self) == *i,
            Value::Str(name) => self.is_memory() && ApiEnum::memory(name).is_some_and(|m| m.is(*self)),
            other => other.downcast::<ApiEnum>().is_some_and(|other| {
                self.is(*other) || self.is_memory() && other.is_memory() && self.is_hbm() && other.is_hbm()
            }),
        }
    }
}

/// An enum class, such as `nisa.engine`.
#[derive(Debug)]
pub(crate) struct EnumClass(pub(crate) &'static Vocabulary);

impl Object for EnumClass {
    fn type_name(&self) -> &'static str {
        self.0.name
    }

    fn class(&self) -> Option<Value> {
        Some(Value::Type(BuiltinType::Type))
    }

    fn attributes(&self) -> Vec<&'static str> {
        self.0.members.iter().map(|m| m.0).collect()
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        let member = if self.0.is(&MEMORY) { ApiEnum::memory(name) } else { self.0.member(name) };
        member.map(Value::object)
    }

    /// `nisa.engine(1)`, `nl.MemoryRegion("sbuf")`
    fn call(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let [x] = args.bind(interp, self.0.name, ["value"], 1)?;
        let x = x.unwrap_or(Value::None);
        if let Some(member) = x.downcast::<ApiEnum>().filter(|e| e.class.is(self.0)) {
            return Ok(Value::object(*member));
        }
        if let (Value::Str(name), true) = (&x, self.0.has_names()) {
            let member = if self.0.is(&MEMORY) { ApiEnum::memory(name) } else { self.0.member(name) };
            let unknown =
                || Raise::at("operand-kind", format!("{name:?} is not a member of {}", self.0.name), span, "here");
            return member.map(Value::object).ok_or_else(unknown);
        }
        let value = int(&x, self.0.name, span)?;
        match self.0.members.iter().position(|m| m.1 == value) {
            Some(member) => Ok(Value::object(ApiEnum { class: self.0, member: member as u8 })),
            None => Err(Raise::at("operand-kind", format!("{value} is not a member of {}", self.0.name), span, "here")),
        }
    }

    fn item(&self, _interp: &mut Interp<'_>, this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        if let Value::Str(name) = index
            && let Some(member) = self.0.member(name)
        {
            return Ok(Value::object(member));
        }
        Err(Raise::at("not-indexable", format!("{} cannot be indexed", this.a_type()), span, "here"))
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<EnumClass>().is_some_and(|c| c.0.is(self.0))
    }

    fn len(&self, _span: Span) -> EvalResult<i64> {
        Ok(self.0.members.len() as i64)
    }

    fn iterate(&self, _span: Span) -> EvalResult<Vec<Value>> {
        let members = 0..self.0.members.len();
        Ok(members.map(|member| Value::object(ApiEnum { class: self.0, member: member as u8 })).collect())
    }

    fn has_instance(&self, value: &Value) -> bool {
        value.downcast::<ApiEnum>().is_some_and(|e| e.class.is(self.0))
    }
}

/// The implementation of calls of an operation of `nki.language` in a dialect.
pub(crate) type CallOp = fn(&mut Interp<'_>, &'static Op, CallArgs) -> EvalResult<Value>;

/// A name such as `nl.add`, usable as an operator argument and usually callable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NlOp {
    op: &'static Op,
    call: CallOp,
}

impl NlOp {
    /// The operation with this name, in a dialect that calls operations this way.
    pub(crate) fn find(name: &str, call: CallOp) -> Option<NlOp> {
        OPS.iter().find(|o| o.name == name).map(|op| NlOp { op, call })
    }

    /// The operation.
    pub(crate) fn op(self) -> &'static Op {
        self.op
    }
}

impl Object for NlOp {
    fn type_name(&self) -> &'static str {
        "operator"
    }

    fn repr(&self) -> String {
        format!("nl.{}", self.op().name)
    }

    fn hash_key(&self) -> Option<Key> {
        Some(Key::Name(self.repr()))
    }

    fn is_inert(&self) -> bool {
        true
    }

    fn attributes(&self) -> Vec<&'static str> {
        vec!["__name__"]
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        (name == "__name__").then(|| Value::str(self.op().name))
    }

    fn is_callable(&self) -> bool {
        true
    }

    fn call(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        (self.call)(interp, self.op(), args)
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<NlOp>().is_some_and(|o| std::ptr::eq(o.op, self.op))
    }
}
