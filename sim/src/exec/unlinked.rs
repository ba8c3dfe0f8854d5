//! Shared HBM without a name, of which each core may have a tensor of its own on the device (`unnamed-shared-hbm`).
//!
//! Here both cores share it, as the kernel means it: a core that reads what the other has written may get other values on the device.

use nki_isa::inst::Footprint;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Program, TensorId};
use rustc_hash::FxHashMap;

use super::races::accesses;
use crate::deps::{self, By, Hazard, Index, Region, Subject};
use crate::place::Placement;
use crate::trace::Resolved;

/// Writes to the tensors of which each core may have one of its own.
#[derive(Debug, Default)]
pub(super) struct Unlinked<'p> {
    /// By tensor, until it is reported.
    tensors: FxHashMap<TensorId, Index>,
    /// The writes, core and statement, by the number in the index.
    writes: Vec<(u32, &'p Node)>,
}

/// A core reads what the other core has written.
pub(super) struct Crossing<'p> {
    pub(super) tensor: TensorId,
    pub(super) writer: (u32, &'p Node),
}

impl<'p> Unlinked<'p> {
    /// Watches the tensors that have no name and that the kernel does not return.
    pub(super) fn new(program: &Program) -> Self {
        let mut out = Unlinked::default();
        if program.cores.len() < 2 {
            return out;
        }
        for (i, tensor) in program.tensors.iter().enumerate().filter(|(_, tensor)| tensor.unnamed) {
            let id = TensorId(i as u32);
            if !program.outputs.iter().any(|output| output.tensor == id) {
                out.tensors.insert(id, Index::new(tensor.bytes() as u64));
            }
        }
        out
    }

    /// Records the accesses of an instruction of core `me`. Returns the first read of what the other core has written to a tensor, unless
    /// this core has written some of it, too.
    pub(super) fn note(
        &mut self,
        (program, placement): (&Program, &Placement),
        (me, node): (u32, &'p Node),
        footprint: &Footprint<'_>,
        resolved: Option<&[Resolved]>,
    ) -> Option<Crossing<'p>> {
        // A collective has one operand of both cores.
        let is_alone = matches!(&node.kind, NodeKind::Inst(inst) if inst.participants().is_none());
        if self.tensors.is_empty() || !is_alone {
            return None;
        }
        let op = self.writes.len() as u32;
        let mut found = None;
        let mut writes = false;
        for (write, view, dynamic) in accesses(footprint, resolved) {
            let Some(index) = self.tensors.get_mut(&view.tensor) else { continue };
            let by = By { op, queue: me as u8, reach: 1, write };
            let mut writers: [Vec<(u32, Region)>; 2] = Default::default();
            deps::regions(program, placement, view, dynamic, &mut |region| {
                index.conflicts(&region, by, |op, core, hazard, _, other| {
                    if hazard == Hazard::Raw {
                        writers[usize::from(u32::from(core) != me)].push((op, other.clone()));
                    }
                });
                if write {
                    index.insert(region, by, Subject::Tensor(view.tensor));
                    writes = true;
                }
            });
            let [own, others] = writers;
            let foreign = others.iter().find(|(_, region)| !own.iter().any(|(_, mine)| mine.overlaps(region)));
            if let (None, Some(&(op, _))) = (&found, foreign) {
                found = Some(Crossing { tensor: view.tensor, writer: self.writes[op as usize] });
            }
        }
        if writes {
            self.writes.push((me, node));
        }
        if let Some(Crossing { tensor, .. }) = found {
            self.tensors.remove(&tensor);
        }
        found
    }
}
