//! Argument values: the untyped form between a caller (Python binder, text form) and an instruction's typed operands.

use crate::dtype::DType;
use crate::ids::RegId;
use crate::machine::Machine;
use crate::names::Named;
use crate::schema::Kind;
use crate::view::View;

/// A value given for an operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A member of a vocabulary, by name: `add`, `vector`, `reset_reduce`.
    Name(Box<str>),
    /// A string.
    Text(Box<str>),
    /// A dtype.
    DType(DType),
    /// A tensor view.
    View(View),
    /// A register.
    Register(RegId),
    /// A list or tuple.
    List(Vec<Arg>),
}

impl Arg {
    /// Description of the value's kind for messages.
    pub fn what(&self) -> String {
        match self {
            Arg::None => "None".into(),
            Arg::Bool(b) => format!("bool {}", if *b { "True" } else { "False" }),
            Arg::Int(i) => format!("int {i}"),
            Arg::Float(x) => format!("float {x}"),
            Arg::Name(n) => format!("`{n}`"),
            Arg::Text(s) => format!("str {s:?}"),
            Arg::DType(d) => format!("dtype {d}"),
            Arg::View(_) => "a tensor".into(),
            Arg::Register(_) => "a register".into(),
            Arg::List(l) => format!("a sequence of {} values", l.len()),
        }
    }
}

/// An argument of the wrong kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The kinds the operand takes.
    pub expected: String,
    /// Description of the argument.
    pub got: String,
}

impl Mismatch {
    /// Expected kind against the kind of `got`.
    pub fn new(expected: impl Into<String>, got: &Arg) -> Self {
        Mismatch { expected: expected.into(), got: got.what() }
    }
}

/// A type that an instruction's operand can have.
pub trait Operand: Sized {
    /// The operand's kind in the schema.
    const KIND: Kind;
    /// Names of the members, if this is a vocabulary.
    const MEMBERS: &'static [&'static str] = &[];
    /// Converts a given argument.
    ///
    /// # Errors
    /// If the argument is of another kind.
    fn from_arg(arg: Arg) -> Result<Self, Mismatch>;
    /// The argument that converts back to this value.
    fn to_arg(&self) -> Arg;
    /// The views in this operand, for footprints.
    fn views<'a>(&'a self, _each: &mut dyn FnMut(&'a View)) {}
    /// The same views, mutably.
    fn views_mut(&mut self, _each: &mut dyn FnMut(&mut View)) {}
    /// The register in this operand, for footprints.
    fn register(&self) -> Option<RegId> {
        None
    }
    /// The numbers in this operand that engines convert to their own types.
    fn numbers(&self, _each: &mut dyn FnMut(Imm)) {}
}

/// Converts the argument for a vocabulary member.
///
/// # Errors
/// If it names no member; the message lists them.
pub fn named_from_arg<T: Named>(arg: Arg) -> Result<T, Mismatch> {
    let found = match &arg {
        Arg::Name(n) | Arg::Text(n) => T::from_name(n),
        Arg::Int(i) => T::from_int(*i),
        _ => None,
    };
    found.ok_or_else(|| {
        let names: Vec<_> = T::ALL.iter().map(|m| m.name()).collect();
        Mismatch::new(format!("{} (one of {})", T::WHAT, names.join(", ")), &arg)
    })
}

/// An immediate number: integers stay exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Imm {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
}

impl Imm {
    /// The value in fp32, as the engines use it.
    pub fn as_f32(self) -> f32 {
        match self {
            Imm::Int(i) => i as f32,
            Imm::Float(x) => x as f32,
        }
    }
    /// The value as an integer, if it is one.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Imm::Int(i) => Some(i),
            Imm::Float(x) => (x.fract() == 0.0 && x.abs() < 9e15).then_some(x as i64),
        }
    }
}

