//! The instructions: one file each, and this registry with one line each.
//!
//! An instruction's file defines its operand schema (the [`operands!`](crate::operands) block), the rules beyond it ([`Instruction::validate`]),
//! its [`Instruction::footprint`], its numerics ([`Instruction::execute`]), its [`Instruction::work`], the dependence of results on
//! operands ([`Instruction::values`]), the placement constraints of its tiles ([`Instruction::PLACING`]), and the tile that a call without `dst`
//! returns ([`Instruction::result`]). The other methods have defaults that are right for most instructions.

mod accumulators;
pub mod check;
pub mod collectives;
pub mod dma;
mod doubt;
pub mod every_operand;
mod facts;
pub mod gpsimd;
pub mod indirection;
mod inert;
pub mod math;
mod mx;
mod random;
pub mod result;
mod rewrite;
pub mod scalar;
pub mod scalars;
mod stream;
pub mod sync;
pub mod tensor;
pub mod values;
pub mod vector;

pub use accumulators::AccumulatorUse;
pub use stream::{law_of_opcode, name_of_opcode};

use ndarray::Array2;
use smallvec::SmallVec;

use self::result::{Given, ResultTile};
use self::values::Values;
use crate::arch::Arch;
use crate::arg::{Arg, Imm};
use crate::ids::RegId;
use crate::machine::{Context, Fault, Machine};
use crate::names::{DgeMode, Engine, Space};
use crate::rendezvous::Participants;
use crate::schema::{Former, OperandSchema, Schema};
use crate::view::{Index, View};
use crate::violation::Violation;
use crate::work::Work;

/// What the [`operands!`](crate::operands) block generates.
pub trait Operands: Sized {
    /// Names, kinds, memories, defaults, engines.
    const SCHEMA: Schema;
    /// Builds the instruction from arguments in schema order; `None` for an argument that was not given.
    ///
    /// # Errors
    /// If a required operand is missing (slug `missing-operand`), of the wrong kind (`operand-kind`) or in a memory that the
    /// schema does not allow (`operand-memory`).
    fn from_args(args: &mut [Option<Arg>]) -> Result<Self, Violation>;
    /// Operands as arguments, in schema order.
    fn args(&self) -> Vec<Arg>;
    /// Calls `each` with the views of the operands.
    fn each_view<'a>(&'a self, each: &mut dyn FnMut(&'static OperandSchema, &'a View));
    /// Calls `each` with mutable views of the operands, in the same order.
    fn each_view_mut(&mut self, each: &mut dyn FnMut(&mut View));
    /// Adds the operands' memory and register accesses, according to their roles in the schema.
    fn operand_footprint<'a>(&'a self, footprint: &mut Footprint<'a>);
}

