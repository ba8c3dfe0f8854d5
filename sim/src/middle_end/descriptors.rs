//! Selects the descriptor generator of transfers for which the kernel leaves it open.

use nki_isa::inst::{Action, Transfer};
use nki_isa::machine::Context;
use nki_isa::names::{DgeMode, Engine, Space};
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Arch, Inst, Program};

use super::{has_one_partition, hbm_and_tile};

/// How a compiler chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descriptors {
    /// Descriptors are built before the program runs, as by the compiler with `--disable-dge`.
    Static,
    /// As the older compiler: the hardware builds the descriptors for tensors that are neither arguments nor results, triggered by Sync for loads
    /// and by Scalar for stores. Other transfers stay open: the target's default applies.
    ///
    /// Evidence: in the public profiles of attention (trainium-kernel-fusion, trn2) GpSimd triggers the loads of the arguments and the stores of
    /// the result, Scalar the stores of the scores to HBM, Sync their loads and the load of the identity matrix.
    Older,
    /// As the current compiler: descriptors of transfers with a tile of one partition are built before the program runs; the hardware builds those
    /// of transfers between all partitions of SBUF and a core's private HBM. Other transfers stay open.
    ///
    /// Evidence: the packets by kind of nine profiles of nki-moe-megakernel (trn2). Attention `v3`: 7,776 static packets, 16 for each of
    /// 484 transfers of tiles of one partition; 14,976 hardware packets, 144 for each of 104 loads from private HBM; 14,912 software packets, 32 for
    /// each of 466 others. Likewise v0, v1, v2, v6 and the sparse mixtures of experts v5 to v7c. The older compiler's manual says that hardware
    /// descriptors are for spilled tensors and 128 partitions. Tilebench's reverse_array stores single rows of tiles of 128 partitions in 0.65 us
    /// each, the time of software descriptors. The matmuls inside graphs pass tensors in shared HBM: their times are those of software descriptors
    /// (1.4% in the median; with hardware descriptors 5.3% and up to 47% too fast).
    Current,
}

/// Selects descriptors for the transfers that leave them open. A transfer stays open if it or the target cannot have these descriptors:
/// gathers, addresses known only at run time, targets without hardware descriptors.
pub fn choose(program: &mut Program, descriptors: Descriptors) {
    let visible = program.visible();
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    let chosen = |inst: &Inst| -> Option<Inst> {
        let Action::Transfers(transfer) = inst.action() else { return None };
        let (mode, engine) = match descriptors {
            Descriptors::Static => (DgeMode::None, Engine::Unknown),
            Descriptors::Older => older(&transfer, &visible)?,
            Descriptors::Current => current(&transfer, &visible, &context)?,
        };
        let new = inst.with_descriptors(mode, engine)?;
        new.validate(&context).is_ok().then_some(new)
    };
    program.cores.iter_mut().for_each(|core| each(core, &chosen));
}

/// See [`Descriptors::Older`].
fn older(transfer: &Transfer<'_>, visible: &[bool]) -> Option<(DgeMode, Engine)> {
    let hbm = || [transfer.dst, transfer.src].into_iter().filter(|view| view.space.is_hbm());
    let own = hbm().next().is_some() && !hbm().any(|v| visible[v.tensor.0 as usize]);
    own.then(|| (DgeMode::HwDge, if transfer.dst.space.is_hbm() { Engine::Scalar } else { Engine::Sync }))
}

/// See [`Descriptors::Current`].
fn current(transfer: &Transfer<'_>, visible: &[bool], context: &Context<'_>) -> Option<(DgeMode, Engine)> {
    let (hbm, tile) = hbm_and_tile(transfer)?;
    let own = hbm.space == Space::Hbm && !visible[hbm.tensor.0 as usize];
    if has_one_partition(tile, context.tensors) {
        Some((DgeMode::None, Engine::Unknown))
    } else if own && tile.partitions() == context.arch.partitions {
        Some((DgeMode::HwDge, Engine::Unknown))
    } else {
        None
    }
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
