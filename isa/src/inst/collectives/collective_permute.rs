//! `nki.collectives.collective_permute`: ranks send to ranks according to a list of pairs.

use crate::inst::values::{Feeds, Values};
use std::collections::BTreeSet;

use ndarray::Array2;

use crate::arch::Arch;
use crate::arg::{IntLists, Views};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::rendezvous::Participants;
use crate::violation::Violation;
use crate::work::{CollectiveKind, Work};

operands! {
    /// Sends the tensor of each source rank to its target rank. A rank that is no target keeps its `dsts`.
    pub struct CollectivePermute: "collective_permute" on [Sync] {
        /// One HBM tensor to send.
        [In Hbm] srcs: Views,
        /// One HBM tensor that receives.
        [Out Hbm] dsts: Views,
        /// Pairs (source, target) of ranks.
        [Attr] source_target_pairs: IntLists,
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
    }
    numerics: "Bits move unchanged.",
    cost: Derived "Hops between ranks, then bytes over the links; the engine only starts it and continues.",
    rules: {
        "ranks": "`source_target_pairs` are pairs of ranks, 0 to 65535; no rank is twice a source or twice a target",
        "one-tensor": "there is one source and one destination",
        "shape": "`dsts` have the shapes of `srcs`",
    },
}

impl Instruction for CollectivePermute {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        let refuse = |message: String| {
            Err(Violation::new("operand-value", "source_target_pairs", message)
                .help("write (source, target) pairs of ranks: [(0, 1), (1, 0)]"))
        };
        let (mut sources, mut targets) = (BTreeSet::new(), BTreeSet::new());
        for pair in &self.source_target_pairs.0 {
            let [source, target] = pair[..] else {
                return refuse(format!("`source_target_pairs` has {pair:?}, which is not a pair"));
            };
            for rank in [source, target] {
                if !(0..=i64::from(u16::MAX)).contains(&rank) {
                    return refuse(format!("`source_target_pairs` has rank {rank}, which is not 0 to {}", u16::MAX));
                }
            }
            if !sources.insert(source) {
                return refuse(format!("`source_target_pairs` has rank {source} twice as a source"));
            }
            if !targets.insert(target) {
                return refuse(format!("`source_target_pairs` has rank {target} twice as a target"));
            }
        }
        super::check_tensors(context, &self.srcs, &self.dsts, self.priority, false)?;
        if self.srcs.0.len() != 1 {
            let n = self.srcs.0.len();
            return Err(Violation::new("operand-value", "srcs", format!("`srcs` has {n} tensors, but must have one")));
        }
        super::check_shapes(&self.srcs, &self.dsts, 0, 1, 1)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let me = i64::from(machine.rank());
        let all = machine.contributions();
        let source = self.source_target_pairs.0.iter().find(|p| p.get(1) == Some(&me)).and_then(|p| p.first());
        match (source, self.dsts.0.first()) {
            (Some(&source), Some(dst)) => super::put(machine, dst, super::contributed(&all, source, 0)?, false),
            _ => Ok(()),
        }
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        super::work(CollectiveKind::Permute, &self.dsts, &self.srcs, 2)
    }

    fn participants(&self) -> Option<Participants<'_>> {
        Some(Participants::Pairs { pairs: &self.source_target_pairs, whole: super::whole(&self.srcs) })
    }

    fn contribute(&self, machine: &mut dyn Machine) -> Result<Vec<Array2<u32>>, Fault> {
        let me = i64::from(machine.rank());
        // A rank that sends nothing may have an unwritten source.
        if self.source_target_pairs.0.iter().any(|p| p.first() == Some(&me)) {
            super::contribution(machine, &self.srcs)
        } else {
            Ok(Vec::new())
        }
    }

    fn agrees(&self, other: &Self, _context: &Context<'_>) -> Result<(), String> {
        super::same("source_target_pairs", &self.source_target_pairs, &other.source_target_pairs)?;
        super::same_tensors(&self.srcs, &other.srcs)
    }
}
