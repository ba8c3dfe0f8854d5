//! Laws of DMA transfers.

use nki_isa::Arch;
use nki_isa::names::{DgeMode, Engine, Space};
use nki_isa::work::{Dma, DmaSide};
use smallvec::SmallVec;

use super::laws::{Measure, PortUse};
use super::{Cost, CostKind, Direction, DmaCost, Laws, OpenQueue, Place, Ports, Trigger, ns};
use crate::timing::params::{Confidence, MOST_ENGINES, Params};

impl Laws<'_> {
    /// Trigger, dispatch, payload, notification. The payload consists of descriptors, one per run that is contiguous on both sides, divided into
    /// packets. Engine `e` serves SBUF partitions `8e..8e+8`; a transfer between HBM and HBM is spread evenly.
    pub(super) fn dma(&self, engine: Engine, d: &Dma, place: Place) -> Cost {
        let p = &self.params.dma;
        let on_chip = |s: Space| s.is_on_chip();
        let direction = match (on_chip(d.src.space), on_chip(d.dst.space)) {
            (true, true) => Direction::OnChip,
            (true, false) => Direction::Store,
            (false, _) => Direction::Load,
        };
        let (dispatch, payload, notify) = match direction {
            Direction::Store => (&p.store_dispatch_ns, &p.store_payload_ns, &p.store_notify_ns),
            _ => (&p.load_dispatch_ns, &p.load_payload_ns, &p.load_notify_ns),
        };
        let (software, hardware) = (self.software_trigger(d), &p.hardware_trigger_ns);
        let confidence = payload.confidence.max(p.bytes_per_ns.confidence).max(software.1);
        let (total, extra) = self.engine_time(d, direction);
        let engine = match (engine, d.dge, d.indirect) {
            // Gathers and scatters require software descriptors, as do indices in SBUF on a machine without hardware descriptors.
            (_, DgeMode::SwDge, _) | (Engine::Unknown, _, true) => Engine::GpSimd,
            (Engine::Unknown, ..) if d.indexed && !Arch::of(self.params.target()).hwdge => Engine::GpSimd,
            (e, ..) => e,
        };
        Cost {
            engine,
            kind: CostKind::Dma(Box::new(DmaCost {
                direction,
                open: OpenQueue::of(direction, d.dge),
                hardware: Trigger { occupancy: ns(hardware.value), dispatch: ns(dispatch.value), ..Trigger::default() },
                software: Trigger {
                    occupancy: ns(software.0),
                    dispatch: ns(dispatch.value + p.software_dispatch_ns.value),
                    ports: Ports { sbuf: d.dge != DgeMode::None && self.sbuf_port == PortUse::Always, psum: false },
                },
                payload: ns(payload.value + self.load_tail(d)),
                notify: ns(notify.value),
                engines: self.spread(d, place, total),
                bytes: d.bytes,
                shared_load: self.shared_load(d),
            })),
            confidence: confidence.max(extra),
        }
    }

    /// Nanoseconds by which the slowest DMA engine of a load from HBM exceeds the transfer time of its bytes. Packets from HBM are occasionally
    /// late, and more packets make this more likely.
    fn load_tail(&self, d: &Dma) -> f64 {
        let p = &self.params.dma;
        let loads = d.src.space.is_hbm() && d.dst.space.is_on_chip();
        if loads { p.load_tail_ns.value * (d.bytes as f64 / p.load_tail_bytes.value).min(1.0) } else { 0.0 }
    }

    /// The load of a transfer on the bandwidth shared by two cores, in bytes. On each HBM side a descriptor takes slightly longer than
    /// its bytes, as do the first bytes of a separate run. A copy inside SBUF counts with its bytes: two cores that combine such
    /// copies with HBM streams move no more than cores that only stream (Tilebench, operator jacobi_stencil_2d).
    fn shared_load(&self, d: &Dma) -> u64 {
        let cores = &self.params.cores;
        let descriptors = d.src.runs.max(d.dst.runs) as f64;
        let more = descriptors * cores.hbm_descriptor_ns.value * cores.hbm_bytes_per_ns.value;
        let of_side = |side: &DmaSide| {
            let apart = if side.runs > 1 { side.runs as f64 } else { 0.0 };
            let slow = apart * f64::from(side.run_bytes).min(cores.hbm_apart_bytes.value);
            d.bytes as f64 + more + slow * cores.hbm_apart.value
        };
        if !d.src.space.is_hbm() && !d.dst.space.is_hbm() {
            return d.bytes;
        }
        [&d.src, &d.dst].into_iter().filter(|side| side.space.is_hbm()).map(of_side).sum::<f64>().max(0.0) as u64
    }

    /// Nanoseconds that GpSimd takes to build a transfer's descriptors, whatever its size (moe_laws: 128 rows of 256 B take as long as 2048 of
    /// 768 B), and the confidence of this number. For a gather or scatter on trn1 each row counts.
    fn software_trigger(&self, d: &Dma) -> (f64, Confidence) {
        let p = &self.params.dma;
        match (d.dge, self.measure) {
            // The descriptors were built before the program runs.
            (DgeMode::None, _) => (p.static_trigger_ns.value, p.static_trigger_ns.confidence),
            _ if d.indirect => {
                let (each, row) = (&p.indirect_trigger_ns, &p.indirect_row_ns);
                let rows = f64::from(d.src.partitions.1.max(d.dst.partitions.1));
                (each.value + rows * row.value, each.confidence.max(row.confidence))
            }
            _ if d.dynamic => (p.indirect_trigger_ns.value, p.indirect_trigger_ns.confidence),
            (_, Measure::Device) => (p.software_trigger_ns.value, p.software_trigger_ns.confidence),
            (_, Measure::Profile) => {
                let (time, record) = (&p.software_trigger_ns, &p.profile_trigger_ns);
                (time.value + record.value, time.confidence.max(record.confidence))
            }
        }
    }

    /// Total nanoseconds of all DMA engines, and the lowest confidence among the parameters other than the rate.
    fn engine_time(&self, d: &Dma, direction: Direction) -> (f64, Confidence) {
        let p = &self.params.dma;
        // A run is contiguous on both sides; if one side has 0 runs (an empty view), the other counts.
        let runs = d.src.runs.max(d.dst.runs).max(1) as f64;
        // A transpose moves its rows in blocks, not element by element.
        let packets = if d.transpose {
            (d.bytes as f64 / p.packet_bytes.value).ceil().max(f64::from(d.dst.partitions.1))
        } else {
            runs * (d.bytes as f64 / runs / p.packet_bytes.value).ceil().max(1.0)
        };
        let least = match direction {
            Direction::OnChip => &p.onchip_packet_ns,
            Direction::Store if is_strided(&d.dst, d) && p.strided_store_ns.value > p.least_packet_ns.value => {
                &p.strided_store_ns
            }
            _ => &p.least_packet_ns,
        };
        let each = p.descriptor_ns.value + d.bytes as f64 / packets / p.bytes_per_ns.value;
        let mut total = packets * each.max(least.value);
        let mut confidence = if each < least.value { least.confidence } else { p.descriptor_ns.confidence };
        if !d.transpose && p.scattered_run_ns.value > 0.0 && [&d.src, &d.dst].into_iter().any(|s| self.is_scattered(s))
        {
            total += runs * p.scattered_run_ns.value;
            confidence = confidence.max(p.scattered_run_ns.confidence).max(p.scattered_stride_bytes.confidence);
        }
        if d.transpose {
            let slower = match direction {
                Direction::OnChip => &p.onchip_transpose_slowdown,
                _ if d.bytes >= 4 * d.elements => &p.wide_transpose_slowdown,
                _ => &p.transpose_slowdown,
            };
            total *= slower.value;
            confidence = confidence.max(slower.confidence);
        }
        (total, confidence)
    }

    /// Whether the distance between runs in HBM is a multiple of a large power of two: then they share few banks.
    fn is_scattered(&self, side: &DmaSide) -> bool {
        let even = side.stride_bytes & side.stride_bytes.wrapping_neg();
        let apart = even > u64::from(side.run_bytes);
        side.space.is_hbm() && side.runs > 1 && apart && even as f64 >= self.params.dma.scattered_stride_bytes.value
    }

    /// Distributes `total` nanoseconds of engine time over the DMA engines.
    fn spread(&self, d: &Dma, place: Place, total: f64) -> SmallVec<[(u8, u64); 16]> {
        let shares = engine_shares(self.params, d, place.partition.unwrap_or(0));
        let whole = shares.iter().map(|(_, share)| share).sum::<u64>().max(1) as f64;
        shares.into_iter().map(|(engine, share)| (engine, ns(total * share as f64 / whole))).collect()
    }
}

