//! Geometry and limits of each generation. Latencies are `sim::timing` parameters.

use crate::dtype::DType;
use crate::names::Named;

/// Partitions of a quadrant of SBUF and PSUM, in all generations.
pub const QUADRANT: u32 = 32;

crate::named_enum! {
    /// A chip generation. Integer values are `nki.isa.nc_version`.
    pub enum Target: "target" {
        /// NeuronCore-v2: Trn1, Trn1n, Inf2.
        Trn1 "trn1" | "gen2" | "inf2" | "trn1n" = 2,
        /// NeuronCore-v3: Trn2.
        Trn2 "trn2" | "gen3" = 3,
        /// NeuronCore-v4: Trn3, and its first silicon, which reports itself as trn3pre.
        Trn3 "trn3" | "gen4" | "trn3pre" = 4,
    }
}

impl Target {
    /// Every name that [`Named::from_name`](crate::names::Named::from_name) accepts, for messages.
    pub const NAMES: &str = "trn1, trn1n, inf2, gen2, trn2, gen3, trn3, gen4, trn3pre";
    /// The default generation: the only one with public measurements.
    pub const DEFAULT: Target = Target::Trn2;
    /// The first generation that NKI supports, and the default for instructions without a `from`.
    pub const OLDEST: Target = Target::Trn1;

    /// `trn2 or later`; the newest generation is just `trn3`.
    pub fn or_later(self) -> String {
        if Self::ALL.last() == Some(&self) { self.to_string() } else { format!("{self} or later") }
    }
}

/// Sizes, limits and abilities of one NeuronCore. Code outside this module reads these fields and never compares targets.
///
/// Source: the architecture guides of the NKI manual (trainium_inferentia2_arch, trainium2_arch, trainium3_arch) unless a
/// field names another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arch {
    /// The generation.
    pub target: Target,
    /// Partitions of SBUF and PSUM.
    pub partitions: u32,
    /// SBUF bytes per partition.
    pub sbuf_bytes: u32,
    /// PSUM banks per partition.
    pub psum_banks: u32,
    /// Bytes of one PSUM bank in one partition.
    pub psum_bank_bytes: u32,
    /// Maximum elements per partition of an operand in SBUF.
    pub sbuf_access_max: u32,
    /// Maximum elements per partition of an operand in PSUM.
    pub psum_access_max: u32,
    /// Maximum free dimensions of an on-chip operand's access pattern.
    pub free_dims_max: u32,
    /// Free size limit of the stationary operand of a matmul.
    pub stationary_free_max: u32,
    /// Free size limit of the moving operand with an fp32 result.
    pub moving_free_max: u32,
    /// Free size limit of the moving operand with a bf16 result; 0 if there is no such result (`nc_matmul` reference).
    pub moving_free_max_bf16: u32,
    /// Smallest row or column tile of the tensor engine (`nc_matmul` reference).
    pub tensor_tile_min: u32,
    /// Rows and columns of a cell of the tensor engine: cells compute and hold weights independently.
    pub tensor_cell: u32,
    /// FP8 double rate (`matmul_perf_mode.double_row`).
    pub double_row: bool,
    /// The tensor engine accepts OCP float8_e4m3fn inputs.
    pub ocp_fp8: bool,
    /// MX blocks: `nc_matmul_mx` and `quantize_mx`.
    pub mx: bool,
    /// The tensor engine moves bits unchanged in transpose mode; else it multiplies by an identity in fp32.
    pub exact_transpose: bool,
    /// A matmul may accumulate onto a PSUM value written by another instruction (`nc_matmul` reference).
    pub accumulates_onto_any_write: bool,
    /// `abs_max` and `abs_min` (`nki.language` operator table).
    pub abs_max: bool,
    /// 8-bit float operands use the vector engine's fast modes, like 16-bit ones (trainium3_arch).
    pub fast_fp8_streams: bool,
    /// `activation` takes a number as `bias` (`activation` reference).
    pub activation_bias_number: bool,
    /// `activation` takes a `bias` with the reciprocal function (`activation` reference).
    pub activation_bias_reciprocal: bool,
    /// `rand_get_state` writes to PSUM as well as SBUF (`rand_get_state` reference).
    pub random_state_psum: bool,
    /// `all_to_all_v` takes displacements of the received data (`has_rdispls`).
    pub receive_displacements: bool,
    /// Largest extent of a vector engine transpose.
    pub vector_transpose_max: u32,
    /// Indirect on-chip operands (`.indirect(index)`).
    pub on_chip_indirect: bool,
    /// Hardware descriptor generation for DMA (nki-dge deep dive).
    pub hwdge: bool,
    /// DMA quality-of-service classes (`dma_copy` reference).
    pub dma_priority: bool,
    /// DMA transposes of gathered rows (`dma_transpose` reference).
    pub indirect_transpose: bool,
    /// 32-bit registers of each engine's sequencer (`register_alloc` reference).
    pub registers: u32,
    /// Maximum physical cores per logical core.
    pub lnc_max: u32,
    /// Bandwidth of an HBM stack: that of the device divided by its stacks (architecture guides: 820 GB/s and 2 stacks, 2.9 TB/s and 4,
    /// 4.7 TB/s and 4).
    pub hbm_stack_bytes_per_ns: u32,
}

