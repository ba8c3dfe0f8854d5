//! Partial evaluation of loops over numbers: a few iterations are evaluated, and the others are
//! copied from them if [`super::linear`] shows that they are alike.
//!
//! Three iterations are evaluated, and then the last one as a trial: it must emit what the second
//! and third imply. Then all iterations in between are copied, and the last one is evaluated in its
//! place.

use nki_diag::Span;

use super::error::EvalResult;
use super::exec::Flow;
use super::foreign::Iterations;
use super::value::{Range, Value};
use super::{Frame, Interp};
use crate::syntax::For;

/// Number of iterations evaluated before others are copied. The first differs from the next because
/// calls cache results.
const LEARNT: i64 = 3;

/// Minimum number of iterations for which the trial is worthwhile.
const LEAST: i64 = 12;

/// The iterations of a loop over numbers.
pub(super) struct Copies<'l> {
    f: &'l For,
    range: &'l Range,
    made: Option<Box<dyn Iterations>>,
    /// Steps taken up to the end of the previous iteration.
    steps: u64,
}

impl<'l> Copies<'l> {
    /// For a loop that has not begun.
    pub(super) fn of(f: &'l For, range: &'l Range) -> Self {
        Copies { f, range, made: None, steps: 0 }
    }

    /// Called after iteration `count` of the loop at `depth` has been evaluated; returns the number
    /// of following iterations that have been copied.
    ///
    /// # Errors
    /// If the copies exceed a limit.
    pub(super) fn after(
        &mut self,
        interp: &mut Interp<'_>,
        frame: &Frame<'_>,
        place: (usize, Span),
        count: i64,
    ) -> EvalResult<usize> {
        if count >= LEARNT || self.range.len() < LEAST || self.f.differs.get() {
            return Ok(0);
        }
        if count == 0 {
            self.made = interp.may_copy(self.f).then(|| interp.dialect.iterations(interp)).flatten();
        }
        let Some(made) = &mut self.made else { return Ok(0) };
        if made.ended(interp).is_none() {
            self.made = None;
            return Ok(0);
        }
        let steps = interp.steps_taken() - std::mem::replace(&mut self.steps, interp.steps_taken());
        if count < LEARNT - 1 {
            return Ok(0);
        }
        let Some(mut made) = self.made.take() else { return Ok(0) };
        if !self.is_law(interp, frame, place, &mut *made) {
            self.f.differs.set(true);
            return Ok(0);
        }
        let mut done = 0;
        for turns in 1..self.range.len() - LEARNT {
            interp.take_steps(steps, place.1)?;
            if made.copy(interp, turns, self.range.at(count + turns)).is_none() {
                break;
            }
            done += 1;
        }
        Ok(done)
    }

    /// Whether the iterations from the last evaluated one to the end of the loop are alike, judged
    /// by a trial of the loop's last iteration.
    fn is_law(
        &self,
        interp: &mut Interp<'_>,
        frame: &Frame<'_>,
        place: (usize, Span),
        made: &mut dyn Iterations,
    ) -> bool {
        let last = self.range.len() - 1;
        let turns = last - (LEARNT - 1);
        let value = self.range.at(last);
        if made.are_alike(interp, self.range.at(LEARNT - 1)).is_none() {
            return false;
        }
        let before = interp.findings();
        let mut same = interp.is_linear(frame, self.f);
        if same {
            made.rehearse(interp, &mut |interp| {
                let ran = interp.iteration(frame, self.f, place, Value::Int(value), last);
                let complete = matches!(ran, Ok(Flow::Next | Flow::Continue)) && interp.findings() == before;
                same = complete && made.foretell(interp, turns, value).is_some();
            });
        }
        interp.take_back_findings(before);
        same
    }
}

impl Interp<'_> {
    /// Whether the iterations of a loop may be copied: nothing observes them individually, and no
    /// name carries a value from one to the next.
    fn may_copy(&self, f: &For) -> bool {
        self.in_kernel && self.follower.is_none() && !self.has_recovered() && f.carried().is_empty()
    }
}
