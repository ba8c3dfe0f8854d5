//! The enums of `neuronxcc.nki.isa`, whose values differ from those of the current language.

use nki_isa::Target;
use nki_isa::names::Named;

use crate::dialect::common::enums::{ApiEnum, Vocabulary};

static ENGINE: Vocabulary = Vocabulary {
    name: "engine",
    module: "neuronxcc.nki.isa",
    members: &[("tensor", 1), ("vector", 5), ("scalar", 2), ("gpsimd", 3), ("dma", 4), ("sync", 6), ("unknown", 0)],
};

static NC_VERSION: Vocabulary =
    Vocabulary { name: "nc_version", module: "neuronxcc.nki.isa", members: &[("gen2", 2), ("gen3", 3), ("gen4", 4)] };

/// All enums.
pub(super) static VOCABULARIES: &[&Vocabulary] = &[
    &ENGINE,
    &NC_VERSION,
    &Vocabulary {
        name: "dge_mode",
        module: "neuronxcc.nki.isa",
        members: &[("none", 0), ("swdge", 1), ("hwdge", 2), ("unknown", 3)],
    },
    &Vocabulary { name: "oob_mode", module: "neuronxcc.nki.isa", members: &[("error", 0), ("skip", 1)] },
    &Vocabulary {
        name: "reduce_cmd",
        module: "neuronxcc.nki.isa",
        members: &[("idle", 0), ("reset", 1), ("reduce", 2), ("reset_reduce", 3), ("load_reduce", 4)],
    },
];

/// An engine.
pub(super) fn engine(name: &str) -> Option<ApiEnum> {
    ENGINE.member(name)
}

/// The `nc_version` of a target.
pub(super) fn nc_version(target: Target) -> Option<ApiEnum> {
    let member = NC_VERSION.members.iter().find(|&&(_, value)| Target::from_int(value) == Some(target))?;
    NC_VERSION.member(member.0)
}

#[cfg(test)]
mod tests {
    use nki_isa::names::{DgeMode, Engine, OobMode, ReduceCmd};

    use super::*;

    #[test]
    fn members_are_names_of_the_machine() {
        fn known<T: Named>(class: &str) -> bool {
            let class = VOCABULARIES.iter().find(|v| v.name == class).unwrap();
            class.members.iter().all(|(name, _)| T::from_name(name).is_some())
        }
        assert!(known::<Engine>("engine"));
        assert!(known::<DgeMode>("dge_mode"));
        assert!(known::<OobMode>("oob_mode"));
        assert!(known::<ReduceCmd>("reduce_cmd"));
        assert!(Target::ALL.iter().all(|&t| nc_version(t).is_some()));
    }
}
