//! Findings about values: converts the observations of a [`Watch`] to diagnostics.

use std::sync::Arc;

use nki_diag::Diagnostic;
use nki_isa::ids::Loc;
use nki_isa::inst::math::activation::ActFn;
use nki_isa::inst::math::extent::{LARGEST, NewNonFinite, magnitude};
use nki_isa::inst::{Footprint, Inst};
use nki_isa::program::{Node, NodeKind};
use nki_isa::schema::Role;
use nki_isa::{Arg, DType, Program, Space, TensorId, View};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::checks::Checks;
use super::findings::{self, operands};
use super::interpreter::Interpreter;
use super::rows::inspect_integers;
use super::values::{Argument, Arguments, Clipped, Inexact, Limit, NonFiniteElement, Registers, Watch};
use crate::labels::Labels;
use crate::memory::access::Access;
use crate::memory::elements::Codec;

/// State of value findings that persists between instructions.
#[derive(Debug, Default)]
pub(super) struct ValueFindings {
    checks: Checks,
    /// (finding, location of the instruction, location of the tensor): unrolled iterations repeat findings.
    seen: FxHashSet<(&'static str, Loc, Loc)>,
    /// An infinity has been reported: values computed from infinities may be consequences.
    infinity: bool,
    registers: Arc<Registers>,
    /// Arguments of the activation function in the current instruction.
    arguments: Option<Arc<Arguments>>,
}

impl ValueFindings {
    pub(super) fn new(checks: Checks) -> Self {
        ValueFindings { checks, ..ValueFindings::default() }
    }

    pub(super) fn checks(&self) -> Checks {
        self.checks
    }

    /// Whether infinities and NaN produced by an instruction are checked at all.
    pub(super) fn wants_non_finite_at(&self, node: Option<&Node>) -> bool {
        self.checks.non_finite && node.is_some()
    }

    /// Whether infinities and NaN that an instruction writes to a tensor are still unreported.
    pub(super) fn wants_non_finite(&self, inst: Loc, tensor: Loc) -> bool {
        self.checks.non_finite && !self.seen.contains(&("non-finite", inst, tensor))
    }
}

/// A finding that is about to be reported.
pub(super) struct ValueSite<'a> {
    pub(super) node: &'a Node,
    pub(super) loops: &'a [(Loc, u32)],
    pub(super) to: &'a [Access],
    pub(super) from: &'a [Access],
}

/// A value formatted for a message.
fn show(x: f32) -> String {
    if x.is_nan() { "NaN".into() } else { format!("{x:?}").trim_end_matches(".0").to_owned() }
}

/// A value beyond every integer type, with all digits: the shortest text of 2^31 ends with zeros.
pub(super) fn show_integer(x: f32) -> String {
    if x.fract() == 0.0 && x.abs() < 1e16 { show_exact(f64::from(x)) } else { show(x) }
}

fn show_exact(x: f64) -> String {
    format!("{x:?}").trim_end_matches(".0").to_owned()
}

/// The names of the operands that are accessed.
fn names(node: &Node, accesses: &[Access], written: bool) -> Vec<&'static str> {
    let mut left = operands(node);
    left.retain(|(operand, _)| operand.role != if written { Role::In } else { Role::Out });
    let mut name = |a: &Access| {
        let same = |v: &View| v.tensor == a.tensor && v.elements() == a.elements();
        let i = left.iter().position(|(_, v)| same(v) && v.dtype == a.codec.dtype);
        let i = i.or_else(|| left.iter().position(|(_, v)| v.tensor == a.tensor));
        i.map_or("an operand", |i| left.remove(i).0.name)
    };
    accesses.iter().map(&mut name).collect()
}

