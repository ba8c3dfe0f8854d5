//! Checks the values that an instruction computes: new infinities and NaN, clipped values, integers that lose bits, function arguments
//! out of range.
//!
//! Threads call [`Watch::row`] with each row of results while it is in the cache. It makes one pass over the row, and reads the operands only if
//! a value is out of range. For each kind of finding the first row is kept, so the findings do not depend on the number of threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use nki_isa::DType;
use nki_isa::dtype::{bits_to_f32, f32_to_bits};
use nki_isa::ids::Loc;
use nki_isa::inst::math::activation::{self, ActFn};
use nki_isa::inst::math::extent::{self, INFINITE, NewNonFinite, magnitude};
use nki_isa::inst::values::{Feeds, Values};
use nki_isa::names::Named;
use nki_isa::program::{Node, NodeKind};
use smallvec::SmallVec;

use super::checks::Checks;
use crate::memory::elements::Codec;

/// The magnitude up to which fp32 represents every integer.
const EXACT: f32 = 16_777_216.0;

/// Values that a type of memory can hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    /// All relevant values.
    None,
    /// Smaller magnitudes: this one becomes infinity or NaN.
    Magnitude(u32),
    /// Smaller positive magnitudes (scales).
    Positive(u32),
    /// The half-open interval; values outside are clipped.
    Between(f32, f32),
}

/// By type: the smallest magnitude that is not finite in it.
static OVERFLOW: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let least = |dtype: DType| {
        if !dtype.is_float() {
            return INFINITE;
        }
        let finite = |bits: u32| bits_to_f32(dtype, f32_to_bits(dtype, f32::from_bits(bits))).is_finite();
        let (mut low, mut high) = (magnitude(1.0), INFINITE);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if finite(middle) { low = middle } else { high = middle }
        }
        high
    };
    let mut all = vec![INFINITE; DType::ALL.iter().map(|&d| d as usize + 1).max().unwrap_or(0)];
    DType::ALL.iter().for_each(|&d| all[d as usize] = least(d));
    all
});

impl Limit {
    /// Whether a finite number stays finite and is not clipped.
    fn holds(self, x: f32) -> bool {
        match self {
            Limit::None => true,
            Limit::Magnitude(m) => magnitude(x) < m,
            Limit::Positive(m) => x > 0.0 && magnitude(x) < m,
            Limit::Between(low, high) => low <= x && x < high,
        }
    }

    pub(super) fn of(codec: Codec) -> Limit {
        if codec.is_f32() {
            return Limit::Magnitude(INFINITE);
        }
        match (codec.dtype, codec.dtype.int_range()) {
            (DType::Bool, _) => Limit::None,
            // A value half above the highest rounds to an even number beyond it.
            (_, Some((low, high))) => Limit::Between((low as f64 - 0.5) as f32, (high as f64 + 0.5) as f32),
            (DType::F8E8M0, None) => Limit::Positive(OVERFLOW[codec.dtype as usize]),
            (d, None) if d.is_float() => Limit::Magnitude(OVERFLOW[d as usize]),
            _ => Limit::None,
        }
    }
}

/// A result that became infinity or NaN.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NonFiniteElement {
    pub(super) row: usize,
    pub(super) element: usize,
    /// The index of the destination.
    pub(super) output: usize,
    /// The value before it is rounded to the destination's type.
    pub(super) value: f32,
    /// A value of each source, by source number.
    pub(super) operands: SmallVec<[(usize, f32); 4]>,
    /// Some operand is infinite.
    pub(super) from_infinite: bool,
}

/// A value that was clipped.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clipped {
    pub(super) row: usize,
    pub(super) element: usize,
    pub(super) output: usize,
    pub(super) value: f32,
}

/// An integer that lost bits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Inexact {
    pub(super) row: usize,
    pub(super) element: usize,
    /// The source that holds it; `None` for the result.
    pub(super) source: Option<usize>,
    /// The destination type that cannot hold it, if only the conversion to it loses bits.
    pub(super) narrow: Option<DType>,
    pub(super) exact: f64,
    pub(super) value: f32,
}

/// An invalid argument of a function.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Argument {
    pub(super) row: usize,
    pub(super) element: usize,
    pub(super) value: f32,
}

/// The first finding of a kind, by row.
#[derive(Debug)]
pub(super) struct First<T> {
    row: AtomicUsize,
    found: Mutex<Option<T>>,
}