/// An instruction.
pub trait Instruction: Operands {
    /// The engine that runs it (for DMA: that triggers it); resolves `unknown`.
    fn engine(&self, arch: &Arch) -> Engine;
    /// Operands with a special layout instead of an access pattern: [`Self::validate`] checks their start.
    const OWN_LAYOUT: &'static [&'static str] = &[];
    /// Operands that may be selected by offsets (`NkiTensor.indirect`): `dst`, then the streamed operand, then others.
    const INDIRECT: &'static [&'static str] = &[];
    /// Operands that may be of a packed dtype ([`crate::DType::is_packed`]).
    const PACKED: &'static [&'static str] = &[];
    /// Operands that may be of int64.
    const WIDE: &'static [&'static str] = &[];
    /// Whether kernels can call it by name.
    const PUBLIC: bool = true;
    /// The placement constraints of its tiles.
    const PLACING: Placing;
    /// Its keywords in earlier versions of NKI.
    const FORMER: &'static [Former] = &[];
    /// The tile that a call without `dst` fills and returns; `None` if the instruction has no result or does not support
    /// the operands.
    fn result(_given: &Given<'_>) -> Option<ResultTile> {
        None
    }
    /// Checks the rules that the schema cannot express.
    ///
    /// # Errors
    /// The first broken rule.
    fn validate(&self, context: &Context<'_>) -> Result<(), Violation>;
    /// Adds its reads and writes. Usually `self.operand_footprint(footprint)`.
    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>);
    /// Its numerics.
    ///
    /// # Errors
    /// If it runs into a run-time error, such as a dynamic index out of bounds.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault>;
    /// Its cost in hardware terms.
    fn work(&self, context: &Context<'_>) -> Work;
    /// How its results depend on its operands.
    fn values(&self) -> Values<'_>;
    /// Its effect, if more is known than its results.
    fn action(&self) -> Action<'_> {
        Action::Computes
    }
    /// For a matmul that accumulates in PSUM: `dst`, and its `accumulate` (see [`Machine::begin_accumulate`]).
    fn accumulation(&self, _arch: &Arch) -> Option<(&View, Option<bool>)> {
        None
    }
    /// Whether it sets an engine state (accumulators) that a later instruction may use, so that its destinations may remain unread.
    fn sets_engine_state(&self) -> bool {
        false
    }
    /// Whether a row that an index names twice receives the sum of both results.
    fn adds_repeated(&self) -> bool {
        false
    }
    /// A given operand that has no effect in this combination: slug `inert-operand`.
    fn inert(&self) -> Option<Violation> {
        None
    }
    /// A valid but probably unintended combination of operands, reported if it holds whenever the line runs. The violation names the finding.
    fn doubt(&self) -> Option<Violation> {
        None
    }
    /// Its use of its engine's accumulators, if any.
    fn accumulators(&self) -> Option<AccumulatorUse> {
        None
    }
    /// The members of its rendezvous.
    fn participants(&self) -> Option<Participants<'_>> {
        None
    }
    /// Its contribution to its rendezvous (see [`Machine::contributions`]).
    ///
    /// # Errors
    /// If it runs into a run-time error, such as a dynamic index out of bounds.
    fn contribute(&self, _machine: &mut dyn Machine) -> Result<Vec<Array2<u32>>, Fault> {
        Ok(Vec::new())
    }
    /// Whether it matches the instruction of another member of its rendezvous.
    ///
    /// # Errors
    /// The mismatch.
    fn agrees(&self, _other: &Self, _context: &Context<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// Placement constraints of an instruction's tiles, for programs that do not fit otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// They start at the first partition.
    Fixed,
    /// Each may start at any partition.
    AnyPartition,
    /// All inputs may start at any partition, the same for all: the instruction works within each partition.
    SamePartition,
    /// As `SamePartition`, and the result may reuse the storage of an input tile: each element is written where the same element was read before.
    InPlace,
}

