//! Iterations of an unrolled loop that repeat the previous one, see [`crate::build::builder::Piece`].

use nki_isa::program::{Step, Trail};

use super::state::state;
use crate::build::builder::{Extent, Other, Piece};
use crate::eval::Interp;
use crate::eval::foreign::Iterations;

/// The results of a loop's iterations.
#[derive(Debug, Default)]
pub(crate) struct Unrolled {
    /// The extents after the evaluated iterations, except for the first.
    ends: Vec<Extent>,
    /// The last of them, with the elements by which its views move per iteration.
    last: Option<(Piece, Vec<i64>)>,
}

impl Unrolled {
    /// The state for a loop before unrolling; `None` if iterations cannot be copied.
    pub(crate) fn of(interp: &mut Interp<'_>) -> Option<Box<dyn Iterations>> {
        let plain = !interp.options.strict && state(interp).no_reorder.is_empty();
        plain.then(|| Box::new(Unrolled::default()) as Box<dyn Iterations>)
    }
}

/// The trail in another piece that corresponds to `trail` of this one, for this value of the loop's variable.
fn later(trail: &Trail, piece: &Piece, pieces: usize, value: i64) -> Trail {
    let mut trail = trail.clone();
    match (trail.parent, &mut trail.step) {
        (Some(parent), Step::Iteration { value: own, .. }) if (parent.0 as usize) < piece.trails.start => *own = value,
        _ => {}
    }
    trail.parent = trail.parent.map(|parent| piece.later_trail(parent, pieces));
    trail
}

/// Whether `made` has the trails of `piece`, apart from the value of the loop's variable.
fn has_trails(interp: &Interp<'_>, piece: &Piece, made: &Piece, pieces: usize, value: i64) -> bool {
    let trails = interp.all_trails();
    let (here, there) = (&trails[piece.trails.clone()], &trails[made.trails.clone()]);
    here.len() == there.len() && here.iter().zip(there).all(|(a, b)| later(a, piece, pieces, value) == *b)
}

impl Iterations for Unrolled {
    fn ended(&mut self, interp: &mut Interp<'_>) -> Option<()> {
        let trails = interp.trails();
        let end = state(interp).builder.extent(trails)?;
        self.ends.push(end);
        Some(())
    }

    fn are_alike(&mut self, interp: &mut Interp<'_>, value: i64) -> Option<()> {
        let [.., begin, middle, end] = &self.ends[..] else { return None };
        let (first, last) = (Piece::between(begin, middle)?, Piece::between(middle, end)?);
        let builder = &state(interp).builder;
        let steps = builder.steps(&first, &last)?;
        let next = Other { later: 1, turns: 1, steps: &steps };
        let alike = builder.is_like(&first, &last, next) && has_trails(interp, &first, &last, 1, value);
        self.last = alike.then_some((last, steps));
        alike.then_some(())
    }

    fn foretell(&self, interp: &mut Interp<'_>, turns: i64, value: i64) -> Option<()> {
        let (last, steps) = self.last.as_ref()?;
        let trails = interp.trails();
        let builder = &state(interp).builder;
        let made = Piece::between(self.ends.last()?, &builder.extent(trails)?)?;
        let other = Other { later: 1, turns, steps };
        (builder.is_like(last, &made, other) && has_trails(interp, last, &made, 1, value)).then_some(())
    }

    fn copy(&self, interp: &mut Interp<'_>, turns: i64, value: i64) -> Option<()> {
        let (last, steps) = self.last.as_ref()?;
        let later_by = usize::try_from(turns).ok()?;
        if !state(interp).builder.copy(last, Other { later: later_by, turns, steps }) {
            return None;
        }
        for at in last.trails.clone() {
            let trail = later(&interp.all_trails()[at], last, later_by, value);
            interp.add_trail(trail);
        }
        Some(())
    }

    fn rehearse(&self, interp: &mut Interp<'_>, run: &mut dyn FnMut(&mut Interp<'_>)) {
        let trails = interp.trails();
        let mark = state(interp).builder.mark();
        run(interp);
        state(interp).builder.rewind(&mark);
        interp.take_back_trails(trails);
    }
}
