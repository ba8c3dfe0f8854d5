//! The random number generators of the vector and the GpSimd engine, one for each compute lane, and the shared code of their instructions.
//!
//! Documented (trainium3_arch, "XORWOW-based PRNG"; `rand_set_state`): the generator is XORWOW, its state 6 words; a lane of the
//! vector engine has four of them, a lane of GpSimd has one. Open questions, with the choice made here:
//! - The vector engine of trn1 and trn2 has an LFSR of unknown polynomial: here it is XORWOW, as on trn3.
//! - The assignment of the four generators to elements: element `i` of a partition comes from generator `i % 4`.
//! - The order of the words: for each generator the shift register, oldest word first, then the counter.
//! - The state before seeding: as after `set_rng_seed` with 0, so that runs are repeatable.
//! - Lanes are counted from the first partition of an operand.

use arrayvec::ArrayVec;
use ndarray::Array2;

use crate::inst::math::xorwow::{self, WORDS};
use crate::machine::{Fault, Machine, RowBits};
use crate::names::Engine;
use crate::view::View;
use crate::violation::Violation;

/// Compute lanes of an engine.
const LANES: usize = 128;

/// The generators of one engine.
pub(crate) struct Generators {
    name: &'static str,
    /// Words of a lane.
    words: usize,
}

impl Generators {
    /// The generators of the vector or (`GpSimd`) the GpSimd engine.
    pub(crate) fn of(engine: Engine) -> Self {
        match engine {
            Engine::GpSimd => Generators { name: "gpsimd.rng", words: WORDS },
            _ => Generators { name: "vector.rng", words: 4 * WORDS },
        }
    }

    /// State words of a lane: 6 or 24.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// All words, lane by lane.
    pub(crate) fn state<'m>(&self, machine: &'m mut dyn Machine) -> &'m mut Vec<u32> {
        let state = machine.engine_state(self.name);
        if state.is_empty() {
            *state = self.seeded(0);
        }
        state
    }

    /// The state words for a seed.
    pub(crate) fn seeded(&self, seed: u32) -> Vec<u32> {
        let streams = LANES * self.words / WORDS;
        (0..streams as u32).flat_map(|stream| xorwow::seeded(seed, stream)).collect()
    }

    /// Random bits for `elements` elements of each of `partitions` partitions.
    pub(crate) fn draw(&self, machine: &mut dyn Machine, partitions: usize, elements: usize) -> Array2<u32> {
        let mut out = Array2::zeros((partitions, elements));
        let mut rows: Vec<&mut [u32]> = out.outer_iter_mut().filter_map(|row| row.into_slice()).collect();
        for (block, rows) in rows.chunks_mut(xorwow::ROWS).enumerate() {
            self.fill(self.state(machine), block * xorwow::ROWS, rows);
        }
        out
    }

    /// Writes results of `f` to `dst`: each destination row passed to `f` initially holds 32 random bits per element.
    ///
    /// # Errors
    /// As [`Machine::map_bits`].
    pub(crate) fn map_bits(
        &self,
        machine: &mut dyn Machine,
        dst: &View,
        srcs: &[&View],
        f: &mut dyn FnMut(&mut RowBits<'_>),
    ) -> Result<(), Fault> {
        let mut state = std::mem::take(self.state(machine));
        let result = machine.map_bits(&[dst], srcs, &mut |rows| {
            for rows in rows.chunks_mut(xorwow::ROWS) {
                let first = rows.first().map_or(0, |row| row.partition);
                {
                    let outs = rows.iter_mut().map(|row| &mut *row.outs[0]);
                    let mut outs: ArrayVec<&mut [u32], { xorwow::ROWS }> = outs.collect();
                    self.fill(&mut state, first, &mut outs);
                }
                rows.iter_mut().for_each(&mut *f);
            }
            Ok(())
        });
        *machine.engine_state(self.name) = state;
        result
    }

    /// Fills rows of equal length, at most [`xorwow::ROWS`], with the next numbers of the lanes from `first` on. The generators of a lane alternate.
    fn fill(&self, state: &mut [u32], first: usize, rows: &mut [&mut [u32]]) {
        let lanes = state.get_mut(first * self.words..).unwrap_or_default();
        let (generators, _) = lanes.as_chunks_mut::<WORDS>();
        if self.words == WORDS {
            xorwow::fill::<1, { xorwow::ROWS }>(generators, rows);
        } else {
            xorwow::fill::<4, { 4 * xorwow::ROWS }>(generators, rows);
        }
    }
}

/// An operand with the state words of each lane: two dimensions, as many elements as a lane has words.
///
/// # Errors
/// `shape-mismatch`.
pub(crate) fn check_state(name: &'static str, view: &View, engine: Engine) -> Result<(), Violation> {
    let words = Generators::of(engine).words();
    if view.dims.len() != 2 || view.free_elements() != words {
        return Err(Violation::new(
            "shape-mismatch",
            name,
            format!(
                "`{name}` has shape {:?}; the generators of a lane of the {engine} engine have {words} words: (lanes, {words})",
                view.shape()
            ),
        ));
    }
    Ok(())
}
