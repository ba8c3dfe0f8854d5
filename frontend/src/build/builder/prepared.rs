//! Collectives in two parts: a preparation and its start.
//!
//! Source: the pages `all_to_all_v_prepare` and `all_gather_v_prepare` of NKI 0.7: each preparation needs exactly one start after it, with no
//! other preparation in between.

use nki_isa::inst::{Action, find};
use nki_isa::{Arg, Inst, Violation};

use super::{Builder, NodeAt, Site};
use crate::build::Result;

/// A preparation.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) at: NodeAt,
    /// The prepared instruction.
    start: &'static str,
    operands: Vec<Arg>,
    /// Line of the call.
    line: u32,
}

impl Builder {
    /// The instruction that an instruction prepares.
    ///
    /// # Errors
    /// `operand-value` if another preparation has not been started.
    pub(super) fn prepares(&self, inst: &Inst, site: Site) -> Result<Option<Prepared>> {
        let Action::Prepares(start) = inst.action() else { return Ok(None) };
        if let Some(other) = &self.prepared {
            let message = format!(
                "{} is called while the preparation on line {} still waits for {}",
                inst.schema().name,
                other.line,
                other.start
            );
            return Err(Violation::new("operand-value", "", message)
                .help("only one prepared collective can be pending: start it before preparing the next one"));
        }
        Ok(Some(Prepared { at: self.last_node(), start, operands: inst.args(), line: site.loc.line }))
    }

    /// Starts the preparation of the instruction at `at`: `start` is the function called.
    ///
    /// # Errors
    /// `operand-value` unless it is the pending preparation, of the same collective, in the same body.
    pub(crate) fn start_prepared(&mut self, start: &str, at: NodeAt, site: Site) -> Result<()> {
        let refuse = |message: String, help: &str| Err(Violation::new("operand-value", "", message).help(help));
        let Some(prepared) = self.prepared.take_if(|p| p.at == at) else {
            let help = "start each preparation once, before the next preparation";
            return refuse(format!("{start}: this instruction is not a pending preparation"), help);
        };
        if prepared.start != start {
            let help = format!("start it with {}", prepared.start);
            return refuse(format!("{start} cannot start the preparation on line {}", prepared.line), &help);
        }
        if at.body != self.last_node().body {
            let help = "prepare and start a collective in the same body";
            let message = format!(
                "{start} is not in the same dynamic loop or branch as the preparation on line {}",
                prepared.line
            );
            return refuse(message, help);
        }
        let Some(entry) = find(prepared.start) else { return Ok(()) };
        let mut operands: Vec<Option<Arg>> = prepared.operands.into_iter().map(Some).collect();
        let inst = self.make(entry, &mut operands)?;
        self.emit(inst, site)
    }

    /// Rejects a preparation that was never started on the ended core.
    ///
    /// # Errors
    /// `operand-value`.
    pub(crate) fn check_prepared(&self) -> Result<()> {
        match &self.prepared {
            None => Ok(()),
            Some(p) => {
                Err(Violation::new("operand-value", "", format!("the preparation on line {} is never started", p.line))
                    .help(format!("pass its return value to {}", p.start)))
            }
        }
    }
}