/// The effect of an instruction, for findings and remedies that depend on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action<'a> {
    /// It computes results; nothing else is known.
    Computes,
    /// It writes this value everywhere.
    Fills(Imm),
    /// It moves the elements of one view to those of another, in order.
    Transfers(Transfer<'a>),
    /// A compute engine copies the elements of one view to those of another, in order: destination and source.
    Copies(&'a View, &'a View),
    /// It moves the elements of one view to another whose dimensions are the source's in this order: destination, source, order.
    Transposes(&'a View, &'a View, &'static [usize]),
    /// It orders the cores, but touches no byte of the tensor in its footprint.
    Orders,
    /// It draws from or seeds a random number generator, or prints: such instructions keep their order, whatever their operands are.
    Sequenced,
    /// It prepares an instruction of this name with the same operands, which must follow before another preparation.
    Prepares(&'static str),
}

/// A transfer by DMA.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer<'a> {
    /// Where to.
    pub dst: &'a View,
    /// Where from.
    pub src: &'a View,
    /// The engine that triggers it.
    pub engine: Engine,
    /// Who makes the descriptors.
    pub dge_mode: DgeMode,
}

/// Memory and registers that an instruction touches.
#[derive(Debug, Default)]
pub struct Footprint<'a> {
    /// Views read, index tensors included.
    pub reads: SmallVec<[&'a View; 4]>,
    /// Views written.
    pub writes: SmallVec<[&'a View; 2]>,
    /// Registers read.
    pub register_reads: SmallVec<[RegId; 2]>,
    /// Registers written.
    pub register_writes: SmallVec<[RegId; 1]>,
}

impl<'a> Footprint<'a> {
    /// Forgets everything, keeping the buffers.
    pub fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.register_reads.clear();
        self.register_writes.clear();
    }
    /// Adds a read of `view` and of the index in it.
    pub fn read(&mut self, view: &'a View) {
        self.reads.push(view);
        self.index_of(view);
    }
    /// Adds a write of `view` (and a read of the index in it).
    pub fn write(&mut self, view: &'a View) {
        self.writes.push(view);
        self.index_of(view);
    }
    fn index_of(&mut self, view: &'a View) {
        match view.indirect.as_deref().map(|i| &i.index) {
            Some(Index::Register(r)) => self.register_reads.push(*r),
            Some(Index::Scalar(v) | Index::Vector(v) | Index::Columns(v)) => self.reads.push(v),
            None => {}
        }
    }
}

/// Declares an instruction: the struct, its schema, and its conversion from and to arguments. Omitting one of the sections after the operands
/// is a compile error.
///
/// ```text
/// operands! {
///     /// Element-wise operation of two tensors.
///     pub struct TensorTensor: "tensor_tensor" on [Vector, GpSimd from Trn2] {
///         /// The result.
///         [Out Sbuf Psum] dst: View,
///         /// An input that must be of one of these types.
///         [In Sbuf Psum; U8 U16] data1: View,
///         /// Engine to use.
///         [Attr] engine: Engine = Engine::Unknown,
///     }
/// instead: "what to use on generations without it (optional)",
///     numerics: "in which precision it computes and where it rounds",
///     cost: Documented "what its time grows with, in hardware terms",
/// rules: { "same-size": "a limit that the operands cannot express", }
/// }
/// ```
#[macro_export]
macro_rules! operands {
    ($(#[doc = $doc:literal])* pub struct $Name:ident: $nki:literal on [$($engine:ident $(from $since:ident)?),* $(,)?] {
        $($(#[doc = $fdoc:literal])* [$role:ident $($space:ident)* $(; $($dtype:ident)+)?] $field:ident: $ty:ty $(= $default:expr)?,)*
    }
    $(instead: $instead:literal,)?
    numerics: $numerics:expr,
    cost: $confidence:ident $cost:literal,
    rules: { $($rule:literal: $text:literal,)* } $(,)?
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $Name {
            $($(#[doc = $fdoc])* pub $field: $ty,)*
        }

        impl $crate::inst::Operands for $Name {
            const SCHEMA: $crate::schema::Schema = $crate::schema::Schema {
                name: $nki,
                doc: concat!($($doc, "\n"),*),
                engines: &[$($crate::schema::Runs {
                    on: $crate::names::Engine::$engine,
                    since: $crate::operands!(@since $($since)?),
                }),*],
                operands: &[$($crate::schema::OperandSchema {
                    name: stringify!($field),
                    role: $crate::schema::Role::$role,
                    kind: <$ty as $crate::arg::Operand>::KIND,
                    members: <$ty as $crate::arg::Operand>::MEMBERS,
                    spaces: &[$($crate::names::Space::$space),*],
                    dtypes: &[$($($crate::dtype::DType::$dtype),+)?],
                    default: $crate::operands!(@default $ty $(, $default)?),
                    doc: concat!($($fdoc, "\n"),*),
                },)*],
                numerics: $numerics,
                cost: $crate::schema::Cost { text: $cost, confidence: $crate::schema::Confidence::$confidence },
                rules: &[$($crate::schema::Rule { id: $rule, text: $text },)*],
                instead: concat!("" $(, $instead)?),
            };

            #[allow(unused_assignments, reason = "the last operand's index is not read again")]
            fn from_args(args: &mut [Option<$crate::arg::Arg>]) -> Result<Self, $crate::violation::Violation> {
                let mut index = 0;
                $(
                    let $field: $ty = $crate::inst::take_operand(&Self::SCHEMA.operands[index], args.get_mut(index).and_then(Option::take))?;
                    index += 1;
                )*
                Ok($Name { $($field),* })
            }

            fn args(&self) -> Vec<$crate::arg::Arg> {
                vec![$($crate::arg::Operand::to_arg(&self.$field)),*]
            }

            #[allow(unused_assignments, reason = "the last operand's index is not read again")]
            fn each_view<'a>(&'a self, each: &mut dyn FnMut(&'static $crate::schema::OperandSchema, &'a $crate::view::View)) {
                let mut index = 0;
                $(
                    $crate::arg::Operand::views(&self.$field, &mut |v| each(&Self::SCHEMA.operands[index], v));
                    index += 1;
                )*
            }

            fn each_view_mut(&mut self, each: &mut dyn FnMut(&mut $crate::view::View)) {
                $($crate::arg::Operand::views_mut(&mut self.$field, each);)*
            }

            fn operand_footprint<'a>(&'a self, footprint: &mut $crate::inst::Footprint<'a>) {
                $($crate::inst::operand_footprint($crate::schema::Role::$role, &self.$field, footprint);)*
            }
        }
    };
    (@since) => { $crate::arch::Target::OLDEST };
    (@since $since:ident) => { $crate::arch::Target::$since };
    (@default $ty:ty) => { None };
    (@default $ty:ty, $default:expr) => { Some(|| <$ty as $crate::arg::Operand>::to_arg(&{ let d: $ty = $default; d })) };
}

/// Converts one given (or missing) argument for [`operands!`](crate::operands).
///
/// # Errors
/// As [`Operands::from_args`].
pub fn take_operand<T: crate::arg::Operand>(
    schema: &crate::schema::OperandSchema,
    given: Option<Arg>,
) -> Result<T, Violation> {
    let arg = match given {
        Some(arg) => arg,
        None => match schema.default {
            Some(default) => default(),
            None => {
                return Err(Violation::new(
                    "missing-operand",
                    schema.name,
                    format!("required operand `{}` is missing", schema.name),
                ));
            }
        },
    };
    let value = T::from_arg(arg).map_err(|m| {
        Violation::new("operand-kind", schema.name, format!("`{}` takes {}, got {}", schema.name, m.expected, m.got))
    })?;
    let mut wrong = None;
    if !schema.spaces.is_empty() {
        value.views(&mut |v| {
            // An instruction does not distinguish the two kinds of HBM.
            let ok = schema.spaces.iter().any(|s| *s == v.space || (s.is_hbm() && v.space.is_hbm()));
            if !ok {
                wrong = Some(v.space);
            }
        });
    }
    if let Some(space) = wrong {
        let allowed: Vec<_> = schema.spaces.iter().map(|s| s.to_string()).collect();
        let reaches_hbm = schema.spaces.iter().any(|s| s.is_hbm());
        let help = match (space, schema.role) {
            (Space::Sbuf, crate::schema::Role::Out) if schema.spaces == [Space::Psum] => {
                "the tensor engine writes to PSUM: make the tile with buffer=nl.psum, and copy the result to SBUF with nisa.tensor_copy"
            }
            (Space::Psum, crate::schema::Role::In) if schema.spaces.contains(&Space::Sbuf) && !reaches_hbm => {
                "copy the tile to SBUF with nisa.tensor_copy first"
            }
            (Space::Psum, crate::schema::Role::In) if schema.spaces.contains(&Space::Sbuf) => {
                "neither DMA nor GpSimd reaches PSUM: copy the tile to SBUF with nisa.tensor_copy first"
            }
            (Space::Psum, _) if schema.spaces.contains(&Space::Sbuf) => {
                "neither DMA nor GpSimd reaches PSUM: write a tile in SBUF, and copy it with nisa.tensor_copy if it must be in PSUM"
            }
            (s, crate::schema::Role::In) if s.is_hbm() => "load it into an SBUF tile with nisa.dma_copy first",
            (s, _) if s.is_hbm() => "write a tile in SBUF and copy that to HBM with nisa.dma_copy",
            _ => "",
        };
        return Err(Violation::new(
            "operand-memory",
            schema.name,
            format!("`{}` is in {space}, but must be in {}", schema.name, allowed.join(" or ")),
        )
        .help(help));
    }
    Ok(value)
}

/// Adds one operand to a footprint for [`operands!`](crate::operands).
pub fn operand_footprint<'a, T: crate::arg::Operand>(
    role: crate::schema::Role,
    operand: &'a T,
    footprint: &mut Footprint<'a>,
) {
    use crate::schema::Role;
    operand.views(&mut |v| match role {
        Role::In | Role::Attr => footprint.read(v),
        Role::Out => footprint.write(v),
        Role::InOut => {
            footprint.read(v);
            footprint.writes.push(v);
        }
    });
    if let Some(r) = operand.register() {
        match role {
            Role::In | Role::Attr => footprint.register_reads.push(r),
            Role::Out => footprint.register_writes.push(r),
            Role::InOut => {
                footprint.register_reads.push(r);
                footprint.register_writes.push(r);
            }
        }
    }
}

/// A registry entry: how to build an instruction from its name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The schema.
    pub schema: &'static Schema,
    /// It is in `nki.collectives`, not in `nki.isa`.
    pub collective: bool,
    /// See [`Instruction::PUBLIC`].
    pub public: bool,
    /// See [`Instruction::INDIRECT`].
    pub indirect: &'static [&'static str],
    /// See [`Instruction::FORMER`].
    pub former: &'static [Former],
    /// See [`Instruction::result`].
    pub result: fn(&Given<'_>) -> Option<ResultTile>,
    /// Builds it from arguments in schema order (see [`Operands::from_args`]). Does not validate.
    pub build: fn(&mut [Option<Arg>]) -> Result<Inst, Violation>,
}

macro_rules! instructions {
    ($($path:ident :: $file:ident :: $Name:ident,)*) => {
        /// Any instruction. Boxed: sizes differ by a factor of ten, and building a program moves many of them.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "each variant is documented at its struct")]
        pub enum Inst { $($Name(Box<$path::$file::$Name>),)* }

        $(impl From<$path::$file::$Name> for Inst {
            fn from(i: $path::$file::$Name) -> Inst { Inst::$Name(Box::new(i)) }
        })*

        /// All instructions, in registry order.
        pub static REGISTRY: &[Entry] = &[
            $(Entry {
                schema: &<$path::$file::$Name as Operands>::SCHEMA,
                indirect: <$path::$file::$Name as Instruction>::INDIRECT,
                former: <$path::$file::$Name as Instruction>::FORMER,
                public: <$path::$file::$Name as Instruction>::PUBLIC,
                collective: matches!(stringify!($path).as_bytes(), b"collectives"),
                result: <$path::$file::$Name as Instruction>::result,
                build: |args| <$path::$file::$Name as Operands>::from_args(args).map(Inst::from),
            },)*
        ];

        impl Inst {
            /// The instruction's schema.
            pub fn schema(&self) -> &'static Schema {
                match self { $(Inst::$Name(_) => &<$path::$file::$Name as Operands>::SCHEMA,)* }
            }
            /// See [`Operands::args`].
            pub fn args(&self) -> Vec<Arg> {
                match self { $(Inst::$Name(i) => i.args(),)* }
            }
            /// See [`Operands::each_view`].
            pub fn each_view<'a>(&'a self, each: &mut dyn FnMut(&'static OperandSchema, &'a View)) {
                match self { $(Inst::$Name(i) => i.each_view(each),)* }
            }
            /// See [`Operands::each_view_mut`].
            pub fn each_view_mut(&mut self, each: &mut dyn FnMut(&mut View)) {
                match self { $(Inst::$Name(i) => i.each_view_mut(each),)* }
            }
            /// See [`Instruction::engine`].
            pub fn engine(&self, arch: &Arch) -> Engine {
                match self { $(Inst::$Name(i) => i.engine(arch),)* }
            }
            /// See [`Instruction::validate`]. First checks the schema and the common rules of all views.
            ///
            /// # Errors
            /// The first broken rule.
            pub fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
                match self { $(Inst::$Name(i) => { every_operand::check(&**i, context)?; indirection::check(&**i, context)?; i.validate(context) })* }
            }
            /// See [`Instruction::footprint`].
            pub fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
                match self { $(Inst::$Name(i) => i.footprint(footprint),)* }
            }
            /// See [`Instruction::execute`].
            ///
            /// # Errors
            /// A run-time error of the kernel.
            pub fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
                match self { $(Inst::$Name(i) => i.execute(machine),)* }
            }
            /// See [`Instruction::work`].
            pub fn work(&self, context: &Context<'_>) -> Work {
                match self { $(Inst::$Name(i) => i.work(context),)* }
            }
            /// See [`Instruction::PLACING`].
            pub fn placing(&self) -> Placing {
                match self { $(Inst::$Name(_) => <$path::$file::$Name as Instruction>::PLACING,)* }
            }
            /// See [`Instruction::values`].
            pub fn values(&self) -> Values<'_> {
                match self { $(Inst::$Name(i) => i.values(),)* }
            }
            /// See [`Instruction::action`].
            pub fn action(&self) -> Action<'_> {
                match self { $(Inst::$Name(i) => i.action(),)* }
            }
            /// See [`Instruction::accumulation`].
            pub fn accumulation(&self, arch: &Arch) -> Option<(&View, Option<bool>)> {
                match self { $(Inst::$Name(i) => i.accumulation(arch),)* }
            }
            /// See [`Instruction::sets_engine_state`].
            pub fn sets_engine_state(&self) -> bool {
                match self { $(Inst::$Name(i) => i.sets_engine_state(),)* }
            }
            /// See [`Instruction::adds_repeated`].
            pub fn adds_repeated(&self) -> bool {
                match self { $(Inst::$Name(i) => i.adds_repeated(),)* }
            }
            /// See [`Instruction::inert`].
            pub fn inert(&self) -> Option<Violation> {
                match self { $(Inst::$Name(i) => i.inert(),)* }
            }
            /// See [`Instruction::doubt`].
            pub fn doubt(&self) -> Option<Violation> {
                match self { $(Inst::$Name(i) => i.doubt(),)* }
            }
            /// See [`Instruction::accumulators`].
            pub fn accumulators(&self) -> Option<AccumulatorUse> {
                match self { $(Inst::$Name(i) => i.accumulators(),)* }
            }
            /// See [`Instruction::participants`].
            pub fn participants(&self) -> Option<Participants<'_>> {
                match self { $(Inst::$Name(i) => i.participants(),)* }
            }
            /// See [`Instruction::contribute`].
            ///
            /// # Errors
            /// A run-time error of the kernel.
            pub fn contribute(&self, machine: &mut dyn Machine) -> Result<Vec<Array2<u32>>, Fault> {
                match self { $(Inst::$Name(i) => i.contribute(machine),)* }
            }
            /// See [`Instruction::agrees`]. Two instructions of different names do not agree.
            ///
            /// # Errors
            /// The mismatch.
            pub fn agrees(&self, other: &Inst, context: &Context<'_>) -> Result<(), String> {
                match (self, other) {
                    $((Inst::$Name(a), Inst::$Name(b)) => a.agrees(b, context),)*
                    _ => Err(format!("one is {}, the other {}", self.schema().name, other.schema().name)),
                }
            }
        }
    };
}

