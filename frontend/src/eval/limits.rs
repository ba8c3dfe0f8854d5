//! What keeps specialisation finite: steps, memory, and the depth of nested values.

use nki_diag::memory::{Exceeded, sizes};
use nki_diag::{Advice, Diagnostic, Span, progress};

use super::Interp;
use super::error::{EvalResult, Raise};
use super::value::Value;

/// Bytes charged for a step: what a statement, an iteration or a call usually leaves behind.
const STEP: u64 = 256;
/// Bytes charged at once that take as long as a step.
const BYTES_PER_STEP: u64 = 4096;
/// Bytes charged for a statement of the program: the program, the trace, the dependences and the timeline each keep something of it
/// (docs/performance.md, memory of an instruction).
const STATEMENT: u64 = 704;
/// Bytes charged for a tensor of the program.
const TENSOR: u64 = 96;
/// Most bytes of one string or container: what lies above it is a mistake, and takes long before it fills the memory.
const LARGEST: usize = 256 << 20;
/// Deeper containers are not compared, hashed or copied.
const MAX_NESTING: u32 = 1000;

impl Interp<'_> {
    /// Counts a statement, iteration or call.
    pub(crate) fn step(&mut self, span: Span) -> EvalResult<()> {
        self.take_steps(1, span)
    }

    /// Statements, iterations and calls so far.
    pub(crate) fn steps_taken(&self) -> u64 {
        self.steps_taken.get()
    }

    /// Counts several.
    pub(crate) fn take_steps(&mut self, n: u64, span: Span) -> EvalResult<()> {
        nki_diag::stop::check();
        self.count_steps(n);
        self.check_steps(span)?;
        let program = self.backend.size();
        if program != self.charged {
            let (statements, tensors) = std::mem::replace(&mut self.charged, program);
            if statements / progress::STEP != program.0 / progress::STEP {
                progress::reach(program.0);
            }
            let grown =
                program.0.saturating_sub(statements) * STATEMENT + (program.1.saturating_sub(tensors)) as u64 * TENSOR;
            self.memory.commit(grown).map_err(|e| memory_limit(e, span))?;
            self.report_findings();
        }
        self.memory.charge(n * STEP).map_err(|e| memory_limit(e, span))
    }

    /// Reports the findings about what was made since the last call.
    pub(crate) fn report_findings(&mut self) {
        for (finding, span) in self.backend.take_findings() {
            self.report_once(finding, span);
        }
    }

    /// Counts work that cannot fail itself; [`Self::check_steps`] fails after it.
    pub(crate) fn count_steps(&self, n: u64) {
        self.steps_taken.set(self.steps_taken.get().saturating_add(n));
    }

    /// Whether the limit of steps has been passed: work that cannot fail itself should end.
    pub(crate) fn out_of_steps(&self) -> bool {
        self.steps_taken.get() > self.options.step_limit
    }

    /// Fails if the limit of steps has been passed, or a value was nested too deeply for what was done with it.
    pub(crate) fn check_steps(&self, span: Span) -> EvalResult<()> {
        if self.out_of_steps() {
            return Err(fatal(
                Diagnostic::error(
                    "step-limit",
                    format!("specialisation does not end within {} steps", self.options.step_limit),
                )
                .at(span, "the limit was passed here")
                .advise(Advice::MoreSteps),
            ));
        }
        if self.too_deep.replace(false) {
            return Err(fatal(
                Diagnostic::error(
                    "recursion-limit",
                    format!("a value is nested more than {MAX_NESTING} levels deep, or contains itself"),
                )
                .at(span, "it is compared, hashed or copied here")
                .help("keep the items in one flat list"),
            ));
        }
        Ok(())
    }

    /// Whether a value at this depth is too deep inside of another one; [`Self::check_steps`] fails after it.
    pub(crate) fn is_too_deep(&self, depth: u32) -> bool {
        let deep = depth > MAX_NESTING;
        if deep {
            self.too_deep.set(true);
        }
        deep
    }

    /// Charges memory that is about to be allocated, and the time that filling it takes.
    pub(crate) fn charge(&mut self, bytes: usize, span: Span) -> EvalResult<()> {
        self.count_steps(bytes as u64 / BYTES_PER_STEP);
        self.memory.charge(bytes as u64).map_err(|e| memory_limit(e, span))
    }

    /// Charges a string of `n` bytes that is about to be made: it grows in place, and is copied to where it stays.
    pub(crate) fn charge_text(&mut self, n: usize, span: Span) -> EvalResult<()> {
        self.charge_value(n, n.saturating_mul(3), span)
    }

    /// Charges a container with room for `n` values that is about to be made.
    pub(crate) fn charge_items(&mut self, n: usize, span: Span) -> EvalResult<()> {
        let bytes = n.saturating_mul(size_of::<Value>());
        self.charge_value(bytes, bytes, span)
    }

    /// Charges one value of `bytes`, whose making takes `charged`.
    fn charge_value(&mut self, bytes: usize, charged: usize, span: Span) -> EvalResult<()> {
        if bytes > LARGEST {
            let (bytes, limit) = sizes(bytes as u64, LARGEST as u64);
            let message = format!("a value of {bytes} is too large, the limit is {limit}");
            return Err(fatal(
                Diagnostic::error("memory-limit", message)
                    .at(span, "a string, list, tuple or dictionary of this size would be made here")
                    .help("tensors hold data; the values of a kernel's Python code only say what is done with them"),
            ));
        }
        self.charge(charged, span)
    }
}

fn fatal(diagnostic: Diagnostic) -> Box<Raise> {
    let mut raise = Raise::new(diagnostic);
    raise.fatal = true;
    raise
}

fn memory_limit(exceeded: Exceeded, span: Span) -> Box<Raise> {
    let (needed, limit) = sizes(exceeded.needed, exceeded.limit);
    fatal(
        Diagnostic::error("memory-limit", format!("specialisation needs {needed} of memory, the limit is {limit}"))
            .at(span, "the limit was passed here")
            .note("a loop that never ends reaches this limit, too")
            .advise(Advice::MoreMemory),
    )
}
