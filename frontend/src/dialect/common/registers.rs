//! Registers, and the loops and branches that run on the device.

use nki_diag::{Diagnostic, Span};
use nki_isa::program::{Bound, Control};
use nki_isa::{Arg, RegId};

use super::errors::raise;
use super::handles::ApiClass;
use super::state::{site, state};
use super::strict::reject;
use crate::build::builder::{Mark, Site};
use crate::build::lower::Lower;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::{Block, DeviceCondition, DeviceRange, Object};
use crate::eval::value::{Key, Value};

/// A register handle (`VirtualRegister`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Register {
    /// The register.
    pub(crate) id: RegId,
    /// Whether it is a loop variable, which cannot be written.
    pub(crate) frozen: bool,
}

/// A range with bounds known on the device (`nl.dynamic_range`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct DynamicRange {
    pub(crate) lower: Bound,
    pub(crate) upper: Bound,
    pub(crate) step: i64,
}

/// Advice for arithmetic on registers.
pub(crate) const REGISTER_HELP: &str = "a register exists only on the device: store it with nisa.register_store(tensor, register), compute with \
     instructions on the (1, 1) tensor, and load the result with nisa.register_load";

impl Register {
    /// The value of a register that can be written.
    pub(crate) fn value(id: RegId) -> Value {
        Value::object(Self { id, frozen: false })
    }
}

