//! Who makes the descriptors of the transfers for which a kernel leaves that open.

use nki_isa::inst::Action;
use nki_isa::machine::Context;
use nki_isa::names::{DgeMode, Engine};
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Arch, Inst, Program, TensorId};

/// How a compiler chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descriptors {
    /// They are made before the program runs, as the compiler does with `--disable-dge`.
    Static,
    /// As the older compiler does: the hardware makes those of tensors that are neither arguments nor results, for loads on Sync and for stores on
    /// Scalar. The others stay open: the target has its own default.
    ///
    /// Evidence: in the public profiles of attention (trainium-kernel-fusion, trn2) GpSimd triggers the loads of the arguments and the stores of
    /// the result, Scalar the stores of the scores to HBM, Sync the loads of them and of the identity matrix.
    Older,
}

/// Chooses for the transfers that leave it open. Where the target or the transfer cannot have these descriptors, it stays open: gathers, addresses
/// that are known only when the program runs, targets without hardware descriptors.
pub fn choose(program: &mut Program, descriptors: Descriptors) {
    let mut is_argument = vec![false; program.tensors.len()];
    let arguments = program.inputs.iter().map(|i| i.tensor).chain(program.outputs.iter().map(|o| o.tensor));
    arguments.for_each(|TensorId(id)| is_argument[id as usize] = true);
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    let chosen = |inst: &Inst| -> Option<Inst> {
        let Action::Transfers(transfer) = inst.action() else { return None };
        let hbm = || [transfer.dst, transfer.src].into_iter().filter(|view| view.space.is_hbm());
        let new = match descriptors {
            Descriptors::Static => inst.with_descriptors(DgeMode::None, Engine::Unknown)?,
            Descriptors::Older if hbm().next().is_none() || hbm().any(|v| is_argument[v.tensor.0 as usize]) => {
                return None;
            }
            Descriptors::Older => {
                let engine = if transfer.dst.space.is_hbm() { Engine::Scalar } else { Engine::Sync };
                inst.with_descriptors(DgeMode::HwDge, engine)?
            }
        };
        new.validate(&context).is_ok().then_some(new)
    };
    program.cores.iter_mut().for_each(|core| each(core, &chosen));
}

fn each(nodes: &mut [Node], chosen: &impl Fn(&Inst) -> Option<Inst>) {
    for node in nodes {
        match &mut node.kind {
            NodeKind::Inst(inst) => {
                if let Some(new) = chosen(inst) {
                    *inst = new;
                }
            }
            NodeKind::Control(control) => control.blocks_mut().into_iter().for_each(|block| each(block, chosen)),
        }
    }
}
