//! The analysis of a run, shared by all reports.

use std::cell::OnceCell;

use nki_isa::Program;

use super::counters::{Counters, Facts};
use super::error_bar::{ErrorBar, error_bar};
use super::memory::{Allocation, allocations};
use super::remedies::{Case, Remedies, remedies};
use super::roofline::{Roofline, roofline};
use super::{Step, Verdict, Wait, critical_path, verdict, waits};
use crate::place::Placement;
use crate::timeline::{Event, Timeline};

/// The analysis of a run, computed once for all reports. Data for report files only is computed on first use.
#[derive(Debug)]
pub struct Analysis<'a> {
    /// The timeline of the run.
    pub timeline: &'a Timeline,
    /// The program.
    pub program: &'a Program,
    /// Facts about the program's statements.
    pub facts: Facts,
    /// Sum over all executed instructions.
    pub total: Counters,
    /// The critical path.
    pub path: Vec<Step>,
    /// The bottleneck.
    pub verdict: Verdict,
    /// The expected range of the latency on hardware; `None` if unknown.
    pub error: Option<ErrorBar>,
    /// The roofline, and the kernel's position under it.
    pub roofline: Roofline,
    /// The remedies that were tried.
    pub remedies: Remedies,
    placement: &'a Placement,
    waits: OnceCell<Vec<Option<Wait>>>,
    allocations: OnceCell<Vec<Allocation>>,
}

impl<'a> Analysis<'a> {
    /// Analyses a run. Trying the remedies takes most of the time: they time at most `budget` instructions again.
    pub fn new(case: Case<'a>, budget: usize) -> Self {
        let Case { program, placement, params, timeline, .. } = case;
        let ((path, verdict), (facts, total, error)) = rayon::join(
            || {
                let path = critical_path(timeline);
                let verdict = verdict(timeline, &path);
                (path, verdict)
            },
            || {
                let facts = Facts::of(program);
                let total = facts.total(timeline);
                (facts, total, error_bar(program, params, timeline))
            },
        );
        Analysis {
            verdict,
            error,
            roofline: roofline(timeline, program, params, &total, facts.minimum_bytes),
            remedies: remedies(&case, budget),
            placement,
            waits: OnceCell::new(),
            allocations: OnceCell::new(),
            timeline,
            program,
            facts,
            total,
            path,
        }
    }

    /// The wait of each event.
    pub fn waits(&self) -> &[Option<Wait>] {
        self.waits.get_or_init(|| waits(self.timeline))
    }

    /// Tensors in memory.
    pub fn allocations(&self) -> &[Allocation] {
        self.allocations.get_or_init(|| allocations(self.timeline, self.program, self.placement))
    }

    /// The counters of an event.
    pub fn counters(&self, e: &Event) -> &Counters {
        self.facts.of_event(e)
    }
}
