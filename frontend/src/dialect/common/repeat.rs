//! Repeated calls. A call in an unrolled loop, or in a helper function, usually has the same result as at its last execution, for other
//! tensors: its operands need not be sorted, converted and checked again.
//!
//! Two executions are alike if their arguments are the same constants, and tensors declared by the same statement, in the same
//! view. Views may start at another element: then the rules are checked again, because some of them depend on it. A call with any other
//! argument (a register, a list, a dynamic index) is not cached.

use std::rc::Rc;
use std::sync::Arc;

use nki_diag::Span;
use nki_isa::{Inst, Loc, Violation};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::enums::{ApiEnum, NlOp};
use super::state::state;
use crate::build::builder::{NodeAt, Site};
use crate::build::tensor::Tensor;
use crate::eval::Interp;
use crate::eval::native::CallArgs;
use crate::eval::stdlib::dtype;
use crate::eval::value::Value;

/// Maximum number of consecutive executions that differ from their predecessors, after which a call is not compared any more.
const MOST_MISSES: u8 = 8;

/// The last execution of each potentially repeated call.
#[derive(Debug)]
pub(crate) struct Repeats<T> {
    /// By the location and the function of the call: Python's tracer knows only the lines of calls.
    at: FxHashMap<(Span, u32), usize>,
    calls: Vec<Call<T>>,
}

/// A call.
#[derive(Debug)]
struct Call<T> {
    last: Option<(CallArgs, T)>,
    misses: u8,
}

impl<T> Default for Repeats<T> {
    fn default() -> Self {
        Repeats { at: FxHashMap::default(), calls: Vec::new() }
    }
}

/// The difference between the arguments of two executions, apart from the identity of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// No difference.
    Same,
    /// Views start at other elements.
    Moved,
    Different,
}

impl<T> Repeats<T> {
    /// The call's last execution, if this one is like it, and whether a view starts elsewhere.
    fn find(&mut self, args: &CallArgs) -> Option<(usize, bool)> {
        let at = *self.at.get(&(args.span, args.data))?;
        let call = &mut self.calls[at];
        let (last, _) = call.last.as_ref()?;
        match likeness(last, args) {
            Likeness::Different => {
                call.misses += 1;
                None
            }
            likeness => {
                call.misses = 0;
                Some((at, likeness == Likeness::Moved))
            }
        }
    }

    /// Whether the call has been executed before and its last execution may be reusable. Counts this one.
    fn is_wanted(&mut self, args: &CallArgs) -> bool {
        match self.at.get(&(args.span, args.data)) {
            Some(&at) => {
                let call = &mut self.calls[at];
                let wanted = call.misses < MOST_MISSES;
                if !wanted {
                    call.last = None;
                }
                wanted
            }
            None => {
                self.at.insert((args.span, args.data), self.calls.len());
                self.calls.push(Call { last: None, misses: 0 });
                false
            }
        }
    }

    /// Caches an execution.
    fn learn(&mut self, args: CallArgs, made: T) {
        if let Some(&at) = self.at.get(&(args.span, args.data)) {
            self.calls[at].last = Some((args, made));
        }
    }
}

fn likeness(last: &CallArgs, now: &CallArgs) -> Likeness {
    if last.positional.len() != now.positional.len() || last.keyword.len() != now.keyword.len() {
        return Likeness::Different;
    }
    let mut worst = Likeness::Same;
    for (a, b) in last.positional.iter().zip(&now.positional) {
        worst = worst.max(of_values(a, b));
    }
    for ((a_name, a), (b_name, b)) in last.keyword.iter().zip(&now.keyword) {
        worst = worst.max(if a_name == b_name { of_values(a, b) } else { Likeness::Different });
    }
    worst
}

fn of_values(last: &Value, now: &Value) -> Likeness {
    let same = match (last, now) {
        (Value::Object(a), Value::Object(b)) => match last.downcast::<Tensor>() {
            Some(a) => return now.downcast::<Tensor>().map_or(Likeness::Different, |b| of_tensors(a, b)),
            None => Rc::ptr_eq(a, b) && is_constant(last) || are_same_constant(last, now),
        },
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.len() == b.len()
                && a.iter().zip(&**b).all(|(a, b)| matches!((a, b), (Value::Int(a), Value::Int(b)) if a == b))
        }
        _ => false,
    };
    if same { Likeness::Same } else { Likeness::Different }
}

fn of_tensors(last: &Tensor, now: &Tensor) -> Likeness {
    let (a, b) = (&last.view, &now.view);
    let alike = Arc::ptr_eq(&last.storage.declaration, &now.storage.declaration)
        && (a.dtype, a.partition) == (b.dtype, b.partition)
        && a.dims == b.dims
        && a.indirect.is_none()
        && b.indirect.is_none();
    match alike {
        true if a.offset == b.offset => Likeness::Same,
        true => Likeness::Moved,
        false => Likeness::Different,
    }
}

