//! Taint tracking of unwritten memory from reads to the outputs.
//!
//! Tracking starts at the first such read, so a kernel without one pays nothing. From then on each byte that an instruction writes is
//! tainted if its sources are: element by element if results and operands have the same elements, by row or column if the
//! instruction works so, else the whole result. The value must confirm the taint: an output element counts only if it still holds the
//! value of unwritten memory, NaN or the pattern of integers. So does an element that an instruction selects by a condition.

use nki_isa::ids::Loc;
use nki_isa::inst::values::Feeds;
use nki_isa::inst::{Footprint, Inst};
use nki_isa::names::{Engine, OobMode};
use nki_isa::program::NodeKind;
use nki_isa::{TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};

use super::interpreter::Interpreter;
use crate::memory::access::{Access, Shift};
use crate::memory::elements;

/// Tainted bytes, and the location of their first read.
#[derive(Debug)]
pub(super) struct Taint {
    /// By storage: its size, and one flag for each of its bytes.
    storages: FxHashMap<usize, Vec<bool>>,
    /// The first read of unwritten memory.
    pub(super) read: Loc,
    pub(super) tensor: TensorId,
    /// The cores' engines whose accumulators are tainted.
    accumulators: FxHashSet<(u32, Engine)>,
    /// Whether taint has reached a register, or a result by way of accumulators, where it is not tracked.
    escaped: bool,
}

/// The elements of an output that depend on unwritten memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) elements: usize,
    /// The first, in row-major order.
    pub(super) first: usize,
}

impl Taint {
    fn bytes(&mut self, storage: usize, length: usize) -> &mut Vec<bool> {
        let bytes = self.storages.entry(storage).or_default();
        if bytes.len() != length {
            // The storage now belongs to another tensor.
            bytes.clear();
            bytes.resize(length, false);
        }
        bytes
    }

    /// The effect of an instruction of `core` on registers and accumulators. `tainted`: whether it reads tainted elements.
    fn keep(&mut self, core: u32, inst: &Inst, footprint: &Footprint<'_>, tainted: bool) {
        self.escaped |= tainted && keeps_what_it_reads(footprint);
        let Some(used) = inst.accumulators() else { return };
        let place = (core, used.engine);
        self.escaped |= used.reads && self.accumulators.contains(&place);
        if used.resets || used.clobbers {
            self.accumulators.remove(&place);
        }
        if used.sets && tainted {
            self.accumulators.insert(place);
        }
    }
}

/// Whether an instruction stores what it reads in a register, where taint is not tracked.
pub(super) fn keeps_what_it_reads(footprint: &Footprint<'_>) -> bool {
    !footprint.register_writes.is_empty()
}

/// Dependence of a result's elements on those of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mapping {
    Elements,
    Rows,
    /// Column `n` of the operand goes to row `n` of the result.
    ColumnsToRows,
    Columns,
    Transposed,
    All,
}

fn mapping(feeds: Feeds, nth: usize, from: &Access, to: &Access) -> Mapping {
    match feeds {
        Feeds::Product if to.tensor == from.tensor => Mapping::Elements,
        Feeds::Product if nth == 0 && from.width() == to.partitions() => Mapping::ColumnsToRows,
        Feeds::Product if nth == 1 && from.width() == to.width() => Mapping::Columns,
        Feeds::Transposed if from.partitions() == to.width() => Mapping::Transposed,
        Feeds::Columns if from.width() == to.width() => Mapping::Columns,
        Feeds::Elements if from.elements() == to.elements() => Mapping::Elements,
        _ if from.partitions() == to.partitions() => Mapping::Rows,
        _ => Mapping::All,
    }
}

/// Taints the elements of a result, rows of `width`, that depend on tainted elements of an operand, rows of `from_width`. Each row or column of the
/// result is filled only once, because it may depend on all elements of a long tile.
fn spread(mapping: Mapping, flags: &[bool], from_width: usize, result: &mut [bool], width: usize) {
    let any = |row: &[bool]| row.contains(&true);
    match mapping {
        Mapping::Elements => result.iter_mut().zip(flags).for_each(|(r, f)| *r |= f),
        Mapping::Rows => {
            for (row, _) in flags.chunks(from_width).enumerate().filter(|(_, row)| any(row)) {
                result[row * width..(row + 1) * width].fill(true);
            }
        }
        Mapping::ColumnsToRows => {
            for (column, _) in columns(flags, from_width).into_iter().enumerate().filter(|(_, tainted)| *tainted) {
                result[column * width..(column + 1) * width].fill(true);
            }
        }
        Mapping::Columns => {
            let columns = columns(flags, from_width);
            for row in result.chunks_mut(width) {
                row.iter_mut().zip(&columns).for_each(|(r, c)| *r |= c);
            }
        }
        Mapping::Transposed => {
            for (i, _) in flags.iter().enumerate().filter(|(_, flag)| **flag) {
                if let Some(flag) = result.get_mut(i % from_width * width + i / from_width) {
                    *flag = true;
                }
            }
        }
        Mapping::All => result.fill(true),
    }
}