impl Operand for Imm {
    const KIND: Kind = Kind::Number;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        match arg {
            Arg::Int(i) => Ok(Imm::Int(i)),
            Arg::Bool(b) => Ok(Imm::Int(i64::from(b))),
            Arg::Float(x) => Ok(Imm::Float(x)),
            other => Err(Mismatch::new("a number", &other)),
        }
    }
    fn to_arg(&self) -> Arg {
        match *self {
            Imm::Int(i) => Arg::Int(i),
            Imm::Float(x) => Arg::Float(x),
        }
    }
    fn numbers(&self, each: &mut dyn FnMut(Imm)) {
        each(*self);
    }
}

/// A scalar operand: an immediate, one value per partition (a view with one element per partition), or a register.
#[derive(Debug, Clone, PartialEq)]
pub enum ScalarOperand {
    /// The same number everywhere.
    Imm(Imm),
    /// One element per partition.
    View(View),
    /// A register's value.
    Register(RegId),
}

impl ScalarOperand {
    /// The view, if it is one.
    pub fn view(&self) -> Option<&View> {
        match self {
            ScalarOperand::View(v) => Some(v),
            _ => None,
        }
    }
}

impl Operand for ScalarOperand {
    const KIND: Kind = Kind::Scalar;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        match arg {
            Arg::View(v) => Ok(ScalarOperand::View(v)),
            Arg::Register(r) => Ok(ScalarOperand::Register(r)),
            other => match Imm::from_arg(other) {
                Ok(i) => Ok(ScalarOperand::Imm(i)),
                Err(m) => Err(Mismatch { expected: "a number or a tensor of shape (P, 1)".into(), ..m }),
            },
        }
    }
    fn to_arg(&self) -> Arg {
        match self {
            ScalarOperand::Imm(i) => i.to_arg(),
            ScalarOperand::View(v) => Arg::View(v.clone()),
            ScalarOperand::Register(r) => Arg::Register(*r),
        }
    }
    fn views<'a>(&'a self, each: &mut dyn FnMut(&'a View)) {
        if let ScalarOperand::View(v) = self {
            each(v);
        }
    }
    fn views_mut(&mut self, each: &mut dyn FnMut(&mut View)) {
        if let ScalarOperand::View(v) = self {
            each(v);
        }
    }
    fn register(&self) -> Option<RegId> {
        match self {
            ScalarOperand::Register(r) => Some(*r),
            _ => None,
        }
    }
    fn numbers(&self, each: &mut dyn FnMut(Imm)) {
        if let ScalarOperand::Imm(number) = self {
            each(*number);
        }
    }
}

/// A register or an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterOrInt {
    /// A register.
    Register(RegId),
    /// An integer.
    Int(i64),
}

impl RegisterOrInt {
    /// The integer, or the value that the register holds.
    pub fn value(self, machine: &mut dyn Machine) -> i64 {
        match self {
            RegisterOrInt::Register(r) => machine.register(r),
            RegisterOrInt::Int(i) => i,
        }
    }
}

impl Operand for RegisterOrInt {
    const KIND: Kind = Kind::RegisterOrInt;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        match arg {
            Arg::Register(r) => Ok(RegisterOrInt::Register(r)),
            Arg::Int(i) => Ok(RegisterOrInt::Int(i)),
            Arg::Bool(b) => Ok(RegisterOrInt::Int(i64::from(b))),
            other => Err(Mismatch::new("a register or an int", &other)),
        }
    }
    fn to_arg(&self) -> Arg {
        match *self {
            RegisterOrInt::Register(r) => Arg::Register(r),
            RegisterOrInt::Int(i) => Arg::Int(i),
        }
    }
    fn register(&self) -> Option<RegId> {
        match *self {
            RegisterOrInt::Register(r) => Some(r),
            RegisterOrInt::Int(_) => None,
        }
    }
}

impl Operand for View {
    const KIND: Kind = Kind::View;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        match arg {
            Arg::View(v) => Ok(v),
            other => Err(Mismatch::new("a tensor", &other)),
        }
    }
    fn to_arg(&self) -> Arg {
        Arg::View(self.clone())
    }
    fn views<'a>(&'a self, each: &mut dyn FnMut(&'a View)) {
        each(self);
    }
    fn views_mut(&mut self, each: &mut dyn FnMut(&mut View)) {
        each(self);
    }
}

