//! The closed vocabularies of the ISA: memories, engines, modes, operators. Each member has NKI's spelling.

/// A vocabulary whose members have NKI names.
pub trait Named: Sized + Copy + 'static {
    /// Name of the vocabulary in messages, for example `engine`.
    const WHAT: &'static str;
    /// All members, in declaration order.
    const ALL: &'static [Self];
    /// NKI's name of the member.
    fn name(self) -> &'static str;
    /// The member with this name or alias.
    fn from_name(name: &str) -> Option<Self>;
    /// The member that older releases encoded as this integer (see the enum values in the API stubs).
    fn from_int(_value: i64) -> Option<Self> {
        None
    }
}

/// Declares an enum whose members have NKI names, optional aliases (`|`) and optional integer values (`= n`).
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* $vis:vis enum $Name:ident : $what:literal {
        $($(#[$vmeta:meta])* $Variant:ident $name:literal $(| $alias:literal)* $(= $int:literal)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $Name { $($(#[$vmeta])* $Variant,)* }

        impl $crate::names::Named for $Name {
            const WHAT: &'static str = $what;
            const ALL: &'static [Self] = &[$($Name::$Variant,)*];
            fn name(self) -> &'static str {
                match self { $($Name::$Variant => $name,)* }
            }
            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name $(| $alias)* => Some($Name::$Variant),)*
                    _ => None,
                }
            }
            fn from_int(_value: i64) -> Option<Self> {
                match _value {
                    $($($int => Some($Name::$Variant),)?)*
                    _ => None,
                }
            }
        }
        impl $crate::arg::Operand for $Name {
            const KIND: $crate::schema::Kind = $crate::schema::Kind::Name($what);
            const MEMBERS: &'static [&'static str] = &[$($name),*];
            fn from_arg(arg: $crate::arg::Arg) -> Result<Self, $crate::arg::Mismatch> {
                $crate::arg::named_from_arg(arg)
            }
            fn to_arg(&self) -> $crate::arg::Arg {
                $crate::arg::Arg::Name($crate::names::Named::name(*self).into())
            }
        }
        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::names::Named::name(*self))
            }
        }
    };
}

named_enum! {
    /// A memory.
    pub enum Space: "memory" {
        /// On-chip state buffer: partitions of [`crate::Arch::sbuf_bytes`].
        Sbuf "sbuf",
        /// On-chip accumulation buffer: partitions of 8 banks of 2 KiB.
        Psum "psum",
        /// Device memory of one core.
        Hbm "hbm" | "private_hbm",
        /// Device memory shared by the cores of a logical core.
        SharedHbm "shared_hbm",
    }
}

impl Space {
    /// SBUF or PSUM: memory with partitions.
    pub fn is_on_chip(self) -> bool {
        matches!(self, Space::Sbuf | Space::Psum)
    }

    /// Either kind of HBM.
    pub fn is_hbm(self) -> bool {
        !self.is_on_chip()
    }
}

named_enum! {
    /// A binary operation on scalars (`NkiScalar`).
    pub enum ScalarOp: "scalar operation" {
        /// `x + y`
        Add "add",
        /// `x - y`
        Subtract "subtract",
        /// `x * y`
        Multiply "multiply",
        /// `x < y`
        Less "less",
        /// `x <= y`
        LessEqual "less_equal",
        /// `x > y`
        Greater "greater",
        /// `x >= y`
        GreaterEqual "greater_equal",
        /// `x == y`
        Equal "equal",
        /// `x != y`
        NotEqual "not_equal",
    }
}

named_enum! {
    /// A NeuronCore engine with its own instruction queue, or `unknown` if the program leaves the choice to the compiler.
    /// Integer values: `nki.isa.engine`.
    pub enum Engine: "engine" {
        /// Tensor engine (PE).
        Tensor "tensor" = 1,
        /// Vector engine (DVE).
        Vector "vector" = 5,
        /// Scalar engine (ACT).
        Scalar "scalar" = 2,
        /// GpSimd engine (Pool).
        GpSimd "gpsimd" = 3,
        /// Sync engine (SP): a sequencer only.
        Sync "sync" = 6,
        /// The DMA engines; never the issuer of an instruction.
        Dma "dma" = 4,
        /// Left to the compiler.
        Unknown "unknown" = 0,
    }
}

impl Engine {
    /// The five engines with an instruction queue, in the order of reports.
    pub const QUEUES: [Engine; 5] = [Engine::Tensor, Engine::Vector, Engine::Scalar, Engine::GpSimd, Engine::Sync];
}

named_enum! {
    /// Descriptor generation mode of a DMA (`nki.isa.dge_mode`).
    pub enum DgeMode: "dge_mode" {
        /// Left to the compiler.
        Unknown "unknown" = 0,
        /// GpSimd builds descriptors.
        SwDge "swdge" = 1,
        /// Hardware builds descriptors, triggered from Sync or Scalar.
        HwDge "hwdge" = 2,
        /// Descriptors are prebuilt in HBM.
        None "none" = 3,
    }
}

named_enum! {
    /// The engine that moves the bytes of a `sendrecv` (`nki.isa.dma_engine`).
    pub enum DmaEngine: "dma_engine" {
        /// The DMA engines of the core.
        Dma "dma" = 1,
        /// The DMA engine inside GpSimd.
        GpSimdDma "gpsimd_dma" = 2,
    }
}

