//! Values of intermediates while a run executes.

use nki_isa::ids::{Loc, RegId};
use nki_isa::inst::Footprint;
use nki_isa::names::OobMode;
use nki_isa::program::Node;
use nki_isa::{DType, Fault, Inst, TensorId, View};

use super::interpreter::Interpreter;
use crate::memory::elements::Codec;

/// Sees what executed instructions have written. Instructions are then computed one by one, which gives the same values.
pub trait Observer: Send {
    /// Whether a value is to be read.
    fn wants(&mut self, moment: &Moment<'_>) -> Option<Extent>;

    /// The value that was wanted.
    fn value(&mut self, moment: &Moment<'_>, value: Observed);

    /// Whether it looks at memory while the run stands still ([`Observer::reached`]): then tensors keep their bytes after their last use.
    fn looks(&self) -> bool {
        false
    }

    /// The run has reached a place, and goes on when this returns. Called only if it looks.
    fn reached(&mut self, _core: u32, _place: Reached, _look: &mut dyn Look) {}
}

/// A place that a core has reached. Positions are those of statements in the core's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// It has not executed anything yet.
    Start,
    /// It has executed this instruction, or has left it behind as an exchange whose other side has not come yet.
    After(u32),
    /// Another iteration of this dynamic loop begins.
    Iteration {
        /// The loop.
        header: u32,
        /// Which one, from 0.
        number: u32,
    },
    /// The last iteration of this dynamic loop has ended, if there was any.
    Exit {
        /// The loop.
        header: u32,
        /// The statement behind it.
        end: u32,
    },
}

/// Looks at the memory of a run that stands still.
pub trait Look {
    /// The elements of a view, with the registers of its offsets as they are now; none if it is outside of its tensor.
    ///
    /// # Errors
    /// The view has no place.
    fn view(&mut self, view: &View) -> Result<Option<Observed>, Fault>;

    /// What a register holds; none if nothing has set it.
    fn register(&mut self, register: RegId) -> Option<i64>;
}

/// What is read of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What the instruction has written.
    Written,
    /// The whole tensor.
    Tensor,
}

/// An instruction has been executed and has written an operand.
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
    /// Which of the operands that the instruction writes.
    pub operand: usize,
}

/// Elements of a tensor, row-major. Those that nothing has written are the sentinel (NaN for floats).
#[derive(Debug, Clone)]
pub struct Observed {
    bytes: Vec<u8>,
    codec: Codec,
    /// Extents.
    pub shape: Vec<usize>,
    /// Of each element whether nothing has written some byte of it; empty if all are written.
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

    /// The elements as memory holds them, as fp32; none for packed dtypes, whose elements are no numbers.
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
    /// Shows the observer, if there is one, what the current statement has written.
    pub(super) fn observe(&mut self, inst: &Inst) -> Result<(), Fault> {
        let (Some(observer), Some(node)) = (self.observer.take(), self.core.node) else { return Ok(()) };
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        let position = self.core.position();
        for (operand, view) in footprint.writes.iter().enumerate() {
            // The loops are lent to the observer, and the interpreter is needed to read the value.
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

    /// Tells the observer, if it looks, where the current core is.
    pub(super) fn reached(&mut self, place: Reached) {
        let Some(observer) = self.observer.take_if(|o| o.looks()) else { return };
        self.flush();
        observer.reached(self.core.number, place, self);
        self.observer = Some(observer);
    }

    /// The elements of a view, or of its whole tensor; none if the view is outside of it and was skipped.
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

impl Look for Interpreter<'_> {
    fn view(&mut self, view: &View) -> Result<Option<Observed>, Fault> {
        self.see(view)
    }

    fn register(&mut self, register: RegId) -> Option<i64> {
        self.core.register(register)
    }
}
