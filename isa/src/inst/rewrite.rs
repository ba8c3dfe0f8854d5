//! Copies of instructions with other operands, for passes that rewrite programs.

use super::dma::dma_copy::DmaCopy;
use super::{Inst, find};
use crate::arg::Arg;
use crate::names::{DgeMode, Engine, OobMode};
use crate::view::{Index, View};

impl Inst {
    /// A transfer by DMA, with open engine and descriptors.
    pub fn transfer(dst: View, src: View) -> Inst {
        let (dge_mode, engine) = (DgeMode::Unknown, Engine::Unknown);
        DmaCopy { dst, src, priority: None, oob_mode: OobMode::Error, dge_mode, engine }.into()
    }

    /// The instruction with each of its views changed by `change`, index tensors included; `None` if an operand may not be in the memory of
    /// its new view. Its other rules are not checked (see [`Inst::validate`]).
    pub fn with_views(&self, change: &mut dyn FnMut(&mut View)) -> Option<Inst> {
        let entry = find(self.schema().name)?;
        let mut args: Vec<Option<Arg>> = self.args().into_iter().map(Some).collect();
        args.iter_mut().flatten().for_each(|arg| each_view(arg, change));
        (entry.build)(&mut args).ok()
    }
}

fn each_view(arg: &mut Arg, change: &mut dyn FnMut(&mut View)) {
    match arg {
        Arg::View(view) => with_index(view, change),
        Arg::List(items) => items.iter_mut().for_each(|item| each_view(item, change)),
        _ => {}
    }
}

fn with_index(view: &mut View, change: &mut dyn FnMut(&mut View)) {
    change(view);
    if let Some(indirect) = &mut view.indirect
        && let Index::Scalar(index) | Index::Vector(index) | Index::Columns(index) = &mut indirect.index
    {
        with_index(index, change);
    }
}