/// Emits one instruction by its name and operands.
pub(crate) fn emit(
    interp: &mut Interp<'_>,
    name: &'static str,
    operands: &[(&'static str, Arg)],
    span: Span,
) -> EvalResult<()> {
    let site = site(interp, span);
    let mut lower = Lower { builder: &mut state(interp).builder, site, name: "" };
    lower.emit(name, operands).map_err(|v| raise("", &v, span, &[]))
}

/// Evaluates a block that runs on the device, the body of a loop if it `repeats`; returns its statements. At the end of the body of a loop function,
/// the lifetime of its tensors ends.
fn body(
    interp: &mut Interp<'_>,
    repeats: bool,
    function: Option<&'static str>,
    place: Site,
    run: Block<'_>,
) -> EvalResult<Vec<nki_isa::Node>> {
    let depth = state(interp).turns.len();
    let result = if repeats {
        begin(interp)?;
        all_turns(interp, run)
    } else {
        state(interp).builder.open(false);
        run(interp)
    };
    state(interp).turns.truncate(depth);
    let builder = &mut state(interp).builder;
    let nodes = match function {
        Some(function) => builder.close_function(function, place),
        None => builder.close(),
    };
    result.map(|()| nodes)
}

/// A dynamic loop whose body may be evaluated again.
#[derive(Debug)]
pub(super) struct Turns {
    /// The position of the loop statement.
    header: u64,
    /// The state before the body.
    body: Mark,
    trails: usize,
    /// Number of findings after the first evaluation of the body.
    found: Option<usize>,
}

/// Evaluates the body of a dynamic loop: once, or as often as a follower has it executed.
fn all_turns(interp: &mut Interp<'_>, run: Block<'_>) -> EvalResult<()> {
    run(interp)?;
    while again(interp)? {
        run(interp)?;
    }
    Ok(())
}

/// Opens the body of a dynamic loop.
fn begin(interp: &mut Interp<'_>) -> EvalResult<()> {
    let Some(follower) = interp.follower.clone() else {
        state(interp).builder.open(true);
        return Ok(());
    };
    let header = state(interp).builder.position();
    follower.begin_loop(interp, header)?;
    let trails = interp.trails();
    let state = state(interp);
    state.builder.open(true);
    state.turns.push(Turns { header, body: state.builder.mark(), trails, found: None });
    Ok(())
}

/// Called after a body has been evaluated: rewinds if it is evaluated again.
fn again(interp: &mut Interp<'_>) -> EvalResult<bool> {
    let Some(follower) = interp.follower.clone() else { return Ok(false) };
    let Some(mut turns) = state(interp).turns.pop() else { return Ok(false) };
    if !follower.next_iteration(interp, turns.header)? {
        return Ok(false);
    }
    // Findings reported once per location are reported in the first iteration.
    let found = *turns.found.get_or_insert(interp.diagnostics.len());
    interp.diagnostics.truncate(found);
    interp.take_back_trails(turns.trails);
    let state = state(interp);
    state.builder.rewind(&turns.body);
    state.turns.push(turns);
    Ok(true)
}

/// `if register:`, both blocks on the device.
pub(super) fn branch(
    interp: &mut Interp<'_>,
    condition: RegId,
    span: Span,
    then: Block<'_>,
    otherwise: Block<'_>,
) -> EvalResult<()> {
    let place = site(interp, span);
    let then = body(interp, false, None, place, then)?;
    let otherwise = body(interp, false, None, place, otherwise)?;
    state(interp).builder.statement(Control::If { condition, then, otherwise }, place);
    Ok(())
}

/// A loop on the device while a register is not 0: a statement, or a call of `function`.
pub(crate) fn repeat(
    interp: &mut Interp<'_>,
    condition: RegId,
    function: Option<&'static str>,
    span: Span,
    run: Block<'_>,
) -> EvalResult<()> {
    loop_allowed(interp, span)?;
    let place = site(interp, span);
    let body = body(interp, true, function, place, run)?;
    state(interp).builder.statement(Control::While { condition, body }, place);
    Ok(())
}

fn loop_allowed(interp: &mut Interp<'_>, span: Span) -> EvalResult<()> {
    if state(interp).no_reorder.is_empty() {
        return Ok(());
    }
    Err(Raise::at("dynamic-loop", "a loop on a register inside nl.no_reorder()", span, "this loop")
        .help("put `with nl.no_reorder():` inside the loop"))
}

impl DeviceCondition for Register {
    fn branch(&self, interp: &mut Interp<'_>, span: Span, then: Block<'_>, otherwise: Block<'_>) -> EvalResult<()> {
        let instead = "it raises TypeError since NKI 0.7: compute a mask with instructions on a tensor";
        reject(interp, span, "`if` on a register", instead);
        branch(interp, self.id, span, then, otherwise)
    }

    fn repeat(&self, interp: &mut Interp<'_>, span: Span, run: Block<'_>) -> EvalResult<()> {
        reject(interp, span, "`while` on a register", "write nl.while_loop(register, body): it was removed in NKI 0.7");
        repeat(interp, self.id, None, span, run)
    }
}

impl DynamicRange {
    /// The loop with its variable in this register: a statement, or a call of `function`.
    pub(crate) fn run(
        &self,
        interp: &mut Interp<'_>,
        variable: RegId,
        function: Option<&'static str>,
        span: Span,
        block: Block<'_>,
    ) -> EvalResult<()> {
        loop_allowed(interp, span)?;
        let place = site(interp, span);
        let body = body(interp, true, function, place, block)?;
        let control = Control::For { variable, lower: self.lower, upper: self.upper, step: self.step, body };
        state(interp).builder.statement(control, place);
        Ok(())
    }
}

impl DeviceRange for DynamicRange {
    fn begin(&self, interp: &mut Interp<'_>, span: Span) -> EvalResult<Value> {
        loop_allowed(interp, span)?;
        // The trail of the loop comes before those of its body.
        site(interp, span);
        let id = state(interp).builder.register();
        begin(interp)?;
        Ok(Value::object(Register { id, frozen: true }))
    }

    fn again(&self, interp: &mut Interp<'_>) -> EvalResult<bool> {
        again(interp)
    }

    fn end(&self, interp: &mut Interp<'_>, variable: &Value, span: Span, complete: bool) {
        let body = state(interp).builder.close();
        let Some(variable) = variable.downcast::<Register>().filter(|_| complete) else {
            state(interp).turns.pop();
            return;
        };
        let place = site(interp, span);
        let variable = variable.id;
        let control = Control::For { variable, lower: self.lower, upper: self.upper, step: self.step, body };
        state(interp).builder.statement(control, place);
    }
}

impl Object for DynamicRange {
    fn type_name(&self) -> &'static str {
        "dynamic_range"
    }

    fn is_inert(&self) -> bool {
        true
    }

    fn iterate(&self, span: Span) -> EvalResult<Vec<Value>> {
        Err(Raise::at("dynamic-loop", "nl.dynamic_range can only be the range of a `for` statement", span, "here"))
    }

    fn range(&self) -> Option<&dyn DeviceRange> {
        Some(self)
    }
}

impl Object for Register {
    fn type_name(&self) -> &'static str {
        "register"
    }

    fn class(&self) -> Option<Value> {
        ApiClass::of(self)
    }

    fn repr(&self) -> String {
        format!("<register {}>", self.id.0)
    }

    fn hash_key(&self) -> Option<Key> {
        Some(Key::Name(format!("register {}", self.id.0)))
    }

    fn unknown_number(&self) -> Option<&'static str> {
        Some("a register's value exists only on the device; nl.fori_loop takes it as a bound")
    }

    fn no_attribute(&self, _interp: &Interp<'_>, name: &str, span: Span) -> Box<Raise> {
        let message = format!("a register has no attribute `{name}`");
        Raise::new(Diagnostic::error("unknown-attribute", message).at(span, "here").help(REGISTER_HELP))
    }

    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, _index: &Value, span: Span) -> EvalResult<Value> {
        Err(Raise::at("register-arithmetic", "a register cannot be indexed", span, "here").help(REGISTER_HELP))
    }

    fn follows_dialect(&self) -> bool {
        true
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<Register>().is_some_and(|r| r.id == self.id)
    }

    fn truth(&self, _interp: &mut Interp<'_>, _this: &Value, span: Span) -> EvalResult<bool> {
        Err(Raise::at(
            "register-arithmetic",
            "the value of a register is not known when the kernel is specialised",
            span,
            "used as a condition here",
        )
        .help("only `if register:` and `while register:` run on the device"))
    }

    fn iterate(&self, span: Span) -> EvalResult<Vec<Value>> {
        Err(Raise::at("register-arithmetic", "a register cannot be iterated over", span, "here")
            .help("for i in nl.dynamic_range(register): ..."))
    }

    fn condition(&self) -> Option<&dyn DeviceCondition> {
        Some(self)
    }
}