impl<T> Default for First<T> {
    fn default() -> Self {
        First { row: AtomicUsize::new(usize::MAX), found: Mutex::new(None) }
    }
}

impl<T> First<T> {
    /// Whether a finding in this row would be the first.
    fn precedes(&self, row: usize) -> bool {
        row < self.row.load(Ordering::Relaxed)
    }

    fn put(&self, row: usize, found: T) {
        let mut place = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if self.precedes(row) {
            self.row.store(row, Ordering::Relaxed);
            *place = Some(found);
        }
    }

    pub(super) fn take(&self) -> Option<T> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The arguments of an instruction's function.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) op: ActFn,
    pub(super) range: activation::ValidRange,
    /// Arguments with non-finite results are left to `non-finite`.
    finite_only: bool,
    pub(super) first: First<Argument>,
}

impl Arguments {
    pub(super) fn of(op: ActFn, finite_only: bool) -> Option<Arguments> {
        op.valid_range().map(|range| Arguments { op, range, finite_only, first: First::default() })
    }

    /// Checks a row of arguments.
    pub(super) fn row(&self, row: usize, arguments: &[f32]) {
        if !self.first.precedes(row) || !self.range.excludes_any(arguments) {
            return;
        }
        let bad = |x: f32| {
            let mut result = [x];
            let finite = !self.finite_only || {
                activation::apply(self.op, 0.0, &mut result);
                result[0].is_finite() || !x.is_finite()
            };
            !self.range.holds(x) && finite
        };
        if let Some(element) = arguments.iter().position(|&x| bad(x)) {
            self.first.put(row, Argument { row, element, value: arguments[element] });
        }
    }
}

/// The checks of one execution of an instruction.
#[derive(Debug)]
pub(super) struct Watch<'p> {
    pub(super) node: &'p Node,
    /// Dynamic loops around it: statement and iteration.
    pub(super) loops: SmallVec<[(Loc, u32); 2]>,
    pub(super) facts: Values<'p>,
    /// By destination.
    limits: SmallVec<[Limit; 2]>,
    /// All sources and destinations are integers of at most 32 bits, and a destination has 32: sums may be inexact.
    exact: bool,
    /// Sources of 32-bit integers, by number.
    wide: u32,
    /// The narrow float type to which the instruction converts 16- or 32-bit integers, if it does nothing else.
    narrow: Option<DType>,
    /// The state of the accumulators, if it uses them.
    registers: Option<Arc<Registers>>,
    pub(super) arguments: Option<Arc<Arguments>>,
    pub(super) arose: First<NonFiniteElement>,
    pub(super) clipped: First<Clipped>,
    pub(super) inexact: First<Inexact>,
}

/// The accumulators that may hold infinity or NaN. Each partition has its own, so threads do not conflict.
#[derive(Debug)]
pub(super) struct Registers([AtomicBool; 128]);

impl Default for Registers {
    fn default() -> Self {
        Registers(std::array::from_fn(|_| AtomicBool::new(false)))
    }
}

impl Registers {
    fn is_tainted(&self, partition: usize) -> bool {
        self.0.get(partition).is_none_or(|r| r.load(Ordering::Relaxed))
    }

    /// Marks all as unknown, after an instruction without checks has used them.
    pub(super) fn give_up(&self) {
        self.0.iter().for_each(|r| r.store(true, Ordering::Relaxed));
    }