/// The DMA engines that carry a transfer, each with its share: the number of its partitions of the on-chip operand, which starts at partition
/// `partition`. Between HBM tensors, as many engines as the descriptors or the bytes keep busy, with equal shares.
pub fn engine_shares(params: &Params, d: &Dma, partition: u32) -> SmallVec<[(u8, u64); 16]> {
    let p = &params.dma;
    let engines = p.engines.value.clamp(1.0, MOST_ENGINES) as u64;
    let side = if d.dst.space.is_on_chip() { &d.dst } else { &d.src };
    if !side.space.is_on_chip() {
        let least = p.efficient_bytes.value.max(1.0) as u64;
        let used = d.src.runs.max(d.dst.runs).max(d.bytes.div_ceil(least)).clamp(1, engines);
        return (0..used).map(|engine| (engine as u8, 1)).collect();
    }
    let group = p.partitions_per_engine.value.max(1.0) as u64;
    let first = u64::from(partition) + u64::from(side.partitions.0);
    let end = first + u64::from(side.partitions.1.max(1));
    let mut counts: SmallVec<[u64; 16]> = SmallVec::from_elem(0, engines as usize);
    let mut at = first;
    while at < end {
        let next = ((at / group + 1) * group).min(end);
        counts[((at / group) % engines) as usize] += next - at;
        at = next;
    }
    (0..).zip(counts).filter(|(_, count)| *count > 0).collect()
}

/// Whether the elements of rows in HBM are not contiguous.
fn is_strided(side: &DmaSide, d: &Dma) -> bool {
    side.space.is_hbm() && side.runs == d.elements && side.runs > u64::from(side.partitions.1) && side.stride_bytes > 0
}
