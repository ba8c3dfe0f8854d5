//! The uses of a tensor, in the order of a core's stream.

use nki_isa::inst::Footprint;
use nki_isa::program::Node;
use nki_isa::{Program, TensorId, View};

use super::inst;

/// One use of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    /// Position of the instruction.
    pub(super) at: u32,
    /// Whether it writes the tensor.
    pub(super) writes: bool,
    /// Whether it reads the tensor.
    pub(super) reads: bool,
}

/// The uses of all tensors by the instructions of one core.
pub(super) struct Uses(Vec<Vec<Use>>);

impl Uses {
    pub(super) fn of(program: &Program, core: usize) -> Self {
        let mut uses: Vec<Vec<Use>> = vec![Vec::new(); program.tensors.len()];
        for (at, node) in (0..).zip(&program.cores[core]) {
            each_view(node, &mut |view, writes| {
                let list = &mut uses[view.tensor.0 as usize];
                match list.last_mut() {
                    Some(last) if last.at == at => {
                        last.writes |= writes;
                        last.reads |= !writes;
                    }
                    _ => list.push(Use { at, writes, reads: !writes }),
                }
            });
        }
        Uses(uses)
    }

    /// The uses of a tensor in program order.
    pub(super) fn of_tensor(&self, tensor: TensorId) -> &[Use] {
        &self.0[tensor.0 as usize]
    }

    /// The uses strictly between two positions.
    pub(super) fn between(&self, tensor: TensorId, from: u32, to: u32) -> &[Use] {
        let list = self.of_tensor(tensor);
        let begin = list.partition_point(|u| u.at <= from);
        &list[begin..list.partition_point(|u| u.at < to).max(begin)]
    }

    /// Whether an instruction strictly between two positions writes the tensor.
    pub(super) fn written_between(&self, tensor: TensorId, from: u32, to: u32) -> bool {
        self.between(tensor, from, to).iter().any(|u| u.writes)
    }
}

/// Calls `each` with the views that an instruction reads, then with those that it writes (`true`).
pub(super) fn each_view<'n>(node: &'n Node, each: &mut dyn FnMut(&'n View, bool)) {
    let Some(inst) = inst(node) else { return };
    let mut footprint = Footprint::default();
    inst.footprint(&mut footprint);
    footprint.reads.iter().for_each(|v| each(v, false));
    footprint.writes.iter().for_each(|v| each(v, true));
}

/// Whether a view covers its tensor, each element once and in order.
pub(super) fn is_whole(view: &View, program: &Program) -> bool {
    let tensor = program.tensor(view.tensor);
    if view.indirect.is_some() || view.dtype != tensor.dtype || view.partition != 0 || view.offset != 0 {
        return false;
    }
    let whole = View::whole(view.tensor, tensor);
    merged(view) == merged(&whole)
}

/// The dimensions without those of size 1, with contiguous neighbours merged. The partition dimension stays separate.
fn merged(view: &View) -> Vec<(i64, u32)> {
    let mut out: Vec<(i64, u32)> = Vec::new();
    let on_chip = usize::from(view.space.is_on_chip());
    for dim in &view.dims[on_chip..] {
        match out.last_mut() {
            _ if dim.count == 1 => {}
            Some((stride, count)) if *stride == dim.stride * i64::from(dim.count) => {
                (*stride, *count) = (dim.stride, *count * dim.count);
            }
            _ => out.push((dim.stride, dim.count)),
        }
    }
    if on_chip == 1 {
        out.insert(0, (1, view.dims[0].count));
    }
    out
}
