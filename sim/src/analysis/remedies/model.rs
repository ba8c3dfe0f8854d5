//! A cost model that changes the cost of some instructions: the laws applied to modified work.

use nki_isa::work::{Dma, Work, WorkKind};
use nki_isa::{DType, Space};
use rustc_hash::FxHashMap;

use crate::timing::cost::{Cost, CostKind, CostModel, MachineConstants, Place, Ports, Trigger};
use crate::timing::{Laws, ParamError, Params};

/// The replacement of one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replacement {
    /// It takes no time, but keeps its position and dependences: another instruction does its work.
    Nothing,
    /// A full tile of the tensor engine.
    FullMatmul,
    /// All 128 partitions and this many times the elements.
    Wider(u32),
}

/// The replacement of all statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// No replacement.
    Same,
    /// Every transfer has contiguous bytes, one run per partition.
    Contiguous,
    /// fp32 is replaced by bf16 during loads, in SBUF and in the tensor engine.
    HalfWidth,
}

pub(super) struct Changed<'p> {
    params: &'p Params,
    laws: Laws<'p>,
    whole: Whole,
    /// Replacements by core and statement.
    replaced: FxHashMap<(u32, u32), Replacement>,
}

impl<'p> Changed<'p> {
    pub(super) fn new(
        params: &'p Params,
        whole: Whole,
        replaced: FxHashMap<(u32, u32), Replacement>,
    ) -> Result<Self, ParamError> {
        Ok(Changed { params, laws: Laws::new(params)?, whole, replaced })
    }
}

impl CostModel for Changed<'_> {
    fn cost(&self, work: &Work, place: Place) -> Cost {
        let replacement = self.replaced.get(&(place.core, place.node.0)).copied();
        if self.whole == Whole::Same && replacement.is_none() {
            return self.laws.cost(work, place);
        }
        let mut work = work.clone();
        match self.whole {
            Whole::Same => {}
            Whole::Contiguous => contiguous(&mut work, self.params),
            Whole::HalfWidth => half_width(&mut work),
        }
        match replacement {
            None => self.laws.cost(&work, place),
            Some(Replacement::Nothing) => nothing(self.laws.cost(&work, place)),
            Some(replacement) => {
                fill(&mut work, replacement);
                self.laws.cost(&work, place)
            }
        }
    }

    fn machine(&self) -> &MachineConstants {
        self.laws.machine()
    }
}

/// Whether a transfer has inefficiently short runs, although one per partition is possible.
pub(super) fn is_scattered(d: &Dma, params: &Params) -> bool {
    let runs = d.src.runs.max(d.dst.runs);
    !d.indirect
        && !d.transpose
        && f64::from(d.src.run_bytes.min(d.dst.run_bytes)) < params.dma.efficient_bytes.value
        && runs > u64::from(partitions(d))
        && d.bytes > u64::from(d.src.run_bytes.min(d.dst.run_bytes)) * u64::from(partitions(d))
}

/// Partitions of the on-chip side, else rows of the destination.
fn partitions(d: &Dma) -> u32 {
    if d.dst.space.is_on_chip() { d.dst.partitions.1 } else { d.src.partitions.1 }.max(1)
}

fn contiguous(work: &mut Work, params: &Params) {
    let WorkKind::Dma(d) = &mut work.kind else { return };
    if !is_scattered(d, params) {
        return;
    }
    let rows = partitions(d);
    let run = u32::try_from(d.bytes / u64::from(rows)).unwrap_or(u32::MAX);
    for side in [&mut d.src, &mut d.dst] {
        side.runs = u64::from(rows);
        side.run_bytes = run;
    }
}

fn half_width(work: &mut Work) {
    match &mut work.kind {
        WorkKind::Matmul(m) => {
            for dtype in [&mut m.stationary_dtype, &mut m.moving_dtype, &mut m.moving_layout.dtype] {
                if *dtype == DType::F32 {
                    *dtype = DType::BF16;
                }
            }
            m.moving_layout.inner_stride_bytes /= 2;
        }
        WorkKind::Stream(s) => {
            for o in s.inputs.iter_mut().chain(&mut s.outputs) {
                if o.dtype == DType::F32 && o.space == Space::Sbuf {
                    o.dtype = DType::BF16;
                    o.inner_stride_bytes /= 2;
                }
            }
        }
        WorkKind::Dma(d) if d.bytes == 4 * d.elements => {
            d.bytes /= 2;
            d.src.run_bytes /= 2;
            d.dst.run_bytes /= 2;
        }
        _ => {}
    }
}

/// Enlarges the work to the whole array, or to all partitions and a longer row.
fn fill(work: &mut Work, replacement: Replacement) {
    match (&mut work.kind, replacement) {
        (WorkKind::Matmul(m), Replacement::FullMatmul) => {
            (m.rows, m.columns, m.moving) = (128, 128, 512);
            (m.tile_position, m.tile_size) = ((0, 0), (128, 128));
        }
        (WorkKind::Stream(s), Replacement::Wider(times)) => {
            let before = s.elements;
            s.elements = before.saturating_mul(times);
            s.partitions = 128;
            for o in s.inputs.iter_mut().chain(&mut s.outputs).filter(|o| o.elements == before) {
                o.elements = s.elements;
            }
        }
        _ => {}
    }
}

fn nothing(mut cost: Cost) -> Cost {
    match &mut cost.kind {
        CostKind::Compute { occupancy, complete, table, ports } => {
            (*occupancy, *complete, *table, *ports) = (0, 0, None, Ports::default());
        }
        CostKind::Matmul { weights, moving, least, drain, stationary, .. } => {
            (*weights, *moving, *least, *drain, *stationary) = (0, 0, 0, 0, None);
        }
        CostKind::Dma(d) => {
            (d.hardware, d.software) = (Trigger::default(), Trigger::default());
            (d.payload, d.notify, d.bytes) = (0, 0, 0);
            d.engines.clear();
        }
        CostKind::Collective { trigger, time } => (*trigger, *time) = (0, 0),
        CostKind::Free => {}
    }
    cost
}
