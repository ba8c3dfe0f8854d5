//! Geometry and limits of each generation. Never latencies: those are `sim::timing` parameters.

crate::named_enum! {
    /// A chip generation. Integer values are `nki.isa.nc_version`.
    pub enum Target: "target" {
        /// NeuronCore-v2: Trn1, Inf2.
        Trn1 "trn1" | "gen2" | "inf2" = 2,
        /// NeuronCore-v3: Trn2.
        Trn2 "trn2" | "gen3" = 3,
        /// NeuronCore-v4: Trn3.
        Trn3 "trn3" | "gen4" = 4,
    }
}

/// Sizes and limits of one NeuronCore.
///
/// Source: the architecture guides of the NKI manual (trainium_inferentia2_arch, trainium2_arch, trainium3_arch).
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
    /// Free size limit of the stationary operand of a matmul.
    pub stationary_free_max: u32,
    /// Free size limit of the moving operand with an fp32 result.
    pub moving_free_max: u32,
    /// Physical cores per logical core at most.
    pub lnc_max: u32,
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

    /// PSUM bytes per partition.
    pub fn psum_bytes(&self) -> u32 {
        self.psum_banks * self.psum_bank_bytes
    }
}

const TRN1: Arch = Arch {
    target: Target::Trn1,
    partitions: 128,
    sbuf_bytes: 192 * 1024,
    psum_banks: 8,
    psum_bank_bytes: 2048,
    stationary_free_max: 128,
    moving_free_max: 512,
    lnc_max: 1,
};

const TRN2: Arch = Arch { target: Target::Trn2, sbuf_bytes: 224 * 1024, lnc_max: 2, ..TRN1 };

const TRN3: Arch = Arch { target: Target::Trn3, sbuf_bytes: 256 * 1024, moving_free_max: 4096, ..TRN2 };
