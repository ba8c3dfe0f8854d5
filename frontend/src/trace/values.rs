//! Operations on values of the traced kernel.

use nki_diag::Span;

use super::{Args, Failure, Held, Item, Name, Operator, Outcome, Trace};
use crate::Arg;
use crate::build::scalar::Scalar;
use crate::build::tensor::Tensor;
use crate::dialect::common::registers::Register;
use crate::eval::Interp;
use crate::eval::error::Raise;
use crate::eval::value::Value;
use crate::syntax::{BinOp, CmpOp, UnaryOp, sym};

/// A loop whose body is evaluated once, or whose iterations start from the same state.
#[derive(Debug, Clone, Copy)]
pub struct LoopOver {
    /// Its iterable.
    pub place: Span,
    /// Whether the device counts its iterations.
    pub counted: bool,
}

impl Trace<'_, '_> {
    /// A value of the host.
    ///
    /// # Errors
    /// If a call that creates the value ([`Arg::Call`]) fails.
    pub fn convert(&mut self, arg: &Arg, span: Span) -> Outcome<Item> {
        self.at(span, |interp| interp.take_over(arg, None, span).map(Item))
    }

    /// A name of the API: `nki.language.ndarray`.
    ///
    /// # Errors
    /// If the module has no such name.
    pub fn api(&mut self, module: &str, name: &str, span: Span) -> Outcome<Item> {
        self.at(span, |interp| {
            interp.in_dialect_of(module, |interp| {
                let module = interp.native_module(module);
                let name = interp.sym(name);
                interp.get_attr(&module, name, span).map(Item)
            })
        })
    }

    /// The function of the language for NumPy's function `name` called with tensors.
    ///
    /// # Errors
    /// If the kernel takes too many steps.
    pub fn array_function(&mut self, name: &str, span: Span) -> Outcome<Option<Item>> {
        self.at(span, |interp| {
            let dialect = interp.dialect;
            Ok(dialect.array_function(interp, name).map(Item))
        })
    }

    /// `function(...)`
    ///
    /// # Errors
    /// If the call is rejected.
    pub fn call(&mut self, function: &Item, args: Args, span: Span) -> Outcome<Item> {
        self.at(span, |interp| interp.call(&function.0, args.at(span)).map(Item))
    }

    /// `base.name(...)`
    ///
    /// # Errors
    /// If the call is rejected.
    pub fn call_method(&mut self, base: &Item, name: Name, args: Args, span: Span) -> Outcome<Item> {
        self.at(span, |interp| interp.call_method(&base.0, name.0, args.at(span)).map(Item))
    }

    /// Whether `base.name` is a method.
    pub fn has_method(&self, base: &Item, name: Name) -> bool {
        match &base.0 {
            Value::Object(object) => object.methods().contains(&&*self.interp.name(name.0)),
            _ => false,
        }
    }

    /// `base.name`
    ///
    /// # Errors
    /// If there is no such attribute.
    pub fn attribute(&mut self, base: &Item, name: Name, span: Span) -> Outcome<Item> {
        self.at(span, |interp| interp.get_attr(&base.0, name.0, span).map(Item))
    }

