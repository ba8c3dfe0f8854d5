//! `nisa.dma_copy`: moves elements between HBM and SBUF.

use crate::arch::Arch;
use crate::inst::{Footprint, Instruction, Operands};
use crate::machine::{Context, Fault, Machine};
use crate::names::{DgeMode, Engine, OobMode};
use crate::operands;
use crate::view::{Index, View};
use crate::violation::Violation;
use crate::work::{Dma, DmaSide, Work, WorkKind};

operands! {
    /// Copies `src` to `dst` by DMA, converting the element type through fp32 if it differs.
    pub struct DmaCopy: "dma_copy" on [Sync, Scalar, GpSimd] {
        /// Destination.
        [Out Sbuf Hbm] dst: View,
        /// Source.
        [In Sbuf Hbm] src: View,
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
        /// What to do with a dynamic index out of bounds.
        [Attr] oob_mode: OobMode = OobMode::Error,
        /// Who makes the descriptors.
        [Attr] dge_mode: DgeMode = DgeMode::Unknown,
        /// The engine that triggers a hardware-DGE transfer.
        [Attr] engine: Engine = Engine::Unknown,
    }
}

impl Instruction for DmaCopy {
    fn engine(&self, _arch: &Arch) -> Engine {
        match self.engine {
            Engine::Unknown => Engine::Sync,
            engine => engine,
        }
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        let (s, d) = (self.src.elements(), self.dst.elements());
        if s != d {
            return Err(Violation::new(
                "shape-mismatch",
                "src",
                format!("`src` has {:?} = {s} elements, `dst` has {:?} = {d}", self.src.shape(), self.dst.shape()),
            ));
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        machine.copy(&self.dst, &self.src, self.oob_mode)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        let indirect = |v: &View| matches!(v.indirect.as_deref().map(|i| &i.index), Some(Index::Vector(_)));
        Work {
            engine: self.engine(context.arch),
            kind: WorkKind::Dma(Dma {
                src: DmaSide::of(&self.src),
                dst: DmaSide::of(&self.dst),
                bytes: self.dst.bytes() as u64,
                elements: self.dst.elements() as u64,
                dge: self.dge_mode,
                dynamic: self.src.indirect.is_some() || self.dst.indirect.is_some(),
                indirect: indirect(&self.src) || indirect(&self.dst),
                transpose: false,
                cast: self.src.dtype != self.dst.dtype,
            }),
        }
    }
}
