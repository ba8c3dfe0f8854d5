//! Observation of intermediate values during a run.

use nki_isa::ids::{Loc, RegId};
use nki_isa::inst::Footprint;
use nki_isa::names::OobMode;
use nki_isa::program::Node;
use nki_isa::{DType, Fault, Inst, TensorId, View};

use super::interpreter::Interpreter;
use crate::memory::elements::Codec;

/// Observes the results of executed instructions. Instructions are then computed one by one, which does not change values.
pub trait Observer: Send {
    /// The extent of the value to read, if any.
    fn wants(&mut self, moment: &Moment<'_>) -> Option<Extent>;

    /// Receives the requested value.
    fn value(&mut self, moment: &Moment<'_>, value: Observed);

    /// Whether it inspects memory while the run is paused ([`Observer::reached`]): then tensors keep their bytes after their last use.
    fn inspects(&self) -> bool {
        false
    }

    /// The run is paused at a place, and continues when this returns. Called only if [`Observer::inspects`].
    fn reached(&mut self, _core: u32, _place: Reached, _look: &mut dyn Inspect) {}
}

/// A place that a core has reached. Positions are those of statements in the core's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Before its first instruction.
    Start,
    /// After this instruction, or after posting it as an exchange whose peer has not arrived.
    After(u32),
    /// At the start of another iteration of this dynamic loop.
    Iteration {
        /// The loop.
        header: u32,
        /// Its number, from 0.
        number: u32,
    },
    /// After the last iteration of this dynamic loop, if there was any.
    Exit {
        /// The loop.
        header: u32,
        /// The statement after its body.
        end: u32,
    },
}

/// Access to the memory of a paused run.
pub trait Inspect {
    /// The elements of a view, with the current values of its offset registers; `None` if it is outside of its tensor.
    ///
    /// # Errors
    /// The view has no address.
    fn view(&mut self, view: &View) -> Result<Option<Observed>, Fault>;

    /// The content of a register; `None` if it is unset.
    fn register(&mut self, register: RegId) -> Option<i64>;
}

/// The part of a tensor to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The elements that the instruction has written.
    Written,
    /// The whole tensor.
    Tensor,
}

/// A moment after an executed instruction has written an operand.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// Its core.
    pub core: u32,
    /// Its statement.
    pub node: &'a Node,
    /// Position of the statement in the core's stream.
    pub position: u32,
    /// Dynamic loops around it: statement and iteration.
    pub loops: &'a [(Loc, u32)],
    /// The tensor written.
    pub tensor: TensorId,
    /// The index among the instruction's written operands.
    pub operand: usize,
}

/// Elements of a tensor, row-major. Unwritten ones hold the sentinel (NaN for floats).
#[derive(Debug, Clone)]
pub struct Observed {
    bytes: Vec<u8>,
    codec: Codec,
    /// Extents.
    pub shape: Vec<usize>,
    /// For each element, whether some byte of it is unwritten; empty if all are written.
    pub unwritten: Vec<bool>,
}

impl Observed {
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.codec.dtype
    }

    /// The elements in their dtype, little-endian.
    pub fn bytes(&self) -> Vec<u8> {
        let elements = self.bytes.len() / self.codec.size().max(1);
        let mut host = vec![0; elements * self.codec.dtype.size()];
        self.codec.narrow(&self.bytes, &mut host);
        host
    }

    /// The elements as memory holds them, in fp32; `None` for packed dtypes, whose elements are not numbers.
    pub fn numbers(&self) -> Option<Vec<f32>> {
        if self.codec.dtype.is_packed() {
            return None;
        }
        let mut out = vec![0.0; self.bytes.len() / self.codec.size().max(1)];
        self.codec.to_f32(&self.bytes, &mut out);
        Some(out)
    }
}

impl Interpreter<'_> {
    /// Passes the results of the current statement to the observer, if there is one.
    pub(super) fn observe(&mut self, inst: &Inst) -> Result<(), Fault> {
        let (Some(observer), Some(node)) = (self.observer.take(), self.core.node) else { return Ok(()) };
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        let position = self.core.position();
        for (operand, view) in footprint.writes.iter().enumerate() {
            // The observer borrows the loops while the interpreter reads the value.
            let loops = std::mem::take(&mut self.core.loops);
            let moment = Moment { core: self.core.number, node, position, loops: &loops, tensor: view.tensor, operand };
            let wanted = observer.wants(&moment);
            let read = wanted.map(|extent| self.read_observed(view, extent));
            let outcome = match read {
                Some(Ok(Some(value))) => {
                    observer.value(&moment, value);
                    Ok(())
                }
                Some(Err(fault)) => Err(fault),
                Some(Ok(None)) | None => Ok(()),
            };
            self.core.loops = loops;
            outcome?;
        }
        self.observer = Some(observer);
        Ok(())
    }

    /// Notifies the observer of the current core's place, if it inspects memory.
    pub(super) fn reached(&mut self, place: Reached) {
        let Some(observer) = self.observer.take_if(|o| o.inspects()) else { return };
        self.flush();
        observer.reached(self.core.number, place, self);
        self.observer = Some(observer);
    }

    /// The elements of a view, or of its whole tensor; `None` if the view was out of bounds and skipped.
    fn read_observed(&mut self, view: &View, extent: Extent) -> Result<Option<Observed>, Fault> {
        let whole = match extent {
            Extent::Written => None,
            Extent::Tensor => Some(View::whole(view.tensor, self.program.tensor(view.tensor))),
        };
        self.see(whole.as_ref().unwrap_or(view))
    }

    fn see(&mut self, view: &View) -> Result<Option<Observed>, Fault> {
        let Some(access) = self.locate(view, OobMode::Skip)? else { return Ok(None) };
        let memory = self.memory();
        let mut unwritten = Vec::new();
        if memory.find_unwritten(&access).is_some() {
            unwritten = memory.unwritten_elements(&access);
            memory.poison(&access);
        }
        let mut bytes = vec![0; access.elements() * access.codec.size()];
        memory.gather(&access, &mut bytes);
        let shape = view.shape().iter().map(|&n| n as usize).collect();
        Ok(Some(Observed { bytes, codec: access.codec, shape, unwritten }))
    }
}