instructions! {
    tensor::nc_matmul::NcMatmul,
    tensor::nc_matmul_mx::NcMatmulMx,
    tensor::nc_transpose::NcTranspose,
    dma::dma_compute::DmaCompute,
    dma::dma_copy::DmaCopy,
    dma::dma_transpose::DmaTranspose,
    dma::sendrecv::Sendrecv,
    collectives::all_gather::AllGather,
    collectives::all_gather_v::AllGatherV,
    collectives::all_gather_v_prepare::AllGatherVPrepare,
    collectives::all_gather_v_trigger::AllGatherVTrigger,
    collectives::all_reduce::AllReduce,
    collectives::all_to_all::AllToAll,
    collectives::all_to_all_v::AllToAllV,
    collectives::all_to_all_v_prepare::AllToAllVPrepare,
    collectives::all_to_all_v_trigger::AllToAllVTrigger,
    collectives::collective_permute::CollectivePermute,
    collectives::collective_permute_implicit::CollectivePermuteImplicit,
    collectives::collective_permute_implicit_current_processing_rank_id::ProcessingRankId,
    collectives::collective_permute_implicit_reduce::CollectivePermuteImplicitReduce,
    collectives::rank_id::RankId,
    collectives::reduce_scatter::ReduceScatter,
    gpsimd::affine_select::AffineSelect,
    gpsimd::iota::Iota,
    gpsimd::local_gather::LocalGather,
    gpsimd::nc_n_gather::NcNGather,
    gpsimd::nonzero_with_count::NonzeroWithCount,
    gpsimd::rand_get_state::RandGetState,
    gpsimd::rand_set_state::RandSetState,
    gpsimd::sequence_bounds::SequenceBounds,
    gpsimd::tensor_partition_reduce::TensorPartitionReduce,
    gpsimd::topk::Topk,
    sync::core_barrier::CoreBarrier,
    sync::device_print::DevicePrint,
    sync::register_load::RegisterLoad,
    sync::register_move::RegisterMove,
    sync::register_store::RegisterStore,
    sync::scalar_compute::ScalarCompute,
    sync::scalar_load::ScalarLoad,
    sync::scalar_store::ScalarStore,
    scalar::activate2::Activate2,
    scalar::activation::Activation,
    scalar::activation_reduce::ActivationReduce,
    vector::bn_aggr::BnAggr,
    vector::bn_stats::BnStats,
    vector::dropout::Dropout,
    vector::exponential::Exponential,
    vector::max8::Max8,
    vector::memset::Memset,
    vector::nc_find_index8::NcFindIndex8,
    vector::nc_match_replace8::NcMatchReplace8,
    vector::nc_stream_shuffle::NcStreamShuffle,
    vector::quantize_mx::QuantizeMx,
    vector::rand2::Rand2,
    vector::range_select::RangeSelect,
    vector::reciprocal::Reciprocal,
    vector::rng::Rng,
    vector::scalar_tensor_tensor::ScalarTensorTensor,
    vector::select_reduce::SelectReduce,
    vector::set_rng_seed::SetRngSeed,
    vector::tensor_copy::TensorCopy,
    vector::tensor_copy_predicated::TensorCopyPredicated,
    vector::tensor_reduce::TensorReduce,
    vector::tensor_scalar::TensorScalar,
    vector::tensor_scalar_cumulative::TensorScalarCumulative,
    vector::tensor_scalar_reduce::TensorScalarReduce,
    vector::tensor_tensor::TensorTensor,
    vector::tensor_tensor_scan::TensorTensorScan,
}

/// The registry entry of `nki.isa.<name>` or `nki.collectives.<name>`.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|e| e.schema.name == name)
}