    /// Names of the attributes and methods of an object.
    pub fn attributes(&self, base: &Item) -> Vec<&'static str> {
        match &base.0 {
            Value::Object(object) => object.attributes().into_iter().chain(object.methods().iter().copied()).collect(),
            _ => Vec::new(),
        }
    }

    /// `base.name = value`
    ///
    /// # Errors
    /// Always: attributes of objects are fixed.
    pub fn set_attribute(&mut self, base: &Item, name: Name, value: Item, span: Span) -> Outcome<()> {
        self.at(span, |interp| interp.set_attr(&base.0, name.0, value.0, span))
    }

    /// `base[index]`
    ///
    /// # Errors
    /// If the index is rejected.
    pub fn item(&mut self, base: &Item, index: &Item, span: Span) -> Outcome<Item> {
        self.at(span, |interp| interp.get_item(&base.0, &index.0, span).map(Item))
    }

    /// `base[index] = value`
    ///
    /// # Errors
    /// If the assignment is rejected.
    pub fn set_item(&mut self, base: &Item, index: &Item, value: Item, span: Span) -> Outcome<()> {
        self.at(span, |interp| interp.set_item(&base.0, &index.0, value.0, span))
    }

    /// `left operator right`
    ///
    /// # Errors
    /// If neither side defines it.
    pub fn operate(&mut self, operator: Operator, left: &Item, right: &Item, span: Span) -> Outcome<Item> {
        self.at(span, |interp| match which(operator) {
            Ok(op) => interp.binary(op, &left.0, &right.0, span).map(Item),
            Err(op) => interp.compare(op, &left.0, &right.0, span).map(Item),
        })
    }

    /// `left operator= right`: the new value of the target.
    ///
    /// # Errors
    /// If neither side defines it.
    pub fn in_place(&mut self, operator: Operator, left: &Item, right: &Item, span: Span) -> Outcome<Item> {
        self.at(span, |interp| match which(operator) {
            Ok(op) => interp.in_place(op, &left.0, &right.0, span).map(Item),
            Err(op) => interp.compare(op, &left.0, &right.0, span).map(Item),
        })
    }

    /// Whether `name = value` modifies the object bound to the name: see [`Self::replace`].
    pub fn is_replacement(&self, value: &Item) -> bool {
        matches!(&value.0, Value::Object(object) if object.replacement().is_some())
    }

    /// `name = value`, where the name is bound to `old`, or unbound: its new value.
    ///
    /// # Errors
    /// If the value does not fit the old one.
    pub fn replace(&mut self, value: &Item, old: Option<&Item>, span: Span) -> Outcome<Item> {
        let Value::Object(object) = &value.0 else { return Ok(value.clone()) };
        let Some(replacement) = object.replacement() else { return Ok(value.clone()) };
        let none = Value::Unset;
        let old = old.map_or(&none, |old| &old.0);
        self.at(span, |interp| replacement.replace(interp, old, span).map(Item))
    }

    /// Names, and items such as `s[0]`, that start each iteration of a loop with their values before it, if the device counts, or the older
    /// compiler read the body once.
    pub fn carried_by_loop_over(&mut self, over: LoopOver) -> Vec<String> {
        let LoopOver { place, counted } = over;
        self.interp.enter_file(place.file);
        let carried = self.interp.carried_by_loop_over(place, counted);
        let items = if counted { self.interp.items_carried_by_loop_over(place) } else { Vec::new() };
        let names = carried.into_iter().map(|carried| self.interp.name(carried.name).to_string());
        names.chain(items.iter().map(|(item, _)| self.interp.item_text(item))).collect()
    }

    /// The value of a name of [`Self::carried_by_loop_over`] at the start of an iteration, or when the loop has `ended`: it was `old` before the
    /// loop and is `now`. `None` if it is unchanged.
    pub fn carry(&mut self, over: LoopOver, name: &str, old: &Item, now: &Item, ended: bool) -> Option<Item> {
        let LoopOver { place, counted } = over;
        self.interp.enter_file(place.file);
        let carried = self.interp.carried_by_loop_over(place, counted);
        let named = carried.into_iter().find(|carried| &*self.interp.name(carried.name) == name);
        let Some(carried) = named else {
            let items = if counted && ended { self.interp.items_carried_by_loop_over(place) } else { Vec::new() };
            let item = items.into_iter().find(|(item, _)| self.interp.item_text(item) == name)?;
            self.interp.end_item(&item, &old.0, &now.0, place);
            return None;
        };
        if counted && ended {
            self.interp.end_counted(&carried, &old.0, &now.0, place);
            return None;
        }
        let carry = if ended { Interp::carry_out } else { Interp::carry };
        carry(self.interp, &carried, &old.0, &now.0, place).map(Item)
    }

    /// `operator value`, where the operator is `-`, `+` or `~`.
    ///
    /// # Errors
    /// If the value does not define it.
    pub fn unary(&mut self, operator: char, value: &Item, span: Span) -> Outcome<Item> {
        let op = match operator {
            '-' => UnaryOp::Neg,
            '+' => UnaryOp::Pos,
            _ => UnaryOp::Invert,
        };
        self.at(span, |interp| interp.unary(op, &value.0, span).map(Item))
    }

    /// The truth value of a value.
    ///
    /// # Errors
    /// If it is known only on the device.
    pub fn truth(&mut self, value: &Item, span: Span) -> Outcome<bool> {
        if let Value::Object(object) = &value.0
            && object.condition().is_some()
        {
            let message = "the value of a register is not known when the kernel is specialised";
            let raise = Raise::at("register-arithmetic", message, span, "used as a condition here").help(
                "decide it on the device: nl.while_loop(register, body), or nl.fori_loop with a register as bound",
            );
            return self.at(span, |_| Err(raise));
        }
        self.at(span, |interp| interp.truth(&value.0, span))
    }

    /// The value as a number for Python: `int(register)`, `range(register)`.
    ///
    /// # Errors
    /// If it is not a number, or is known only on the device.
    pub fn number(&mut self, value: &Item, span: Span) -> Outcome<i64> {
        self.at(span, |_| crate::eval::convert::int(&value.0, "Python", span))
    }

    /// `float(value)`
    ///
    /// # Errors
    /// If it is not a number, or is known only on the device.
    pub fn float(&mut self, value: &Item, span: Span) -> Outcome<f64> {
        self.at(span, |interp| match value.0.as_float() {
            Some(number) => Ok(number),
            None => interp.convert(&value.0, sym::float_, "a float", span).map(|_| 0.0),
        })
    }

    /// Rejects the use of a value's contents: `np.asarray(tensor)`.
    ///
    /// # Errors
    /// Always.
    pub fn contents<T>(&mut self, value: &Item, span: Span) -> Outcome<T> {
        self.at(span, |interp| Err(interp.values_unknown(&value.0.a_type(), span)))
    }

    /// `len(value)`
    ///
    /// # Errors
    /// If it has none.
    pub fn len(&mut self, value: &Item, span: Span) -> Outcome<i64> {
        self.at(span, |_| match &value.0 {
            Value::Object(object) => object.len(span),
            other => Ok(other.sequence().map_or(0, |items| items.len() as i64)),
        })
    }

    /// The items of a value.
    ///
    /// # Errors
    /// If it cannot be iterated over.
    pub fn iterate(&mut self, value: &Item, span: Span) -> Outcome<Vec<Item>> {
        self.at(span, |interp| Ok(interp.iterate(&value.0, span)?.into_iter().map(Item).collect()))
    }

    /// The storage of a value of the device.
    pub fn held(&self, value: &Item) -> Option<Held> {
        if let Some(tensor) = value.0.downcast::<Tensor>() {
            return Some(Held::Tensor(tensor.view.clone()));
        }
        let register = value.0.downcast::<Register>().map(|register| register.id);
        register.or_else(|| value.0.downcast::<Scalar>().map(|scalar| scalar.id)).map(Held::Register)
    }

    /// Whether a value is a range counted on the device.
    pub fn is_counted(&self, value: &Item) -> bool {
        matches!(&value.0, Value::Object(object) if object.range().is_some())
    }

    /// `repr(value)`
    ///
    /// # Errors
    /// If the text is too long.
    pub fn repr(&mut self, value: &Item) -> Outcome<String> {
        self.interp.repr(&value.0).map_err(Failure)
    }
}

/// The operator as an arithmetic operator, or as a comparison.
fn which(operator: Operator) -> Result<BinOp, CmpOp> {
    Ok(match operator {
        Operator::Add => BinOp::Add,
        Operator::Sub => BinOp::Sub,
        Operator::Mul => BinOp::Mul,
        Operator::MatMul => BinOp::MatMul,
        Operator::Div => BinOp::Div,
        Operator::Mod => BinOp::Mod,
        Operator::Pow => BinOp::Pow,
        Operator::LShift => BinOp::LShift,
        Operator::RShift => BinOp::RShift,
        Operator::BitOr => BinOp::BitOr,
        Operator::BitXor => BinOp::BitXor,
        Operator::BitAnd => BinOp::BitAnd,
        Operator::FloorDiv => BinOp::FloorDiv,
        Operator::Eq => return Err(CmpOp::Eq),
        Operator::Ne => return Err(CmpOp::Ne),
        Operator::Lt => return Err(CmpOp::Lt),
        Operator::Le => return Err(CmpOp::Le),
        Operator::Gt => return Err(CmpOp::Gt),
        Operator::Ge => return Err(CmpOp::Ge),
    })
}
