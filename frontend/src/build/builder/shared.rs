//! Tensors in shared HBM, which the cores of a logical core and the programs of a launch grid have in common.

use std::sync::Arc;

use nki_isa::{Declaration, TensorId, Violation};

use super::Builder;
use super::alloc::Request;
use crate::build::tensor::tuple_text;

/// Which tensor of the first core a tensor in shared HBM is.
///
/// The compiler of the device "uses the name to link" such tensors (`nl.ndarray` in the manual of NKI 0.2, which demands a name except for
/// inputs and outputs); `unnamed-shared-hbm` has more sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// That of the same `name=`. A core may have tensors that the other does not have.
    Name,
    /// The next one in the order of allocation, as the kernel intends: it has no `name=`.
    Unnamed,
    /// The next one in the order of allocation (kernels for `neuronxcc.nki`).
    Order,
}

/// A tensor in shared HBM.
#[derive(Debug)]
struct Made {
    id: TensorId,
    /// `name=`
    name: Option<Arc<str>>,
    /// Whether the current core or program has allocated it.
    met: bool,
}

/// All tensors in shared HBM.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// In the order of their first allocation.
    made: Vec<Made>,
    /// Those that the current core or program has allocated, in order.
    met: Vec<usize>,
}

impl Shared {
    /// Numbers of tensors, and of those that the current core or program has allocated.
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.made.len(), self.met.len())
    }

    /// Returns to a mark.
    pub(super) fn rewind(&mut self, mark: (usize, usize)) {
        for i in self.met.drain(mark.1..) {
            self.made[i].met = false;
        }
        self.made.truncate(mark.0);
    }

    /// Starts another core or program.
    pub(super) fn restart(&mut self) {
        self.rewind((self.made.len(), 0));
    }

    /// Adds a tensor.
    pub(super) fn push(&mut self, id: TensorId, request: &Request<'_>) {
        self.met.push(self.made.len());
        self.made.push(Made { id, name: name_of(request).map(Arc::from), met: true });
    }

    /// The tensor that the current core or program shares by this request, if an earlier one has allocated it.
    pub(super) fn next(&mut self, request: &Request<'_>) -> Option<TensorId> {
        let name = name_of(request);
        let i = self.made.iter().position(|m| !m.met && m.name.as_deref() == name)?;
        self.made[i].met = true;
        self.met.push(i);
        Some(self.made[i].id)
    }
}

fn name_of<'a>(request: &Request<'a>) -> Option<&'a str> {
    (request.sharing == Sharing::Name).then_some(request.name)
}

impl Builder {
    /// `shared-divergence`: this core or program allocates another tensor than the first one, which allocated `first`, if anything.
    pub(super) fn divergence(&self, request: &Request<'_>, first: Option<&Declaration>) -> Violation {
        let here = match self.core {
            0 => format!("program {}", self.program_index),
            core => format!("core {core}"),
        };
        let (name, shape) = (request.name, tuple_text(request.shape.iter().copied()));
        let message = match first {
            Some(first) => format!(
                "{here} allocates shared_hbm tensor `{name}` as {} {shape}, but the first one allocates it as {} {}",
                request.dtype,
                first.dtype,
                tuple_text(first.shape.iter().map(|&n| i64::from(n)))
            ),
            None => format!(
                "{here} allocates shared_hbm tensor `{name}` of shape {shape}, but the first one does not allocate it at this point"
            ),
        };
        let help = match request.sharing {
            Sharing::Name => {
                "tensors of the same name are one tensor of both cores: give different tensors different names"
            }
            Sharing::Unnamed => {
                "allocate shared tensors before branching on nl.program_id, or give them names (name=), by which the cores share them"
            }
            Sharing::Order => "allocate shared tensors before branching on nl.program_id",
        };
        Violation::new("shared-divergence", "", message).help(help)
    }
}
