//! Laws of what the cores of a logical core do together. The wait for the others is the scheduler's.

use nki_isa::names::Engine;
use nki_isa::work::Meet;

use super::{Cost, CostKind, Laws, ns};

impl Laws<'_> {
    pub(super) fn meet(&self, engine: Engine, meet: Meet) -> Cost {
        let c = &self.params.cores;
        let (time, confidence) = match meet {
            Meet::Barrier => (c.barrier_ns.value, c.barrier_ns.confidence),
            Meet::GpSimdDma { bytes } => (
                c.gpsimd_dma_ns.value + bytes as f64 / c.gpsimd_dma_bytes_per_ns.value,
                c.gpsimd_dma_ns.confidence.max(c.gpsimd_dma_bytes_per_ns.confidence),
            ),
        };
        let time = ns(time);
        Cost {
            engine,
            kind: CostKind::Compute { occupancy: time, complete: time, table: None, port: false },
            confidence,
        }
    }
}