impl Operand for RegId {
    const KIND: Kind = Kind::Register;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        match arg {
            Arg::Register(r) => Ok(r),
            other => Err(Mismatch::new("a register (nisa.register_alloc)", &other)),
        }
    }
    fn to_arg(&self) -> Arg {
        Arg::Register(*self)
    }
    fn register(&self) -> Option<RegId> {
        Some(*self)
    }
}

impl Operand for bool {
    const KIND: Kind = Kind::Bool;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        match arg {
            Arg::Bool(b) => Ok(b),
            Arg::Int(i @ (0 | 1)) => Ok(i == 1),
            other => Err(Mismatch::new("a bool", &other)),
        }
    }
    fn to_arg(&self) -> Arg {
        Arg::Bool(*self)
    }
}

impl Operand for i64 {
    const KIND: Kind = Kind::Int;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        match arg {
            Arg::Int(i) => Ok(i),
            Arg::Bool(b) => Ok(i64::from(b)),
            other => Err(Mismatch::new("an int", &other)),
        }
    }
    fn to_arg(&self) -> Arg {
        Arg::Int(*self)
    }
}

impl Operand for String {
    const KIND: Kind = Kind::Text;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        match arg {
            Arg::Text(s) | Arg::Name(s) => Ok(s.into()),
            other => Err(Mismatch::new("a string", &other)),
        }
    }
    fn to_arg(&self) -> Arg {
        Arg::Text(self.as_str().into())
    }
}

/// A list of integers (`axis=1` is accepted as `[1]`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ints(pub Vec<i64>);

impl Operand for Ints {
    const KIND: Kind = Kind::Ints;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        match arg {
            Arg::None => Ok(Ints(Vec::new())),
            Arg::Int(i) => Ok(Ints(vec![i])),
            Arg::List(l) => {
                let ints: Result<_, _> = l.iter().cloned().map(i64::from_arg).collect();
                ints.map(Ints).map_err(|_| Mismatch::new("an int or a list of ints", &Arg::List(l)))
            }
            other => Err(Mismatch::new("an int or a list of ints", &other)),
        }
    }
    fn to_arg(&self) -> Arg {
        Arg::List(self.0.iter().map(|&i| Arg::Int(i)).collect())
    }
}

/// A list of `[step, count]` pairs, outermost first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pattern(pub Vec<(i64, u32)>);

impl Operand for Pattern {
    const KIND: Kind = Kind::Pattern;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        let expected = "a list of [step, count] pairs with counts from 1";
        let Arg::List(list) = arg else {
            return Err(Mismatch::new(expected, &arg));
        };
        let pair = |a: Arg| match a {
            Arg::List(p) => match p[..] {
                [Arg::Int(step), Arg::Int(count)] if count >= 1 => u32::try_from(count).ok().map(|c| (step, c)),
                _ => None,
            },
            _ => None,
        };
        let shown = Mismatch::new(expected, &Arg::List(list.clone()));
        list.into_iter().map(pair).collect::<Option<_>>().map(Pattern).ok_or(shown)
    }
    fn to_arg(&self) -> Arg {
        let pair = |&(s, c): &(i64, u32)| Arg::List(vec![Arg::Int(s), Arg::Int(i64::from(c))]);
        Arg::List(self.0.iter().map(pair).collect())
    }
}

/// A list of tensors.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Views(pub Vec<View>);

impl Operand for Views {
    const KIND: Kind = Kind::Views;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        let Arg::List(list) = arg else {
            return Err(Mismatch::new("a list of tensors", &arg));
        };
        list.into_iter()
            .map(View::from_arg)
            .collect::<Result<_, _>>()
            .map(Views)
            .map_err(|m| Mismatch { expected: "a list of tensors".into(), got: format!("{} in it", m.got) })
    }
    fn to_arg(&self) -> Arg {
        Arg::List(self.0.iter().map(|v| Arg::View(v.clone())).collect())
    }
    fn views<'a>(&'a self, each: &mut dyn FnMut(&'a View)) {
        self.0.iter().for_each(each);
    }
    fn views_mut(&mut self, each: &mut dyn FnMut(&mut View)) {
        self.0.iter_mut().for_each(each);
    }
}