impl Inspect for Interpreter<'_> {
    fn view(&mut self, view: &View) -> Result<Option<Observed>, Fault> {
        self.see(view)
    }

    fn register(&mut self, register: RegId) -> Option<i64> {
        self.core.register(register)
    }
}

#[cfg(test)]
mod tests {
    use nki_isa::program::{Bound, Control, NodeKind};
    use nki_isa::{Index, Indirect, Space};

    use super::*;
    use crate::exec::{ExecOptions, Rank, run_ranks};
    use crate::place::place;
    use crate::testing::*;

    /// An observation at a place: elements of the tile, and which are unwritten; whether a view beyond the tile has elements; the register.
    type Seen = (Reached, Vec<f32>, Vec<bool>, bool, Option<i64>);

    /// Inspects a tile, a row selected by a register, and the register, at each pause of the run.
    struct Looks {
        tile: View,
        row: View,
        beyond: View,
        seen: Vec<Seen>,
        rows: Vec<Option<Vec<f32>>>,
    }

    impl Observer for Looks {
        fn wants(&mut self, _: &Moment<'_>) -> Option<Extent> {
            None
        }

        fn value(&mut self, _: &Moment<'_>, _: Observed) {}

        fn inspects(&self) -> bool {
            true
        }

        fn reached(&mut self, _: u32, place: Reached, look: &mut dyn Inspect) {
            let tile = look.view(&self.tile).expect("has a place").expect("is in its tensor");
            let beyond = matches!(look.view(&self.beyond), Ok(Some(_)));
            let register = look.register(RegId(0));
            // The address is known if the register is set.
            let row = register.and_then(|_| look.view(&self.row).expect("has a place"));
            self.rows.push(row.and_then(|row| row.numbers()));
            self.seen.push((place, tile.numbers().expect("no packed dtype"), tile.unwritten, beyond, register));
        }
    }

    /// Loads two rows in a dynamic loop, and stores the tile, which holds the last one.
    #[test]
    fn what_is_seen_is_what_the_run_has_written_so_far() {
        let mut b = Builder::new();
        let x = b.input("x", &[2, 4], DType::F32);
        let out = b.output("out", &[1, 4], DType::F32);
        let t = b.tensor("t", Space::Sbuf, &[1, 4], DType::F32);
        b.program.registers = 1;
        let mut row = pattern(b.whole(x), 0, 0, &[(4, 1), (1, 4)]);
        row.indirect = Some(Box::new(Indirect { index: Index::Register(RegId(0)), stride: 4, bound: 2 }));
        let load = dma(b.whole(t), row.clone());
        let body = vec![b.node(NodeKind::Inst(load))];
        let (lower, upper) = (Bound::Static(0), Bound::Static(2));
        b.push_node(Control::For { variable: RegId(0), lower, upper, step: 1, body }.into());
        b.push(dma(b.whole(out), b.whole(t)));
        let beyond = pattern(b.whole(t), 0, 2, &[(1, 1), (1, 4)]);
        let mut inspects = Looks { tile: b.whole(t), row, beyond, seen: Vec::new(), rows: Vec::new() };
        let program = b.program;
        let placement = place(&program).expect("fits");
        let values: Vec<f32> = (1..=8u8).map(f32::from).collect();
        let inputs = vec![host_f32("x", &[2, 4], &values)];
        let rank = Rank { program: &program, placement: &placement, inputs, observer: Some(&mut inspects) };
        let results = run_ranks(vec![rank], &ExecOptions::default()).expect("runs");

        let (first, second) = (&values[..4], &values[4..]);
        let expected = [
            (Reached::Start, None, None),
            (Reached::Iteration { header: 0, number: 0 }, None, Some(0)),
            (Reached::After(1), Some(first), Some(0)),
            (Reached::Iteration { header: 0, number: 1 }, Some(first), Some(1)),
            (Reached::After(1), Some(second), Some(1)),
            (Reached::Exit { header: 0, end: 2 }, Some(second), Some(1)),
            (Reached::After(2), Some(second), Some(1)),
        ];
        let places: Vec<Reached> = inspects.seen.iter().map(|seen| seen.0).collect();
        assert_eq!(places, expected.map(|(place, ..)| place));
        for ((place, numbers, unwritten, beyond, register), (_, want, index)) in inspects.seen.iter().zip(expected) {
            match want {
                Some(want) => assert!(numbers == want && unwritten.is_empty(), "{place:?}: {numbers:?}, {unwritten:?}"),
                None => {
                    assert!(numbers.iter().all(|x| x.is_nan()) && *unwritten == [true; 4], "{place:?}: {numbers:?}")
                }
            }
            assert!(!beyond, "{place:?}: a view that leaves its tensor has no elements");
            if let (Some(index), Some(register)) = (index, register) {
                assert_eq!(i64::from(index), *register, "{place:?}");
            }
        }
        // An offset register is read at its current value.
        assert_eq!(inspects.rows[2].as_deref(), Some(first));
        assert_eq!(inspects.rows[4].as_deref(), Some(second));
        // Inspection changes nothing.
        assert_eq!(f32s(&results[0].outputs[0]), second);
    }
}
