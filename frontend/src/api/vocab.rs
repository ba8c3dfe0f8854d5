//! Enum members and operator names as values.

use nki_isa::Target;
use nki_isa::names::{AluOp, Named};

/// An enum of the API.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    /// Its name, for example `engine`.
    pub(crate) name: &'static str,
    /// Where it lives.
    pub(crate) module: &'static str,
    /// Members with their integer values.
    pub(crate) members: &'static [(&'static str, i64)],
}

/// All enums. Values: the enum classes of `nki.isa` and `nki.language`.
pub(crate) static VOCABULARIES: &[Vocabulary] = &[
    Vocabulary {
        name: "engine",
        module: "nki.isa",
        members: &[("unknown", 0), ("tensor", 1), ("scalar", 2), ("gpsimd", 3), ("dma", 4), ("vector", 5), ("sync", 6)],
    },
    Vocabulary {
        name: "MemoryRegion",
        module: "nki.language",
        members: &[("sbuf", 0), ("psum", 1), ("private_hbm", 2), ("shared_hbm", 3)],
    },
    Vocabulary {
        name: "dge_mode",
        module: "nki.isa",
        members: &[("unknown", 0), ("swdge", 1), ("hwdge", 2), ("none", 3)],
    },
    Vocabulary { name: "oob_mode", module: "nki.isa", members: &[("error", 0), ("skip", 1)] },
    Vocabulary {
        name: "reduce_cmd",
        module: "nki.isa",
        members: &[("idle", 0), ("reset", 1), ("reduce", 2), ("reset_reduce", 3), ("load_reduce", 4)],
    },
    Vocabulary { name: "matmul_perf_mode", module: "nki.isa", members: &[("none", 0), ("double_row", 1)] },
    Vocabulary { name: "nc_version", module: "nki.isa", members: &[("gen2", 2), ("gen3", 3), ("gen4", 4)] },
    Vocabulary { name: "dma_engine", module: "nki.isa", members: &[("dma", 1), ("gpsimd_dma", 2)] },
];

/// Index of `engine`.
const ENGINE: u8 = 0;
/// Index of `MemoryRegion`.
pub(crate) const MEMORY: u8 = 1;
/// Index of `nc_version`.
const NC_VERSION: u8 = 6;

/// A member of an enum of the API, such as `nisa.engine.vector` or `nl.sbuf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApiEnum {
    /// Index into [`VOCABULARIES`].
    pub(crate) vocabulary: u8,
    /// Index into its members.
    pub(crate) member: u8,
}

impl ApiEnum {
    /// The member of a vocabulary by name.
    pub(crate) fn find(vocabulary: u8, name: &str) -> Option<ApiEnum> {
        let member = VOCABULARIES.get(usize::from(vocabulary))?.members.iter().position(|m| m.0 == name)?;
        Some(ApiEnum { vocabulary, member: member as u8 })
    }

    /// An engine.
    pub(crate) fn engine(name: &str) -> Option<ApiEnum> {
        Self::find(ENGINE, name)
    }

    /// A memory, `hbm` being an alias of `private_hbm`.
    pub(crate) fn memory(name: &str) -> Option<ApiEnum> {
        Self::find(MEMORY, if name == "hbm" { "private_hbm" } else { name })
    }

    /// The `nc_version` of a target.
    pub(crate) fn nc_version(target: Target) -> ApiEnum {
        let members = VOCABULARIES[usize::from(NC_VERSION)].members;
        let member = members.iter().position(|&(_, value)| Target::from_int(value) == Some(target));
        ApiEnum { vocabulary: NC_VERSION, member: member.expect("a test finds a target without a member") as u8 }
    }

    /// The enum it belongs to.
    pub(crate) fn class(self) -> &'static Vocabulary {
        &VOCABULARIES[usize::from(self.vocabulary)]
    }

    /// Whether a memory is one of the kinds of HBM.
    pub(crate) fn is_hbm(self) -> bool {
        self.name().ends_with("hbm")
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        self.class().members[usize::from(self.member)].0
    }

    /// Its integer value.
    pub(crate) fn value(self) -> i64 {
        self.class().members[usize::from(self.member)].1
    }
}