/// Lists of integers: groups of ranks, pairs of ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IntLists(pub Vec<Vec<i64>>);

impl Operand for IntLists {
    const KIND: Kind = Kind::IntLists;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        let expected = "a list of lists of ints";
        let Arg::List(list) = arg else {
            return Err(Mismatch::new(expected, &arg));
        };
        let lists: Result<_, Mismatch> = list
            .into_iter()
            .map(|inner| match inner {
                Arg::List(_) => Ints::from_arg(inner).map(|i| i.0),
                other => Err(Mismatch { expected: expected.into(), got: format!("{} in it", other.what()) }),
            })
            .collect();
        lists.map(IntLists)
    }
    fn to_arg(&self) -> Arg {
        let list = |l: &Vec<i64>| Arg::List(l.iter().map(|&i| Arg::Int(i)).collect());
        Arg::List(self.0.iter().map(list).collect())
    }
}

/// One tensor for each channel: a list of lists of one tensor (a plain list of tensors is accepted).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Channels(pub Vec<View>);

impl Operand for Channels {
    const KIND: Kind = Kind::Views;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        let expected = "a list of lists of one tensor";
        let Arg::List(list) = arg else {
            return Err(Mismatch::new(expected, &arg));
        };
        let one = |inner: Arg| match inner {
            Arg::List(mut l) if l.len() == 1 => View::from_arg(l.remove(0)),
            Arg::View(v) => Ok(v),
            other => Err(Mismatch::new("a list of one tensor", &other)),
        };
        let views: Result<_, Mismatch> = list.into_iter().map(one).collect();
        views.map(Channels).map_err(|m| Mismatch { expected: expected.into(), got: format!("{} in it", m.got) })
    }
    fn to_arg(&self) -> Arg {
        Arg::List(self.0.iter().map(|v| Arg::List(vec![Arg::View(v.clone())])).collect())
    }
    fn views<'a>(&'a self, each: &mut dyn FnMut(&'a View)) {
        self.0.iter().for_each(each);
    }
    fn views_mut(&mut self, each: &mut dyn FnMut(&mut View)) {
        self.0.iter_mut().for_each(each);
    }
}

/// A list of numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Numbers(pub Vec<Imm>);

impl Operand for Numbers {
    const KIND: Kind = Kind::Numbers;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        let Arg::List(list) = arg else {
            return Err(Mismatch::new("a list of numbers", &arg));
        };
        list.into_iter()
            .map(Imm::from_arg)
            .collect::<Result<_, _>>()
            .map(Numbers)
            .map_err(|m| Mismatch { expected: "a list of numbers".into(), got: format!("{} in it", m.got) })
    }
    fn to_arg(&self) -> Arg {
        Arg::List(self.0.iter().map(Operand::to_arg).collect())
    }
    fn numbers(&self, each: &mut dyn FnMut(Imm)) {
        self.0.iter().copied().for_each(each);
    }
}

impl<T: Operand> Operand for Option<T> {
    const KIND: Kind = Kind::Optional(&T::KIND);
    const MEMBERS: &'static [&'static str] = T::MEMBERS;
    fn from_arg(arg: Arg) -> Result<Self, Mismatch> {
        match arg {
            Arg::None => Ok(None),
            other => T::from_arg(other).map(Some),
        }
    }
    fn to_arg(&self) -> Arg {
        self.as_ref().map_or(Arg::None, Operand::to_arg)
    }
    fn views<'a>(&'a self, each: &mut dyn FnMut(&'a View)) {
        if let Some(v) = self {
            v.views(each);
        }
    }
    fn views_mut(&mut self, each: &mut dyn FnMut(&mut View)) {
        if let Some(v) = self {
            v.views_mut(each);
        }
    }
    fn register(&self) -> Option<RegId> {
        self.as_ref().and_then(Operand::register)
    }
    fn numbers(&self, each: &mut dyn FnMut(Imm)) {
        if let Some(v) = self {
            v.numbers(each);
        }
    }
}
