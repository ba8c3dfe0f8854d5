//! Laws of rendezvous between the cores of a logical core, and between ranks. The machine adds the wait for other members.

use nki_isa::names::Engine;
use nki_isa::work::{Collective, CollectiveKind, RendezvousWork};

use super::{Cost, CostKind, Laws, Ports, ns};
use crate::timing::params::Param;

/// HBM accesses for every two ranks that a reduced chunk passes on a KangaRing, relative to a copied one: three reads and a write
/// against one read and two writes. Source: intranode-collective-comm.
const RING_REDUCTION_ACCESSES: f64 = 4.0 / 3.0;

/// An algorithm for exchanging messages between ranks.
struct Algorithm<'p> {
    /// The largest message that uses it, in bytes.
    limit: f64,
    /// Number of sequential steps.
    steps: f64,
    /// The sending rate of a rank, in bytes per nanosecond.
    rate: &'p Param,
    /// Additional delay of each step by a reduction.
    reduction_us: f64,
    /// Memory accesses per reduced byte, relative to a copied one.
    accesses: f64,
}

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
            kind: CostKind::Compute { occupancy: time, complete: time, table: None, ports: Ports::default() },
            confidence,
        }
    }

    /// The engine only starts a collective. An all-reduce is a reduce-scatter and an all-gather.
    fn collective(&self, engine: Engine, c: Collective) -> Cost {
        let p = &self.params.collectives;
        let ranks = f64::from(c.ranks.max(1));
        let message = c.chunk_bytes as f64 * ranks;
        let (copying, rate) = self.exchange(ranks, message, false);
        let (reducing, _) = self.exchange(ranks, message, true);
        let (time, rate) = match c.kind {
            _ if c.ranks < 2 => (0.0, rate),
            CollectiveKind::Permute => {
                (p.hop_us.value * 1e3 + c.chunk_bytes as f64 / p.link_bytes_per_ns.value, &p.link_bytes_per_ns)
            }
            CollectiveKind::AllGather | CollectiveKind::AllToAll => (copying, rate),
            CollectiveKind::ReduceScatter => (reducing, rate),
            CollectiveKind::AllReduce => (reducing + copying, rate),
        };
        let trigger = ns(p.trigger_ns.value);
        let time = ns(time);
        let confidence = p.trigger_ns.confidence.max(p.hop_us.confidence).max(rate.confidence);
        Cost { engine, kind: CostKind::Collective { trigger, time }, confidence }
    }

    /// The time in nanoseconds in which `ranks` gather (or reduce, if `reduces`) a message, the chunks of all ranks together, and the
    /// rate that it uses.
    ///
    /// No message takes less time than a smaller one. The limits between the algorithms are those of 64 ranks; with fewer ranks, the
    /// next algorithm would be faster already below them.
    fn exchange(&self, ranks: f64, message: f64, reduces: bool) -> (f64, &Param) {
        let (mut longest, mut rate) = (0.0_f64, &self.params.collectives.mesh_bytes_per_ns);
        for algorithm in self.algorithms(ranks) {
            let (delay_us, accesses) = if reduces { (algorithm.reduction_us, algorithm.accesses) } else { (0.0, 1.0) };
            let step = (self.params.collectives.hop_us.value + delay_us) * 1e3;
            let sent = message.min(algorithm.limit) * (ranks - 1.0) / ranks;
            longest = longest.max(algorithm.steps * step + sent * accesses / algorithm.rate.value);
            rate = algorithm.rate;
            if message <= algorithm.limit {
                break;
            }
        }
        (longest, rate)
    }

    /// The algorithms by size of message. Small messages use a mesh (two steps for any number of ranks, on links that many chips share),
    /// larger ones recursive doubling and halving (log2 of the ranks), the largest a KangaRing (half as many hops as ranks). Reducing the
    /// data of a step delays the next step; the ring, which cuts chunks in two slices, hides this, but needs four HBM accesses where a
    /// copy needs three.
    /// Source: intranode-collective-comm; rates and latencies from collectives of 64 ranks.
    fn algorithms(&self, ranks: f64) -> [Algorithm<'_>; 3] {
        let p = &self.params.collectives;
        [
            Algorithm {
                limit: p.mesh_max_bytes.value,
                steps: 2.0,
                rate: &p.mesh_bytes_per_ns,
                reduction_us: 0.0,
                accesses: 1.0,
            },
            Algorithm {
                limit: p.rdh_max_bytes.value,
                steps: ranks.log2().ceil().max(1.0),
                rate: &p.rdh_bytes_per_ns,
                reduction_us: p.reduction_us.value,
                accesses: 1.0,
            },
            Algorithm {
                limit: f64::INFINITY,
                steps: (ranks / 2.0).ceil().max(1.0),
                rate: &p.ring_bytes_per_ns,
                reduction_us: 0.0,
                accesses: RING_REDUCTION_ACCESSES,
            },
        ]
    }
}
