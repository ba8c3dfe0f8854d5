//! `nki.collectives.collective_permute_implicit_current_processing_rank_id`: the rank whose data a ring step processes.

use crate::arch::Arch;
use crate::arg::{IntLists, RegisterOrInt};
use crate::ids::RegId;
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::violation::Violation;
use crate::work::{RegisterWork, Work, WorkKind};

operands! {
    /// Puts into a register the rank whose data this rank has after `iteration_id` steps of the ring: its own at 0, then that of the rank before it.
    pub struct ProcessingRankId: "collective_permute_implicit_current_processing_rank_id" on [Sync] {
        /// The register that gets it.
        [Out] dst: RegId,
        /// Steps done.
        [In] iteration_id: RegisterOrInt,
        /// Lists of the ranks; each list is a ring in its order.
        [Attr] replica_group: IntLists,
        /// The channel; all go round alike.
        [Attr] channel_id: i64 = 0,
    }
    numerics: "Exact.",
    cost: Assumed "As a register move.",
    rules: {
        "channel": "`channel_id` is 0 to 3",
    },
}

impl Instruction for ProcessingRankId {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        super::ring::check_channel(self.channel_id)?;
        super::check_groups(&self.replica_group)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let step = self.iteration_id.value(machine);
        let rank = match super::position(&self.replica_group, machine.rank()) {
            Some((at, group)) => group[(at as i64 - step).rem_euclid(group.len() as i64) as usize],
            None => {
                return Err(Fault::new(
                    "operand-value",
                    format!("rank {} is in none of the groups of `replica_group`", machine.rank()),
                ));
            }
        };
        machine.set_register(self.dst, rank);
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        Work { engine: self.engine(context.arch), kind: WorkKind::Register(RegisterWork::Move) }
    }
}