/// The instruction with its operators and the numbers among its scalar operands: "`activation` (op=exp, scale=2)".
fn instruction(node: &Node) -> String {
    let NodeKind::Inst(inst) = &node.kind else { return "`loop`".into() };
    let schema = inst.schema();
    let mut parts = Vec::new();
    for (arg, operand) in inst.args().iter().zip(schema.operands) {
        let default = operand.default.map(|d| d());
        if default.as_ref() == Some(arg) {
            continue;
        }
        match arg {
            Arg::Name(n) if operand.name.contains("op") => parts.push(format!("{}={n}", operand.name)),
            Arg::Float(x) if operand.role == Role::In => {
                parts.push(format!("{}={}", operand.name, show(*x as f32)));
            }
            Arg::Int(x) if operand.role == Role::In => parts.push(format!("{}={x}", operand.name)),
            _ => {}
        }
    }
    let name = schema.name;
    if parts.is_empty() { format!("`{name}`") } else { format!("`{name}` ({})", parts.join(", ")) }
}

/// Description of an element's position in an access.
fn place(access: &Access, space: Space, row: usize, element: usize) -> String {
    if space.is_on_chip() {
        format!("partition {row}, element {element}")
    } else {
        format!("element {}", row * access.width() + element)
    }
}

/// The largest number of a type.
fn largest(dtype: DType) -> String {
    let by_bits = |b: &u32| {
        let x = nki_isa::dtype::bits_to_f32(dtype, *b);
        if x.is_finite() { x } else { 0.0 }
    };
    match dtype.size() {
        1 => (0..256).map(|b| by_bits(&b)).fold(0.0, f32::max),
        2 => (0..65536).map(|b| by_bits(&b)).fold(0.0, f32::max),
        _ => f32::MAX,
    }
    .to_string()
}

/// Whether an instruction writes memory or registers; others (a print) compute nothing.
fn has_results(inst: &Inst) -> bool {
    let mut footprint = Footprint::default();
    inst.footprint(&mut footprint);
    !footprint.writes.is_empty() || !footprint.register_writes.is_empty()
}

/// Whether an instruction copies memory to a register.
fn loads_register(inst: &Inst) -> bool {
    let mut footprint = Footprint::default();
    inst.footprint(&mut footprint);
    !footprint.reads.is_empty() && !footprint.register_writes.is_empty()
}