/// The columns with a tainted element.
fn columns(flags: &[bool], width: usize) -> Vec<bool> {
    let mut tainted = vec![false; width];
    for row in flags.chunks(width) {
        tainted.iter_mut().zip(row).for_each(|(t, f)| *t |= f);
    }
    tainted
}

impl Interpreter<'_> {
    /// Calls `f` with the flags of each element of an access.
    fn each_flag(&mut self, access: &Access, mut f: impl FnMut(usize, &mut [bool])) {
        let Some(taint) = &mut self.taint else { return };
        let (pitch, length, scale) = self.deferred.account().extent(access.storage);
        let size = access.codec.dtype.size();
        let bytes = taint.bytes(access.storage, length);
        let mut element = 0;
        for i in 0..access.rows {
            let Some((row, start)) = access.start(i) else {
                element += access.per_row;
                continue;
            };
            elements::each_run(start, &access.inner, size, &mut |at, step| {
                let mut at = at;
                for _ in 0..step.count {
                    let from = row * pitch + at * scale;
                    if let Some(flags) = bytes.get_mut(from..from + size) {
                        f(element, flags);
                    }
                    element += 1;
                    at = at.wrapping_add_signed(step.stride);
                }
            });
        }
    }

    /// Taints the unwritten elements that an instruction reads.
    pub(super) fn taint_unwritten(&mut self, view: &View, access: &Access) {
        if !self.values.checks().uninitialized_output {
            return;
        }
        let (read, tensor) = (self.core.node.map_or(self.program.tensor(view.tensor).loc, |n| n.loc), view.tensor);
        self.taint.get_or_insert_with(|| {
            let (storages, accumulators) = (FxHashMap::default(), FxHashSet::default());
            Box::new(Taint { storages, read, tensor, accumulators, escaped: false })
        });
        let missing = self.deferred.account().unwritten_elements(access);
        self.each_flag(access, |element, flags| flags.iter_mut().for_each(|f| *f |= missing[element]));
    }

    /// Taints the results of an executed instruction whose sources are tainted.
    pub(super) fn spread_taint(&mut self, inst: &Inst) {
        if self.taint.is_none() {
            return;
        }
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        let mut sources: Vec<(Access, Vec<bool>)> = Vec::new();
        let values = inst.values();
        let feeds = values.feeds;
        let own = footprint.writes.iter().filter(|_| feeds == Feeds::Product);
        let reads: Vec<&View> = footprint.reads.iter().chain(own).copied().collect();
        for view in reads {
            let Ok(Some(access)) = self.locate(view, OobMode::Skip) else { continue };
            let mut flags = vec![false; access.elements()];
            self.each_flag(&access, |element, bytes| flags[element] |= bytes.contains(&true));
            if values.selected == Some(view) && flags.contains(&true) {
                self.keep_selected(&access, footprint.writes[0], &mut flags);
            }
            sources.push((access, flags));
        }
        if let Some(taint) = &mut self.taint {
            let tainted = sources.iter().any(|(_, flags)| flags.contains(&true));
            taint.keep(self.core.number, inst, &footprint, tainted);
        }
        for view in &footprint.writes {
            let Ok(Some(to)) = self.locate(view, OobMode::Skip) else { continue };
            let mut result = vec![false; to.elements()];
            let width = to.width().max(1);
            for (nth, (from, flags)) in sources.iter().enumerate().filter(|(_, (_, flags))| flags.contains(&true)) {
                let mapping = mapping(feeds, nth, from, &to);
                spread(mapping, flags, from.width().max(1), &mut result, width);
            }
            self.each_flag(&to, |element, flags| flags.fill(result[element]));
        }
    }

    /// Clears the flags of elements that an executed instruction has not selected: they hold the value of unwritten memory, and the result does not.
    fn keep_selected(&mut self, from: &Access, result: &View, flags: &mut [bool]) {
        let Ok(Some(to)) = self.locate(result, OobMode::Skip) else { return };
        let same_kind = from.codec.dtype.is_float() == to.codec.dtype.is_float();
        if same_kind && from.elements() == to.elements() && from.storage != to.storage {
            let [from, to] = [from, &to].map(|access| self.holds_unwritten_value(access));
            flags.iter_mut().zip(from.iter().zip(to)).for_each(|(flag, (from, to))| *flag &= !from || to);
        }
    }

    /// For each element, whether it holds the value of unwritten memory: NaN, or the pattern of integers.
    fn holds_unwritten_value(&mut self, access: &Access) -> Vec<bool> {
        let mut bytes = vec![0; access.elements() * access.codec.size()];
        self.memory().gather(access, &mut bytes);
        if access.codec.dtype.is_float() {
            let mut values = vec![0.0f32; access.elements()];
            access.codec.to_f32(&bytes, &mut values);
            return values.into_iter().map(f32::is_nan).collect();
        }
        let size = access.codec.size();
        let pattern = access.codec.poison();
        bytes.chunks_exact(size).map(|element| element == &pattern[..size]).collect()
    }

    /// Calls [`Self::spread_taint`] for the executed current statement.
    pub(super) fn spread_taint_of_statement(&mut self) {
        if self.taint.is_some()
            && let Some(node) = self.core.node
            && let NodeKind::Inst(inst) = &node.kind
        {
            self.spread_taint(inst);
        }
    }

    /// Whether bytes of an argument or a result depend, or may depend, on unwritten memory.
    pub(super) fn taint_is_visible(&mut self) -> bool {
        match &self.taint {
            None => return false,
            Some(taint) if taint.escaped => return true,
            Some(_) => {}
        }
        let program = self.program;
        let tensors = program.visible().into_iter().enumerate().filter(|(_, visible)| *visible);
        let tensors: Vec<TensorId> = tensors.map(|(i, _)| TensorId(i as u32)).collect();
        tensors.into_iter().any(|tensor| self.flags_of(tensor).is_none_or(|(_, flags)| flags.contains(&true)))
    }

    /// A whole tensor with the taint of its elements. `None` if it cannot be resolved.
    fn flags_of(&mut self, tensor: TensorId) -> Option<(Access, Vec<bool>)> {
        let view = View::whole(tensor, self.program.tensor(tensor));
        let access = self.deferred.account().resolve(&view, &Shift::Offset(0)).ok()?;
        let mut flags = vec![false; access.elements()];
        self.each_flag(&access, |element, bytes| flags[element] = bytes.contains(&true));
        Some((access, flags))
    }

    /// The elements of an output that hold the value of unwritten memory and depend on it.
    pub(super) fn tainted_output(&mut self, tensor: TensorId) -> Option<Reached> {
        self.taint.as_ref()?;
        let (access, flags) = self.flags_of(tensor)?;
        let missing = self.deferred.account().unwritten_elements(&access);
        let holds = self.holds_unwritten_value(&access);
        let mut reached = (0..flags.len()).filter(|&i| flags[i] && !missing[i] && holds[i]);
        let first = reached.next()?;
        Some(Reached { elements: 1 + reached.count(), first })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether an element of a result depends on one of an operand; both by row and column.
    fn depends(mapping: Mapping, (row, column): (usize, usize), (to_row, to_column): (usize, usize)) -> bool {
        match mapping {
            Mapping::Elements => (row, column) == (to_row, to_column),
            Mapping::Rows => row == to_row,
            Mapping::ColumnsToRows => column == to_row,
            Mapping::Columns => column == to_column,
            Mapping::Transposed => (column, row) == (to_row, to_column),
            Mapping::All => true,
        }
    }

    proptest! {
        #[test]
        fn a_result_is_tainted_where_it_depends_on_a_tainted_element(
            (rows, columns) in (1usize..6, 1usize..6),
            seed in prop::collection::vec(any::<bool>(), 25),
            other in 1usize..6,
        ) {
            let flags = &seed[..rows * columns];
            for (mapping, to) in [
                (Mapping::Elements, (rows, columns)),
                (Mapping::Rows, (rows, other)),
                (Mapping::ColumnsToRows, (columns, other)),
                (Mapping::Columns, (other, columns)),
                (Mapping::Transposed, (columns, rows)),
                (Mapping::All, (other, columns)),
            ] {
                if !flags.contains(&true) {
                    continue;
                }
                let mut result = vec![false; to.0 * to.1];
                spread(mapping, flags, columns, &mut result, to.1);
                for (i, &tainted) in result.iter().enumerate() {
                    let place = (i / to.1, i % to.1);
                    let expected = (0..flags.len()).any(|j| flags[j] && depends(mapping, (j / columns, j % columns), place));
                    prop_assert_eq!(tainted, expected, "{:?}", mapping);
                }
            }
        }
    }
}
