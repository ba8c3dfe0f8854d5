//! Laws of what the cores of a logical core, and ranks, do together. The machine adds the wait for the others.

use nki_isa::names::Engine;
use nki_isa::work::{Collective, CollectiveKind, RendezvousWork};

use super::{Cost, CostKind, Laws, ns};

impl Laws<'_> {
    pub(super) fn rendezvous(&self, engine: Engine, work: RendezvousWork) -> Cost {
        let c = &self.params.cores;
        let (time, confidence) = match work {
            RendezvousWork::Barrier => (c.barrier_ns.value, c.barrier_ns.confidence),
            RendezvousWork::GpSimdDma { bytes } => (
                c.gpsimd_dma_ns.value + bytes as f64 / c.gpsimd_dma_bytes_per_ns.value,
                c.gpsimd_dma_ns.confidence.max(c.gpsimd_dma_bytes_per_ns.confidence),
            ),
            RendezvousWork::Collective(collective) => return self.collective(engine, collective),
        };
        let time = ns(time);
        Cost {
            engine,
            kind: CostKind::Compute { occupancy: time, complete: time, table: None, port: false },
            confidence,
        }
    }

    /// Steps of latency, then bytes over the links. Small messages go over a mesh (two steps, the same for any number of ranks), larger ones by
    /// recursive doubling and halving (log2 of the ranks), the largest round a KangaRing (half as many hops as ranks). An all-reduce is a
    /// reduce-scatter and an all-gather. The engine only starts it. Source: intranode-collective-comm.
    fn collective(&self, engine: Engine, c: Collective) -> Cost {
        let p = &self.params.collectives;
        let ranks = f64::from(c.ranks.max(1));
        let chunk = c.chunk_bytes as f64;
        let message = chunk * ranks;
        let log = ranks.log2().ceil().max(1.0);
        let (rounds, algorithm) = match c.kind {
            CollectiveKind::Permute => (1.0, 1.0),
            kind => {
                let steps = if message < p.mesh_max_bytes.value {
                    2.0
                } else if message < p.rdh_max_bytes.value {
                    log
                } else {
                    (ranks / 2.0).ceil().max(1.0)
                };
                (if kind == CollectiveKind::AllReduce { 2.0 } else { 1.0 }, steps)
            }
        };
        let sent = match c.kind {
            CollectiveKind::Permute => chunk,
            _ => rounds * chunk * (ranks - 1.0),
        };
        let steps = if c.ranks < 2 { 0.0 } else { rounds * algorithm };
        let trigger = ns(p.trigger_ns.value);
        let time = ns(steps * p.hop_us.value * 1e3 + sent / p.link_bytes_per_ns.value);
        let confidence = p.trigger_ns.confidence.max(p.hop_us.confidence).max(p.link_bytes_per_ns.confidence);
        Cost {
            engine,
            kind: CostKind::Compute { occupancy: trigger, complete: trigger + time, table: None, port: false },
            confidence,
        }
    }
}