impl<'p> Interpreter<'p> {
    /// A watch over the values of the current instruction, which reads `from` and writes `to`; `None` if nothing can be found.
    pub(super) fn watch(&mut self, to: &[Access], from: &[Access], moves: bool) -> Option<Box<Watch<'p>>> {
        let mut checks = self.values.checks;
        if checks == Checks::NONE {
            return None;
        }
        let arguments = self.values.arguments.take();
        let node = self.core.node?;
        let mut muted = false;
        if !self.values.seen.is_empty()
            && let Some(to) = to.first()
        {
            let tensor = self.program.tensor(to.tensor).loc;
            let seen = |slug| self.values.seen.contains(&(slug, node.loc, tensor));
            muted = seen("non-finite");
            checks.non_finite &= !muted;
            checks.saturated_store &= !seen("saturated-store");
            checks.inexact_integer &= !seen("inexact-integer");
        }
        let codecs = |all: &[Access]| -> SmallVec<[Codec; 4]> { all.iter().map(|a| a.codec).collect() };
        let (to, from) = (codecs(to), codecs(from));
        let registers = &self.values.registers;
        let loops = &self.core.loops[..];
        let mut watch = Watch::new((node, loops), checks, &to, &from, (moves, muted), registers);
        if arguments.is_some() && watch.is_none() {
            watch = Some(Watch::of_arguments(node, loops));
        }
        if let Some(watch) = &mut watch {
            watch.arguments = arguments;
        }
        watch.map(Box::new)
    }

    /// See [`nki_isa::Machine::watch_arguments`].
    pub(super) fn arguments(&mut self, op: ActFn) -> Option<Arc<Arguments>> {
        let node = self.core.node?;
        let values = &mut self.values;
        values.arguments = None;
        if values.checks.activation_range && !values.seen.contains(&("activation-range", node.loc, node.loc)) {
            values.arguments = Arguments::of(op, values.checks.non_finite).map(Arc::new);
        }
        values.arguments.clone()
    }

    /// Reports the findings of a watch.
    pub(super) fn report_values(&mut self, watch: &Watch<'_>, to: &[Access], from: &[Access]) {
        let at = ValueSite { node: watch.node, loops: &watch.loops, to, from };
        if let Some(found) = watch.inexact.take() {
            self.report_inexact(&at, &found);
        }
        if let Some(arguments) = &watch.arguments
            && let Some(found) = arguments.first.take()
        {
            self.report_argument(&at, arguments, &found);
        }
        if let Some(found) = watch.arose.take() {
            self.report_non_finite(&at, &found);
        }
        if let Some(found) = watch.clipped.take() {
            self.report_clipped(&at, &found);
        }
    }

    /// Whether a finding of this kind is the first of its line and tensor.
    fn is_first(&mut self, slug: &'static str, at: &ValueSite<'_>) -> bool {
        let tensor = at.to.first().map_or(at.node.loc, |to| self.program.tensor(to.tensor).loc);
        self.values.seen.insert((slug, at.node.loc, tensor))
    }

    fn report_value(&mut self, slug: &'static str, at: &ValueSite<'_>, message: String, label: String, help: &str) {
        let loc = at.node.loc;
        let mut out = Diagnostic::warning(slug, message).at_source(loc, label);
        if !help.is_empty() {
            out = out.help(help);
        }
        if let Some(where_) = findings::iterations(self.program, at.node, at.loops) {
            out = out.note(format!("in {where_}"));
        }
        self.findings.list.push(out);
    }

    /// "first at partition 3, element 17 of `dst` (`t`)".
    fn first_at(&self, at: &ValueSite<'_>, output: usize, row: usize, element: usize) -> String {
        let Some(to) = at.to.get(output) else { return "first in the result".into() };
        let tensor = self.program.tensor(to.tensor);
        let name = names(at.node, at.to, true).get(output).copied().unwrap_or("dst");
        format!("first at {} of `{name}` (`{}`)", place(to, tensor.space, row, element), tensor.name)
    }

    fn name_of_tensor(&self, tensor: TensorId) -> &'p str {
        let program: &'p Program = self.program;
        &program.tensor(tensor).name
    }

    pub(super) fn report_non_finite(&mut self, at: &ValueSite<'_>, found: &NonFiniteElement) {
        if found.from_infinite && self.values.infinity && found.value.is_nan() {
            return;
        }
        if !self.is_first("non-finite", at) {
            return;
        }
        let what = instruction(at.node);
        let first = self.first_at(at, found.output, found.row, found.element);
        let to = at.to.get(found.output);
        if magnitude(found.value) <= LARGEST
            && let Some(to) = to
        {
            let dtype = to.codec.dtype;
            let stored = nki_isa::dtype::bits_to_f32(dtype, nki_isa::dtype::f32_to_bits(dtype, found.value));
            let (value, stored) = (show(found.value), show(stored));
            let limit = match dtype {
                DType::F8E8M0 => "which holds positive powers of two up to 2^127".to_owned(),
                _ => format!("whose largest number is {}", largest(dtype)),
            };
            let name = self.name_of_tensor(to.tensor);
            let message =
                format!("{what} stores {value} to `{name}` as {stored}: its dtype is {dtype}, {limit}; {first}");
            self.values.infinity |= stored.contains("inf");
            let help = "clamp the values, scale them, or use a type with a larger range";
            return self.report_value("non-finite", at, message, format!("{value} becomes {stored} here"), help);
        }
        let value = show(found.value);
        self.values.infinity |= found.value.is_infinite();
        let named = names(at.node, at.from, false);
        let operand = |(n, x): &(usize, f32)| format!("`{}` = {}", named.get(*n).unwrap_or(&"an operand"), show(*x));
        let operands: Vec<String> = found.operands.iter().map(operand).collect();
        let of = if found.from_infinite { "from operands without NaN" } else { "from finite operands" };
        let listed = if operands.is_empty() { String::new() } else { format!(": {}", operands.join(", ")) };
        let message = format!("{what} produces {value} {of}{listed}; {first}");
        let help = match () {
            () if found.from_infinite => {
                "mask with a large finite number instead of infinity, so that no row is all infinite"
            }
            () if what.contains("exp") => "subtract the row's maximum before exp",
            () => "",
        };
        self.report_value("non-finite", at, message, format!("{value} arises here"), help);
    }

    /// A value of a tile that an instruction writes is clipped.
    pub(super) fn report_clipped_tile(&mut self, node: &Node, to: &Access, at: usize, value: f32) {
        if self.values.checks.saturated_store {
            let (row, element) = (at / to.width().max(1), at % to.width().max(1));
            let loops = self.core.loops.clone();
            let place = ValueSite { node, loops: &loops, to: std::slice::from_ref(to), from: &[] };
            self.report_clipped(&place, &Clipped { row, element, output: 0, value });
        }
    }

    /// Checks a copy between types, which is executed immediately.
    pub(super) fn inspect_copy(&mut self, to: &Access, from: &Access) {
        let (to, from) = (std::slice::from_ref(to), std::slice::from_ref(from));
        let Some(watch) = self.watch(to, from, true) else { return };
        inspect_integers(self.memory(), &watch, from);
        let mut values = self.memory().tile(&from[0]);
        // Rows and elements of the destination: the shapes may differ.
        let width = to[0].width().max(1);
        values.chunks_exact_mut(width).enumerate().for_each(|(row, values)| watch.row(row, &[], &[values]));
        self.report_values(&watch, to, from);
    }

    /// Checks a whole source that an instruction reads in fp32.
    pub(super) fn inspect_read(&mut self, from: &Access) {
        let Some(node) = self.core.node else { return };
        let word = matches!(from.codec.dtype, DType::I32 | DType::U32);
        let NodeKind::Inst(inst) = &node.kind else { return };
        if !word || !self.values.checks.inexact_integer || !has_results(inst) {
            return;
        }
        let from = std::slice::from_ref(from);
        if let Some(watch) = self.watch(&[], from, true) {
            inspect_integers(self.memory(), &watch, from);
            self.report_values(&watch, &[], from);
        }
    }

    /// Reports a result of exact int32 arithmetic that exceeds its range. `outs` has the results of each destination, row by row. Unsigned integers
    /// are excluded: they may be intended as arithmetic modulo 2^32.
    pub(super) fn inspect_integer_results(&mut self, to: &[Access], outs: &[Vec<i64>]) {
        let (Some(node), true) = (self.core.node, self.values.checks.wrapped_integer) else { return };
        let NodeKind::Inst(inst) = &node.kind else { return };
        let wraps = |v: &i64| i32::try_from(*v).is_err();
        for (output, (a, values)) in to.iter().zip(outs).enumerate() {
            if a.codec.dtype != DType::I32 {
                continue;
            }
            let Some(first) = values.iter().position(wraps) else { continue };
            let loops = self.core.loops.clone();
            let at = ValueSite { node, loops: &loops, to, from: &[] };
            if !inst.values().exact.is_some_and(|exact| exact.is_arithmetic()) || !self.is_first("wrapped-integer", &at)
            {
                continue;
            }
            let (value, width) = (values[first], a.width().max(1));
            let (what, name) = (instruction(node), self.name_of_tensor(a.tensor));
            let place = self.first_at(&at, output, first / width, first % width);
            let becomes = value as i32;
            let message = format!("{what} stores {value} to `{name}` as {becomes}: int32 wraps modulo 2^32; {place}");
            let help = "keep the numbers below 2^31, or use uint32 tiles if arithmetic modulo 2^32 is meant";
            self.report_value("wrapped-integer", &at, message, format!("{value} becomes {becomes} here"), help);
        }
    }

    /// Reports a register that receives the bits of a float.
    pub(super) fn inspect_register_load(&mut self, from: &Access, bytes: &[u8]) {
        let Some(node) = self.core.node else { return };
        let NodeKind::Inst(inst) = &node.kind else { return };
        if !from.codec.dtype.is_float() || !loads_register(inst) {
            return;
        }
        let loops = self.core.loops.clone();
        let at = ValueSite { node, loops: &loops, to: &[], from: std::slice::from_ref(from) };
        if self.is_first("float-register", &at) {
            let mut value = [0.0];
            from.codec.to_f32(bytes, &mut value);
            let bits = nki_isa::dtype::read_bits(bytes);
            let tensor = self.program.tensor(from.tensor);
            let value = show(value[0]);
            let message = format!(
                "`{}` copies the bits of `src` (`{}`), which is {}: {value} becomes {bits}",
                inst.schema().name,
                tensor.name,
                from.codec.dtype
            );
            let help = "convert the value to int32 first, with nisa.tensor_copy";
            self.report_value("float-register", &at, message, "loads the bits of a float".into(), help);
        }
    }

    /// Reports a memset value that is not finite in the tensor's type.
    pub(super) fn inspect_fill(&mut self, to: &Access, value: f32) {
        let (Some(node), Limit::Magnitude(limit)) = (self.core.node, Limit::of(to.codec)) else { return };
        let new = NewNonFinite { limit, arises: false };
        if self.values.checks.non_finite && new.is_new(value, 0) {
            let loops = self.core.loops.clone();
            let place = ValueSite { node, loops: &loops, to: std::slice::from_ref(to), from: &[] };
            let operands = SmallVec::new();
            self.report_non_finite(
                &place,
                &NonFiniteElement { row: 0, element: 0, output: 0, value, operands, from_infinite: false },
            );
        }
    }

    fn report_clipped(&mut self, at: &ValueSite<'_>, found: &Clipped) {
        let Some(to) = at.to.get(found.output) else { return };
        let (dtype, tensor) = (to.codec.dtype, to.tensor);
        let Some((low, high)) = dtype.int_range() else { return };
        if !self.is_first("saturated-store", at) {
            return;
        }
        let (value, limit) = (show_integer(found.value), if found.value < 0.0 { low } else { high });
        let what = instruction(at.node);
        let first = self.first_at(at, found.output, found.row, found.element);
        let name = self.name_of_tensor(tensor);
        let message = format!("{what} stores {value} to `{name}` as {limit}: {dtype} holds {low} to {high}; {first}");
        let help = "clamp or scale the values before they are stored, or use a wider type";
        self.report_value("saturated-store", at, message, format!("{value} becomes {limit} here"), help);
    }

    fn report_inexact(&mut self, at: &ValueSite<'_>, found: &Inexact) {
        if !self.is_first("inexact-integer", at) {
            return;
        }
        let (exact, value) = (show_exact(found.exact), show_exact(f64::from(found.value)));
        let what = instruction(at.node);
        if let (Some(dtype), Some(to)) = (found.narrow, at.to.first()) {
            let first = self.first_at(at, 0, found.row, found.element);
            let name = self.name_of_tensor(to.tensor);
            let message =
                format!("{what} stores the integer {exact} to `{name}` as {value}: its dtype is {dtype}; {first}");
            let help = "keep integers in an integer type or in float32";
            return self.report_value("inexact-integer", at, message, format!("{exact} becomes {value} here"), help);
        }
        let message = match found.source {
            Some(n) => {
                let name = names(at.node, at.from, false).get(n).copied().unwrap_or("an operand");
                let access = at.from.get(n);
                let first = access.map_or_else(String::new, |a| {
                    let tensor = self.program.tensor(a.tensor);
                    format!("; first at {} of `{}`", place(a, tensor.space, found.row, found.element), tensor.name)
                });
                format!("{what} computes in float32, where {exact} in `{name}` becomes {value}{first}")
            }
            None => {
                let first = self.first_at(at, 0, found.row, found.element);
                format!("{what} computes in float32: the result is {value} instead of {exact}; {first}")
            }
        };
        let help = "float32 holds all integers up to 2^24 = 16777216 only: use bitwise operators, split the numbers, or let GpSimd add 32-bit integers";
        self.report_value("inexact-integer", at, message, format!("{exact} becomes {value} here"), help);
    }

    fn report_argument(&mut self, at: &ValueSite<'_>, arguments: &Arguments, found: &Argument) {
        if !self.values.seen.insert(("activation-range", at.node.loc, at.node.loc)) {
            return;
        }
        let (value, name) = (show(found.value), nki_isa::names::Named::name(arguments.op));
        let what = instruction(at.node);
        let first = self.first_at(at, 0, found.row, found.element);
        let range = arguments.range.text;
        let message =
            format!("{what} applies {name} to {value}: the engine gives valid results within {range} only; {first}");
        let help = "keep the argument in range (clamp it, add an epsilon); the simulator gives the function's value";
        self.report_value("activation-range", at, message, format!("argument {value}"), help);
    }
}
