//! `nki.collectives.rank_id`: the number of this rank.

use crate::arch::Arch;
use crate::ids::RegId;
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::violation::Violation;
use crate::work::{RegisterWork, Work, WorkKind};

operands! {
    /// Puts the rank into a register.
    pub struct RankId: "rank_id" on [Sync] {
        /// The register that gets it.
        [Out] dst: RegId,
    }
    numerics: "It computes nothing.",
    cost: Assumed "As a register move.",
    rules: {},
}

impl Instruction for RankId {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let rank = i64::from(machine.rank());
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