    /// Updates a register with an instruction's result, combined with its old content if it `carries`.
    fn update(&self, partition: usize, carries: bool, tainted: bool) {
        if let Some(r) = self.0.get(partition) {
            r.store(tainted || carries && r.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

impl<'p> Watch<'p> {
    /// A watch for some kinds of findings; `None` if nothing can be found. An instruction that only `moves` values produces no new ones. A `muted`
    /// line already has a finding of infinity or NaN.
    pub(super) fn new(
        (node, loops): (&'p Node, &[(Loc, u32)]),
        checks: Checks,
        to: &[Codec],
        from: &[Codec],
        (moves, muted): (bool, bool),
        registers: &Arc<Registers>,
    ) -> Option<Watch<'p>> {
        let NodeKind::Inst(inst) = &node.kind else { return None };
        let mut facts = inst.values();
        if muted && facts.registers.is_some_and(|r| r.updates) {
            registers.give_up();
        }
        if moves {
            (facts.arises, facts.registers) = ([false, false], None);
        }
        let clips = |n: usize| checks.saturated_store && !facts.marks_absence[n.min(1)];
        // A move can overflow only if it rounds to a type with another range, or if an immediate does not fit.
        let same = |c: &Codec| {
            let limit = Limit::of(*c);
            !from.is_empty()
                && from.iter().all(|f| f.dtype == c.dtype)
                && facts.immediates.iter().all(|&x| !x.is_finite() || limit.holds(x))
        };
        let limit = |(n, c): (usize, &Codec)| match Limit::of(*c) {
            Limit::Magnitude(_) | Limit::Positive(_) if !checks.non_finite => Limit::None,
            Limit::Between(..) if !clips(n) || same(c) && !facts.arises[n.min(1)] => Limit::None,
            Limit::Magnitude(m) if !facts.arises[n.min(1)] && (m == INFINITE || same(c)) => Limit::None,
            limit => limit,
        };
        let limits: SmallVec<[Limit; 2]> = to.iter().enumerate().map(limit).collect();
        let integer = |c: &Codec| c.dtype.is_int() && c.dtype != DType::Bool;
        let word = |c: &Codec| matches!(c.dtype, DType::I32 | DType::U32);
        let exact = checks.inexact_integer
            && facts.exact.is_some()
            && to.iter().any(word)
            && from.iter().chain(to).all(integer);
        let wide = if checks.inexact_integer {
            from.iter().enumerate().filter(|(_, c)| word(c)).fold(0, |bits, (n, _)| bits | 1 << n.min(31))
        } else {
            0
        };
        let counts = |c: &Codec| matches!(c.dtype, DType::I16 | DType::U16 | DType::I32 | DType::U32);
        let is_narrow = |c: &&Codec| {
            matches!(c.dtype.size(), 1 | 2)
                && c.dtype.is_float()
                && !c.wide
                && c.dtype != DType::F8E8M0
                && !c.dtype.is_packed()
        };
        let converts = checks.inexact_integer && !facts.arises[0] && !from.is_empty() && from.iter().all(counts);
        let narrow = to.first().filter(is_narrow).filter(|_| converts).map(|c| c.dtype);
        let carries = facts.registers.is_some_and(|r| r.carries || r.updates) && checks.non_finite;
        if !(limits.iter().any(|l| *l != Limit::None) || exact || wide != 0 || narrow.is_some() || carries) {
            return None;
        }
        Some(Watch {
            node,
            loops: loops.iter().copied().collect(),
            registers: carries.then(|| Arc::clone(registers)),
            facts,
            limits,
            exact,
            wide,
            narrow,
            arguments: None,
            arose: First::default(),
            clipped: First::default(),
            inexact: First::default(),
        })
    }

    /// A watch only for the arguments of a function.
    pub(super) fn of_arguments(node: &'p Node, loops: &[(Loc, u32)]) -> Watch<'p> {
        Watch {
            node,
            loops: loops.iter().copied().collect(),
            facts: Values::moved(Feeds::Row),
            limits: SmallVec::new(),
            exact: false,
            wide: 0,
            narrow: None,
            registers: None,
            arguments: None,
            arose: First::default(),
            clipped: First::default(),
            inexact: First::default(),
        }
    }

    /// Whether source `n` holds 32-bit integers, which [`integers`](Self::integers) checks.
    pub(super) fn takes_integers(&self, n: usize) -> bool {
        n < 32 && self.wide & 1 << n != 0
    }

    /// Checks a row of 32-bit integers before it is converted to fp32.
    pub(super) fn integers(&self, row: usize, source: usize, values: &[i64]) {
        let absorbed = |v: i64| source == 0 && self.facts.exact.as_ref().is_some_and(|e| e.absorbs(v, v as f32));
        let inexact = |v: i64| v.unsigned_abs() > EXACT as u64 && v as f32 as i64 != v && !absorbed(v);
        if self.inexact.precedes(row)
            && let Some(element) = values.iter().position(|&v| inexact(v))
        {
            let (exact, value) = (values[element] as f64, values[element] as f32);
            self.inexact.put(row, Inexact { row, element, source: Some(source), narrow: None, exact, value });
        }
    }

    /// Checks the results of a row, not yet rounded to the types of the destinations.
    #[inline]
    pub(super) fn row(&self, row: usize, ins: &[&[f32]], outs: &[&mut [f32]]) {
        // Whether the first result contains infinity or NaN, if known.
        let mut not_finite = None;
        for (n, (out, limit)) in outs.iter().zip(&self.limits).enumerate() {
            match *limit {
                Limit::Magnitude(bits) => {
                    let reached = extent::any_at_least(out, bits);
                    if n == 0 && (bits == INFINITE || !reached) {
                        not_finite = Some(reached);
                    }
                    if reached {
                        self.exceeds(row, n, bits, ins, outs);
                    }
                }
                Limit::Between(low, high) if extent::any_outside(out, low, high) => self.clips(row, n, low, high, out),
                Limit::Positive(bits) => self.scales(row, n, bits, out),
                _ => {}
            }
        }
        if self.exact {
            self.sums(row, ins, outs);
        }
        if let (Some(dtype), Some(out)) = (self.narrow, outs.first()) {
            self.narrows(row, dtype, out);
        }
        if let (Some(state), Some(use_), Some(out)) = (&self.registers, self.facts.registers, outs.first())
            && use_.updates
        {
            let tainted = not_finite.unwrap_or_else(|| extent::any_at_least(out, INFINITE));
            state.update(row, use_.carries, tainted);
        }
    }

    /// Reports integers that the conversion to the destination's type changes.
    fn narrows(&self, row: usize, dtype: DType, out: &[f32]) {
        if !self.inexact.precedes(row) {
            return;
        }
        let stored = |x: f32| bits_to_f32(dtype, f32_to_bits(dtype, x));
        if let Some(element) = out.iter().position(|&x| stored(x) != x && stored(x).is_finite()) {
            let (exact, value) = (f64::from(out[element]), stored(out[element]));
            self.inexact.put(row, Inexact { row, element, source: None, narrow: Some(dtype), exact, value });
        }
    }

    fn clips(&self, row: usize, output: usize, low: f32, high: f32, out: &[f32]) {
        if self.clipped.precedes(row)
            && let Some(element) = out.iter().position(|&x| x < low || x >= high)
        {
            self.clipped.put(row, Clipped { row, element, output, value: out[element] });
        }
    }

    /// Scale types hold only positive numbers; others become NaN.
    fn scales(&self, row: usize, output: usize, bits: u32, out: &[f32]) {
        let bad = |x: f32| x.is_finite() && (x <= 0.0 || magnitude(x) >= bits);
        if self.arose.precedes(row)
            && let Some(element) = out.iter().position(|&x| bad(x))
        {
            let value = out[element];
            self.arose.put(
                row,
                NonFiniteElement { row, element, output, value, operands: SmallVec::new(), from_infinite: false },
            );
        }
    }

    fn sums(&self, row: usize, ins: &[&[f32]], outs: &[&mut [f32]]) {
        let (Some(result), Some(out)) = (&self.facts.exact, outs.first()) else { return };
        if !self.inexact.precedes(row) || extent::max_magnitude(out) < magnitude(EXACT) {
            return;
        }
        for (element, &value) in out.iter().enumerate() {
            if value.abs() >= EXACT
                && let Some(exact) = result.result(ins, out.len(), element)
                && exact != f64::from(value)
            {
                return self.inexact.put(row, Inexact { row, element, source: None, narrow: None, exact, value });
            }
        }
    }

    /// Reports a result that is not finite in its type, if this is new.
    #[cold]
    fn exceeds(&self, row: usize, output: usize, limit: u32, ins: &[&[f32]], outs: &[&mut [f32]]) {
        if !self.arose.precedes(row) {
            return;
        }
        let new = NewNonFinite { limit, arises: self.facts.arises[output.min(1)] };
        let out = &*outs[output];
        let constant = self.facts.immediates.iter().map(|&x| magnitude(x)).max().unwrap_or(0);
        if output > 0 {
            // The second result is a reduction of the first.
            let carried = self.facts.registers.is_some_and(|r| r.carries)
                && self.registers.as_ref().is_some_and(|r| r.is_tainted(row));
            let row_cover =
                ins.iter().map(|i| extent::max_magnitude(i)).chain([constant, extent::max_magnitude(outs[0])]).max();
            let cover = if carried { u32::MAX } else { row_cover.unwrap_or(0) };
            if let Some(element) = out.iter().position(|&x| new.is_new(x, cover)) {
                let operands = SmallVec::new();
                let from_infinite = cover >= INFINITE;
                self.arose
                    .put(row, NonFiniteElement { row, element, output, value: out[element], operands, from_infinite });
            }
            return;
        }
        let cover = cover(self.facts.feeds, constant, ins, out.len());
        let Some(element) = extent::first_new_non_finite(out, &cover, new) else { return };
        let operands = self.operands(ins, out.len(), element);
        let from_infinite = cover[element] >= INFINITE;
        self.arose.put(row, NonFiniteElement { row, element, output, value: out[element], operands, from_infinite });
    }

    /// For each source, the value that contributes to an element: the corresponding one, or the one of the largest magnitude.
    fn operands(&self, ins: &[&[f32]], results: usize, element: usize) -> SmallVec<[(usize, f32); 4]> {
        let largest = |row: &[f32]| row.iter().copied().max_by_key(|&x| magnitude(x));
        let pick = |row: &[f32]| match self.facts.feeds {
            _ if row.len() == 1 => Some(row[0]),
            Feeds::Elements | Feeds::Prefix if row.len() == results => Some(row[element]),
            Feeds::Groups if results > 0 => {
                let group = row.len() / results;
                largest(&row[element * group..((element + 1) * group).min(row.len())])
            }
            _ => largest(row),
        };
        ins.iter().enumerate().filter_map(|(n, row)| Some((n, pick(row)?))).collect()
    }
}

/// The largest magnitude among the values that contribute to each of `results` elements.
fn cover(feeds: Feeds, constant: u32, ins: &[&[f32]], results: usize) -> Vec<u32> {
    let single = ins.iter().filter(|i| i.len() == 1).map(|i| magnitude(i[0])).fold(constant, u32::max);
    let mut cover = vec![single; results];
    for row in ins.iter().filter(|i| i.len() != 1 || results == 1) {
        match feeds {
            Feeds::Elements | Feeds::Prefix if row.len() == results => extent::raise_to(&mut cover, row),
            Feeds::Groups if results > 0 && row.len() >= results => {
                let group = row.len() / results;
                for (c, group) in cover.iter_mut().zip(row.chunks_exact(group)) {
                    *c = (*c).max(extent::max_magnitude(group));
                }
            }
            _ => {
                let most = extent::max_magnitude(row);
                cover.iter_mut().for_each(|c| *c = (*c).max(most));
            }
        }
    }
    if feeds == Feeds::Prefix {
        let mut before = 0;
        for c in &mut cover {
            before = before.max(*c);
            *c = before;
        }
    }
    cover
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_where_a_type_ends() {
        let limit = |dtype| Limit::of(Codec { dtype, wide: false });
        let magnitude_of = |x: f32| Limit::Magnitude(magnitude(x));
        assert_eq!(limit(DType::F32), Limit::Magnitude(INFINITE));
        assert_eq!(limit(DType::F16), magnitude_of(65520.0));
        assert_eq!(limit(DType::BF16), Limit::Magnitude(0x7f7f_8000));
        assert_eq!(limit(DType::F8E5M2), magnitude_of(61440.0));
        assert_eq!(limit(DType::F8E4M3), magnitude_of(248.0));
        assert_eq!(limit(DType::F8E4M3FN), Limit::Magnitude(magnitude(464.0) + 1));
        assert_eq!(limit(DType::I8), Limit::Between(-128.5, 127.5));
        assert_eq!(limit(DType::U16), Limit::Between(-0.5, 65535.5));
        assert_eq!(limit(DType::I32), Limit::Between(-2_147_483_648.0, 2_147_483_648.0));
        assert_eq!(Limit::of(Codec { dtype: DType::F16, wide: true }), Limit::Magnitude(INFINITE));
    }

    #[test]
    fn an_element_depends_on_what_feeds_it() {
        let (big, row, one) = (magnitude(9.0), [1.0, -9.0, 2.0, 3.0], [4.0]);
        let m = magnitude;
        assert_eq!(cover(Feeds::Elements, 0, &[&row, &one], 4), [m(4.0), big, m(4.0), m(4.0)]);
        assert_eq!(cover(Feeds::Prefix, 0, &[&row], 4), [m(1.0), big, big, big]);
        assert_eq!(cover(Feeds::Groups, 0, &[&row], 2), [big, m(3.0)]);
        assert_eq!(cover(Feeds::Row, 0, &[&row], 3), [big; 3]);
        assert_eq!(cover(Feeds::Elements, m(5.0), &[&one], 1), [m(5.0)]);
    }

    #[test]
    fn the_first_row_is_kept_whatever_comes_first() {
        let first = First::default();
        for row in [70, 3, 64, 5] {
            if first.precedes(row) {
                first.put(row, row);
            }
        }
        assert_eq!(first.take(), Some(3));
    }
}