named_enum! {
    /// Handling of a dynamic access out of bounds (`nki.isa.oob_mode`).
    pub enum OobMode: "oob_mode" {
        /// A runtime error.
        Error "error" = 0,
        /// The element is skipped.
        Skip "skip" = 1,
    }
}

named_enum! {
    /// Accumulator register command (`nki.isa.reduce_cmd`).
    pub enum ReduceCmd: "reduce_cmd" {
        /// Accumulators are not used.
        Idle "idle" = 0,
        /// Accumulators are reset.
        Reset "reset" = 1,
        /// The result is reduced into the accumulators.
        Reduce "reduce" = 2,
        /// Reset, then reduce.
        ResetReduce "reset_reduce" = 3,
        /// Load a value, then reduce.
        LoadReduce "load_reduce" = 4,
    }
}

named_enum! {
    /// Tensor engine performance mode (`nki.isa.matmul_perf_mode`).
    pub enum PerfMode: "matmul_perf_mode" {
        /// No special mode.
        None "none",
        /// FP8 double rate: two rows per pass.
        DoubleRow "double_row",
    }
}

named_enum! {
    /// Operators of the vector-engine ALU (`nki-aluop` in the manual).
    pub enum AluOp: "math operator" {
        /// `x`
        Bypass "bypass" | "copy",
        /// `x + y`
        Add "add",
        /// `x - y`
        Subtract "subtract",
        /// `x * y`
        Multiply "multiply",
        /// `x / y`
        Divide "divide",
        /// `max(x, y)`
        Max "maximum" | "max",
        /// `min(x, y)`
        Min "minimum" | "min",
        /// `x` if `|x| > |y|`, else `y`: the sign is kept.
        AbsMax "abs_max",
        /// `x` if `|x| < |y|`, else `y`: the sign is kept.
        AbsMin "abs_min",
        /// `x ** y`
        Power "power" | "pow",
        /// Floor modulo, as Python's `%`.
        Mod "mod",
        /// Truncated remainder, as C's `fmod`.
        Fmod "fmod",
        /// `x == y`
        Equal "equal",
        /// `x != y`
        NotEqual "not_equal",
        /// `x > y`
        Greater "greater",
        /// `x >= y`
        GreaterEqual "greater_equal",
        /// `x < y`
        Less "less",
        /// `x <= y`
        LessEqual "less_equal",
        /// Logical and of non-zeroness.
        LogicalAnd "logical_and",
        /// Logical or of non-zeroness.
        LogicalOr "logical_or",
        /// Logical exclusive or of non-zeroness.
        LogicalXor "logical_xor",
        /// Logical not of `x`: exclusive or of its non-zeroness with 1.
        LogicalNot "logical_not",
        /// Bitwise and.
        BitwiseAnd "bitwise_and",
        /// Bitwise or.
        BitwiseOr "bitwise_or",
        /// Bitwise exclusive or.
        BitwiseXor "bitwise_xor",
        /// Bitwise not of `x`.
        Invert "invert" | "bitwise_not",
        /// `x << y`
        LeftShift "left_shift" | "logical_shift_left",
        /// `x >> y`, zeros shifted in.
        RightShift "right_shift" | "logical_shift_right",
        /// `x >> y`, sign bits shifted in.
        ArithmeticRightShift "arithmetic_right_shift" | "arith_shift_right",
        /// `x << y`, as the logical shift.
        ArithmeticLeftShift "arithmetic_left_shift" | "arith_shift_left",
        /// `1 / sqrt(x)`
        Rsqrt "rsqrt",
        /// `|x|`
        Abs "abs",
        /// `x * x`
        Square "square",
        /// `max(x, 0)`
        Relu "relu",
        /// `1 / x`
        Reciprocal "reciprocal",
    }
}

impl AluOp {
    /// Whether it operates on integer bit patterns: inputs and outputs are not converted.
    pub fn is_bitvec(self) -> bool {
        use AluOp::*;
        matches!(
            self,
            BitwiseAnd
                | BitwiseOr
                | BitwiseXor
                | Invert
                | LeftShift
                | RightShift
                | ArithmeticRightShift
                | ArithmeticLeftShift
        )
    }

    /// Whether the result is 1 or 0 by an order or equality of the operands.
    pub fn is_comparison(self) -> bool {
        use AluOp::*;
        matches!(self, Equal | NotEqual | Greater | GreaterEqual | Less | LessEqual)
    }

    /// Whether the second operand is ignored.
    pub fn is_unary(self) -> bool {
        use AluOp::*;
        matches!(self, Bypass | LogicalNot | Invert | Rsqrt | Abs | Square | Relu | Reciprocal)
    }

    /// Whether a reduction may use the operator (`nki-aluop`, column "Legal Reduction op").
    pub fn is_reduction(self) -> bool {
        use AluOp::*;
        matches!(
            self,
            BitwiseAnd
                | BitwiseOr
                | BitwiseXor
                | Add
                | Subtract
                | Multiply
                | Max
                | Min
                | LogicalAnd
                | LogicalOr
                | LogicalXor
        )
    }

    /// Whether the vector engine's fast modes for 16-bit types apply (add, subtract, multiply, maximum and moves only).
    pub fn is_simple(self) -> bool {
        use AluOp::*;
        matches!(self, Bypass | Add | Subtract | Multiply | Max)
    }
}