/// How an operation of `nki.language` is called as a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpKind {
    /// `nl.add(x, y)`
    Binary(AluOp),
    /// `nl.exp(x)`
    Unary,
    /// Only a name for instructions.
    Name,
}

/// An operation that is a name for instructions and, most of them, a function too.
#[derive(Debug)]
pub(crate) struct Op {
    /// Its name under `nki.language`.
    pub(crate) name: &'static str,
    /// How it is called.
    pub(crate) kind: OpKind,
}

const fn binary(name: &'static str, op: AluOp) -> Op {
    Op { name, kind: OpKind::Binary(op) }
}

const fn unary(name: &'static str) -> Op {
    Op { name, kind: OpKind::Unary }
}

const fn only(name: &'static str) -> Op {
    Op { name, kind: OpKind::Name }
}

/// All operations of `nki.language`.
pub(crate) static OPS: &[Op] = &[
    binary("add", AluOp::Add),
    binary("subtract", AluOp::Subtract),
    binary("multiply", AluOp::Multiply),
    binary("divide", AluOp::Divide),
    binary("maximum", AluOp::Max),
    binary("minimum", AluOp::Min),
    binary("abs_max", AluOp::AbsMax),
    binary("abs_min", AluOp::AbsMin),
    binary("power", AluOp::Power),
    binary("mod", AluOp::Mod),
    binary("fmod", AluOp::Fmod),
    binary("equal", AluOp::Equal),
    binary("not_equal", AluOp::NotEqual),
    binary("greater", AluOp::Greater),
    binary("greater_equal", AluOp::GreaterEqual),
    binary("less", AluOp::Less),
    binary("less_equal", AluOp::LessEqual),
    binary("logical_and", AluOp::LogicalAnd),
    binary("logical_or", AluOp::LogicalOr),
    binary("logical_xor", AluOp::LogicalXor),
    binary("bitwise_and", AluOp::BitwiseAnd),
    binary("bitwise_or", AluOp::BitwiseOr),
    binary("bitwise_xor", AluOp::BitwiseXor),
    binary("left_shift", AluOp::LeftShift),
    binary("right_shift", AluOp::RightShift),
    binary("arithmetic_right_shift", AluOp::ArithmeticRightShift),
    binary("arithmetic_left_shift", AluOp::ArithmeticLeftShift),
    unary("abs"),
    unary("square"),
    unary("invert"),
    unary("logical_not"),
    unary("negative"),
    unary("exp"),
    unary("log"),
    unary("sqrt"),
    unary("rsqrt"),
    unary("reciprocal"),
    unary("tanh"),
    unary("sigmoid"),
    unary("relu"),
    unary("gelu"),
    unary("gelu_apprx_sigmoid"),
    unary("gelu_apprx_tanh"),
    unary("gelu_dx"),
    unary("gelu_apprx_sigmoid_dx"),
    unary("silu"),
    unary("silu_dx"),
    unary("softplus"),
    unary("mish"),
    unary("erf"),
    unary("erf_dx"),
    unary("sin"),
    unary("cos"),
    unary("tan"),
    unary("arctan"),
    unary("sign"),
    unary("floor"),
    unary("ceil"),
    unary("trunc"),
    unary("copy"),
    only("bypass"),
    only("prelu"),
    only("average"),
];

/// A name such as `nl.add`, usable as an operator argument and mostly callable: an index into [`OPS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NlOp(pub(crate) u16);

impl NlOp {
    /// The operation with this name.
    pub(crate) fn find(name: &str) -> Option<NlOp> {
        OPS.iter().position(|o| o.name == name).map(|i| NlOp(i as u16))
    }

    /// What it is.
    pub(crate) fn op(self) -> &'static Op {
        &OPS[usize::from(self.0)]
    }
}

#[cfg(test)]
mod tests {
    use nki_isa::names::{DgeMode, Engine, Named, OobMode, PerfMode, ReduceCmd};

    use super::*;

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
            let (_, value) =
                VOCABULARIES[usize::from(NC_VERSION)].members[usize::from(ApiEnum::nc_version(target).member)];
            assert_eq!(Target::from_int(value), Some(target));
        }
        for op in OPS {
            if let OpKind::Binary(alu) = op.kind {
                assert_eq!(AluOp::from_name(op.name), Some(alu), "{}", op.name);
            }
        }
    }
}
