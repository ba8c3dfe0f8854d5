//! The position of a kernel under its roofline, and its utilisation of tensor engine and memory.

use nki_isa::{Arch, Program};

use super::counters::Counters;
use crate::timeline::Timeline;
use crate::timing::params::Params;

/// A kernel under its roofline. Rates are operations or bytes per nanosecond (GFLOP/s, GB/s).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roofline {
    /// Tensor operations outside transposes.
    pub flops: u64,
    /// Bytes from and to HBM.
    pub bytes: u64,
    /// Minimum bytes from HBM for the result, each once; at most the bytes read, if data-dependent.
    pub minimum_read: u64,
    /// Bytes of the result, each once; at most the bytes written.
    pub minimum_write: u64,
    /// Operations for each byte.
    pub intensity: f64,
    /// Peak rate of the tensor engines in bf16.
    pub peak_flops: f64,
    /// Peak memory rate of these cores: the capacity of their DMA engines, at most the bandwidth of an HBM stack (`cores.hbm_bytes_per_ns`).
    pub peak_bytes: f64,
    /// Documented bandwidth of an HBM stack, to which Neuron Explorer's MBU refers.
    pub hbm_bytes: f64,
    /// Operations per byte at the intersection of the two peaks.
    pub ridge: f64,
    /// The rate achieved.
    pub achieved_flops: f64,
    /// The traffic achieved.
    pub achieved_bytes: f64,
    /// The maximum rate at this intensity.
    pub attainable_flops: f64,
    /// Utilisation of the tensor engines' bf16 peak, in percent.
    pub mfu_percent: f64,
    /// The same, transposes included.
    pub hfu_percent: f64,
    /// Utilisation of an HBM stack's peak, in percent.
    pub mbu_percent: f64,
    /// Utilisation of the kernel's own memory peak (`peak_bytes`), in percent.
    pub bandwidth_percent: f64,
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// The position of a run with counters `total`, whose result requires reading and writing `minimum_bytes`.
pub fn roofline(
    timeline: &Timeline,
    program: &Program,
    params: &Params,
    total: &Counters,
    minimum_bytes: (u64, u64),
) -> Roofline {
    let cores = program.cores.len().max(1) as f64;
    let ns = timeline.elapsed as f64 / 1e3;
    let arch = Arch::of(program.target);
    let (rows, columns) = (f64::from(arch.partitions), f64::from(arch.stationary_free_max));
    let peak_flops = 2.0 * rows * columns * params.tensor.clock_ghz.value * cores;
    let hbm = f64::from(arch.hbm_stack_bytes_per_ns);
    // A copy from HBM to HBM reads and writes each byte that the engines carry.
    let sides = ratio(total.hbm() as f64, timeline.dma.bytes as f64).clamp(1.0, 2.0);
    let carried = params.dma.engines.value * params.dma.bytes_per_ns.value * cores * sides;
    let peak_bytes = carried.min(params.cores.hbm_bytes_per_ns.value);
    let (flops, bytes) = (total.useful_flops(), total.hbm());
    let intensity = ratio(flops as f64, bytes as f64);
    let (minimum_read, minimum_write) = (minimum_bytes.0.min(total.hbm_read), minimum_bytes.1.min(total.hbm_write));
    let achieved_flops = ratio(flops as f64, ns);
    let achieved_bytes = ratio(bytes as f64, ns);
    Roofline {
        flops,
        bytes,
        minimum_read,
        minimum_write,
        intensity,
        peak_flops,
        peak_bytes,
        hbm_bytes: hbm,
        ridge: ratio(peak_flops, peak_bytes),
        achieved_flops,
        achieved_bytes,
        attainable_flops: peak_flops.min(intensity * peak_bytes),
        mfu_percent: 100.0 * ratio(achieved_flops, peak_flops),
        hfu_percent: 100.0 * ratio(total.flops as f64, peak_flops * ns),
        mbu_percent: 100.0 * ratio(achieved_bytes, hbm),
        bandwidth_percent: 100.0 * ratio(achieved_bytes, peak_bytes),
    }
}

impl Roofline {
    /// Bytes moved per required byte.
    pub fn excess(&self) -> f64 {
        ratio(self.bytes as f64, (self.minimum_read + self.minimum_write) as f64)
    }
}