impl Arch {
    /// The geometry of `target`.
    pub fn of(target: Target) -> &'static Arch {
        match target {
            Target::Trn1 => &TRN1,
            Target::Trn2 => &TRN2,
            Target::Trn3 => &TRN3,
        }
    }

    /// Maximum columns of a matmul with a result of this type.
    pub fn moving_max(&self, dst: DType) -> u32 {
        if dst.size() == 2 && self.moving_free_max_bf16 > 0 { self.moving_free_max_bf16 } else { self.moving_free_max }
    }

    /// Message suffix that names a `dst` type or generation that allows more columns than this type; empty if there is none.
    pub fn more_columns(&self, dst: DType) -> String {
        let own = self.moving_max(dst);
        let more = |target: &&Target| Self::of(**target).moving_max(dst) > own;
        match Target::ALL.iter().find(more) {
            _ if self.moving_free_max_bf16 > own => format!("; a bfloat16 `dst` takes {}", self.moving_free_max_bf16),
            Some(&target) => format!("; {} takes {}", target.or_later(), Self::of(target).moving_max(dst)),
            None => String::new(),
        }
    }

    /// PSUM bytes per partition.
    pub fn psum_bytes(&self) -> u32 {
        self.psum_banks * self.psum_bank_bytes
    }

    /// Valid first partitions of an operand of `count` partitions: the multiples of its partition count rounded up to 32, 64 or 128. (Architecture
    /// guide: more than 64 partitions start at 0, 33 to 64 at 0 or 64, up to 32 at 0, 32, 64 or 96.)
    pub fn partition_starts(&self, count: u32) -> &'static [u32] {
        match count {
            0..=32 => &[0, 32, 64, 96],
            33..=64 => &[0, 64],
            _ => &[0],
        }
    }
}

const TRN1: Arch = Arch {
    target: Target::Trn1,
    partitions: 128,
    sbuf_bytes: 192 * 1024,
    psum_banks: 8,
    psum_bank_bytes: 2048,
    sbuf_access_max: 64 * 1024,
    psum_access_max: 4 * 1024,
    free_dims_max: 4,
    stationary_free_max: 128,
    moving_free_max: 512,
    moving_free_max_bf16: 0,
    tensor_tile_min: 64,
    tensor_cell: 32,
    double_row: false,
    ocp_fp8: false,
    mx: false,
    exact_transpose: false,
    accumulates_onto_any_write: false,
    abs_max: false,
    fast_fp8_streams: false,
    activation_bias_number: false,
    activation_bias_reciprocal: false,
    random_state_psum: false,
    receive_displacements: false,
    vector_transpose_max: 32,
    on_chip_indirect: false,
    hwdge: false,
    dma_priority: false,
    indirect_transpose: false,
    registers: 64,
    lnc_max: 1,
    hbm_stack_bytes_per_ns: 410,
};

const TRN2: Arch = Arch {
    target: Target::Trn2,
    sbuf_bytes: 224 * 1024,
    tensor_tile_min: 32,
    double_row: true,
    exact_transpose: true,
    activation_bias_number: true,
    activation_bias_reciprocal: true,
    receive_displacements: true,
    hwdge: true,
    indirect_transpose: true,
    lnc_max: 2,
    hbm_stack_bytes_per_ns: 725,
    ..TRN1
};

const TRN3: Arch = Arch {
    target: Target::Trn3,
    sbuf_bytes: 256 * 1024,
    moving_free_max: 4096,
    moving_free_max_bf16: 8192,
    ocp_fp8: true,
    mx: true,
    accumulates_onto_any_write: true,
    abs_max: true,
    fast_fp8_streams: true,
    random_state_psum: true,
    on_chip_indirect: true,
    dma_priority: true,
    hbm_stack_bytes_per_ns: 1175,
    ..TRN2
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_limit_names_what_allows_more() {
        let more = |target, dst| Arch::of(target).more_columns(dst);
        assert_eq!(more(Target::Trn2, DType::F32), "; trn3 takes 4096");
        assert_eq!(more(Target::Trn3, DType::F32), "; a bfloat16 `dst` takes 8192");
        assert_eq!(more(Target::Trn3, DType::BF16), "");
    }

    #[test]
    fn capacities_are_those_of_the_guides() {
        let mib = |t| u64::from(Arch::of(t).sbuf_bytes) * u64::from(Arch::of(t).partitions) / (1024 * 1024);
        assert_eq!(Target::ALL.iter().map(|&t| mib(t)).collect::<Vec<_>>(), [24, 28, 32]);
        for &t in Target::ALL {
            assert_eq!(Arch::of(t).target, t);
            assert_eq!(Arch::of(t).psum_bytes(), 16 * 1024);
            // 4K elements is all of PSUM in fp32.
            assert_eq!(Arch::of(t).psum_access_max * 4, Arch::of(t).psum_bytes());
        }
    }

    #[test]
    fn operands_start_on_the_quadrants_they_cover() {
        let arch = Arch::of(Target::Trn2);
        assert_eq!(arch.partition_starts(1), [0, 32, 64, 96]);
        assert_eq!(arch.partition_starts(33), [0, 64]);
        assert_eq!(arch.partition_starts(65), [0]);
    }
}
