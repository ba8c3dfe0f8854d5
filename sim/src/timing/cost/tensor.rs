//! Laws of the tensor engine.

use nki_isa::DType;
use nki_isa::names::Engine;
use nki_isa::work::Matmul;

use super::{Cost, CostKind, Laws, ns};
use crate::timing::fixed::Thousandths;

impl Laws<'_> {
    /// Weight load, moving columns (four cycles each in fp32, a single pass for a transpose, slower with one 8-bit operand), drain. The engine splits fp32 into several
    /// instructions.
    pub(super) fn matmul(&self, m: &Matmul) -> Cost {
        let t = &self.params.tensor;
        let fp32 = m.stationary_dtype == DType::F32 || m.moving_dtype == DType::F32;
        let per_row = match (m.transpose, fp32) {
            (true, true) => self.fp32_transpose,
            (true, false) => &t.transpose_cycles_per_row,
            (false, true) => &t.fp32_cycles_per_row,
            (false, false) => &t.cycles_per_row,
        };
        let mut cycles = f64::from(m.moving) * per_row.value;
        let mut confidence = per_row.confidence.max(t.min_columns.confidence);
        let onezero = m.stationary_onezero && m.stationary_dtype == DType::F32
            || m.moving_onezero && m.moving_dtype == DType::F32;
        if onezero && !m.transpose {
            cycles *= t.onezero_factor.value;
            confidence = confidence.max(t.onezero_factor.confidence);
        }
        if (m.stationary_dtype.size() == 1) != (m.moving_dtype.size() == 1) {
            cycles *= t.mixed_8bit_factor.value;
            confidence = confidence.max(t.mixed_8bit_factor.confidence);
        }
        if m.moving > 1 && f64::from(m.moving_layout.inner_stride_bytes) >= t.stride_sector_bytes.value {
            cycles *= t.stride_factor.value;
            confidence = confidence.max(t.stride_factor.confidence);
        }
        let instructions = if fp32 { t.fp32_weight_loads.value } else { 1.0 };
        let passes = if m.transpose { 1.0 } else { instructions };
        let cycle = 1.0 / t.clock_ghz.value;
        let arch = self.arch();
        // Cells along one side of the array.
        let side = arch.partitions / arch.tensor_cell;
        let span = |start: u32, size: u32| {
            let first = (start / arch.tensor_cell).min(side - 1);
            let last = (start + size.max(1)).div_ceil(arch.tensor_cell).clamp(first + 1, side);
            first..last
        };
        let mut cells = 0u16;
        for r in span(m.tile_position.0, m.tile_size.0.max(m.rows)) {
            for c in span(m.tile_position.1, m.tile_size.1.max(m.columns)) {
                cells |= 1 << (side * r + c);
            }
        }
        Cost {
            engine: Engine::Tensor,
            kind: CostKind::Matmul {
                weights: ns(t.weight_load_cycles.value * passes * cycle),
                moving: ns(t.issue_overhead_ns.value * instructions + cycles * cycle),
                least: ns(t.issue_overhead_ns.value * instructions + t.min_columns.value * per_row.value * cycle),
                drain: ns(if fp32 { t.fp32_drain_ns.value } else { t.drain_ns.value }),
                cells,
                fp32: fp32 && !m.transpose,
                stationary: m.stationary.indirect.is_none().then(|| Box::new(m.stationary.clone())),
                load: Thousandths::from_parts(u64::from(m.rows.max(1)) * 1000 / u64::from(arch.partitions)).clamped(),
            },
            confidence: confidence.max(t.issue_overhead_ns.confidence),
        }
    }
}
