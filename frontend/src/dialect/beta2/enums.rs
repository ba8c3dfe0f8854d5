//! The enums of `nki.isa` and `nki.language`.

use nki_isa::Target;
use nki_isa::names::Named;

use crate::dialect::common::enums::{ApiEnum, MEMORY, Vocabulary};

static ENGINE: Vocabulary = Vocabulary {
    name: "engine",
    module: "nki.isa",
    members: &[("unknown", 0), ("tensor", 1), ("scalar", 2), ("gpsimd", 3), ("dma", 4), ("vector", 5), ("sync", 6)],
};

static NC_VERSION: Vocabulary =
    Vocabulary { name: "nc_version", module: "nki.isa", members: &[("gen2", 2), ("gen3", 3), ("gen4", 4)] };

/// How `ReplicaGroup.from_partition_op` assigns ranks to groups. The page gives no integers.
static PARTITION_OP: Vocabulary = Vocabulary {
    name: "rg_partition_op",
    module: "nki.collectives",
    members: &[("bitwise_and", 0), ("div", 1), ("mod", 2)],
};

/// All enums. Values: the enum classes of `nki.isa` and `nki.language`.
pub(super) static VOCABULARIES: &[&Vocabulary] = &[
    &ENGINE,
    &MEMORY,
    &Vocabulary {
        name: "dge_mode",
        module: "nki.isa",
        members: &[("unknown", 0), ("swdge", 1), ("hwdge", 2), ("none", 3)],
    },
    // The page of NKI 0.7 gives no integers.
    &Vocabulary { name: "dependency", module: "nki.isa", members: &[("runtime", 0), ("schedule", 1)] },
    &Vocabulary { name: "oob_mode", module: "nki.isa", members: &[("error", 0), ("skip", 1)] },
    &Vocabulary {
        name: "reduce_cmd",
        module: "nki.isa",
        members: &[("idle", 0), ("reset", 1), ("reduce", 2), ("reset_reduce", 3), ("load_reduce", 4)],
    },
    &Vocabulary { name: "matmul_perf_mode", module: "nki.isa", members: &[("none", 0), ("double_row", 1)] },
    &NC_VERSION,
    &PARTITION_OP,
    &Vocabulary { name: "dma_engine", module: "nki.isa", members: &[("dma", 1), ("gpsimd_dma", 2)] },
];

/// An engine.
pub(super) fn engine(name: &str) -> Option<ApiEnum> {
    ENGINE.member(name)
}

/// The enum of the operators that partition ranks.
pub(super) fn partition_op() -> &'static Vocabulary {
    &PARTITION_OP
}

/// The `nc_version` of a target.
pub(super) fn nc_version(target: Target) -> ApiEnum {
    let member = NC_VERSION.members.iter().find(|&&(_, value)| Target::from_int(value) == Some(target));
    NC_VERSION.member(member.map_or("", |m| m.0)).expect("a test finds a target without a member")
}

#[cfg(test)]
mod tests {
    use nki_isa::names::{AluOp, DgeMode, Engine, Named, OobMode, PerfMode, ReduceCmd};

    use super::*;
    use crate::build::ops::{OPS, OpKind};

    #[test]
    fn members_agree_with_the_machines_vocabularies() {
        fn check<T: Named>(name: &str) {
            let class = VOCABULARIES.iter().find(|v| v.name == name).unwrap();
            for (member, value) in class.members {
                let known = T::from_name(member).unwrap_or_else(|| panic!("{name}.{member}"));
                if let Some(by_int) = T::from_int(*value) {
                    assert_eq!(by_int.name(), known.name(), "{name}.{member}");
                }
            }
        }
        check::<Engine>("engine");
        check::<DgeMode>("dge_mode");
        check::<OobMode>("oob_mode");
        check::<ReduceCmd>("reduce_cmd");
        check::<PerfMode>("matmul_perf_mode");
        check::<Target>("nc_version");
        check::<nki_isa::Space>("MemoryRegion");
        for &target in Target::ALL {
            assert_eq!(Target::from_int(nc_version(target).value()), Some(target));
        }
        for op in OPS {
            if let OpKind::Binary(alu) = op.kind {
                assert_eq!(AluOp::from_name(op.name), Some(alu), "{}", op.name);
            }
        }
    }
}