/// Whether it is an operator, an enum member or an element type.
fn is_constant(value: &Value) -> bool {
    value.downcast::<NlOp>().is_some() || value.downcast::<ApiEnum>().is_some() || dtype::of(value).is_some()
}

/// Whether both are the same operator, enum member or element type.
fn are_same_constant(a: &Value, b: &Value) -> bool {
    // `x.dtype` is another object each time.
    if let Some(a) = dtype::of(a) {
        return dtype::of(b) == Some(a);
    }
    if let Some(a) = a.downcast::<ApiEnum>() {
        return b.downcast::<ApiEnum>().is_some_and(|b| a.is(*b));
    }
    a.downcast::<NlOp>().is_some_and(|a| b.downcast::<NlOp>().is_some_and(|b| std::ptr::eq(a.op(), b.op())))
}

/// The cached instruction of a call.
#[derive(Debug)]
pub(crate) struct Made {
    inst: Inst,
    /// The argument of each view of the instruction, in the order of [`Inst::each_view`]. Keyword arguments follow the others.
    views: SmallVec<[u8; 6]>,
    loc: Loc,
}

fn argument(args: &CallArgs, at: usize) -> Option<&Value> {
    args.positional.get(at).or_else(|| Some(&args.keyword.get(at - args.positional.len())?.1))
}

/// Emits the instruction of a call that is like its last execution; `None` if it is not, or if a rule is broken, which the full call then reports.
pub(super) fn instruction(interp: &mut Interp<'_>, args: &CallArgs) -> Option<Result<NodeAt, Violation>> {
    let (at, moved) = state(interp).instructions.find(args)?;
    let trail = interp.trail();
    let state = state(interp);
    let (_, made) = state.instructions.calls[at].last.as_ref()?;
    let mut inst = made.inst.clone();
    let mut views = made.views.iter();
    inst.each_view_mut(&mut |view| {
        let value = views.next().and_then(|&at| argument(args, usize::from(at)));
        if let Some(t) = value.and_then(|v| v.downcast::<Tensor>()) {
            (view.tensor, view.offset) = (t.view.tensor, t.view.offset);
        }
    });
    if moved {
        state.builder.validate(&inst).ok()?;
    }
    let site = Site { loc: made.loc, trail };
    Some(state.builder.append(inst, site).map(|()| state.builder.last_node()))
}

/// Whether to cache this execution of a call of an instruction.
pub(super) fn wants_instruction(interp: &mut Interp<'_>, args: &CallArgs) -> bool {
    !interp.options.strict && state(interp).instructions.is_wanted(args)
}

/// Caches the instruction of a call; `operand` maps operands to arguments.
pub(super) fn learn_instruction(
    interp: &mut Interp<'_>,
    args: CallArgs,
    inst: Inst,
    operand: impl Fn(&'static str) -> Option<usize>,
) {
    let mut views = SmallVec::new();
    let mut known = true;
    inst.each_view(&mut |schema, view| {
        let at = operand(schema.name).filter(|&at| {
            let tensor = argument(&args, at).and_then(|v| v.downcast::<Tensor>());
            tensor.is_some_and(|t| t.view == *view)
        });
        match at.and_then(|at| u8::try_from(at).ok()) {
            Some(at) => views.push(at),
            None => known = false,
        }
    });
    let given = args.positional.iter().chain(args.keyword.iter().map(|(_, value)| value));
    let tensors = given.filter(|v| v.downcast::<Tensor>().is_some()).count();
    if known && tensors == views.len() {
        let loc = interp.loc(args.span);
        state(interp).instructions.learn(args, Made { inst, views, loc });
    }
}

/// The tensor of a call that is like its last execution, newly allocated.
pub(crate) fn tensor(interp: &mut Interp<'_>, args: &CallArgs) -> Option<Value> {
    let (at, _) = state(interp).allocations.find(args)?;
    let trail = interp.trail();
    let state = state(interp);
    let (_, earlier) = state.allocations.calls[at].last.as_ref()?;
    state.builder.another(earlier, trail).map(Value::object)
}

/// Whether to cache this execution of a call that allocates a tensor.
pub(crate) fn wants_tensor(interp: &mut Interp<'_>, args: &CallArgs) -> bool {
    // The name of a tensor returned by a helper depends on the caller.
    !interp.options.strict && state(interp).allocations.is_wanted(args) && state(interp).has_target(args.span)
}

/// Caches the tensor allocated by a call.
pub(crate) fn learn_tensor(interp: &mut Interp<'_>, args: CallArgs, made: &Value) {
    if let Some(tensor) = made.downcast::<Tensor>() {
        state(interp).allocations.learn(args, tensor.clone());
    }
}
