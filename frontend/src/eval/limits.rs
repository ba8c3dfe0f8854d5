//! Limits of specialisation: steps, memory, and nesting depth of values.

use nki_diag::memory::{Exceeded, sizes};
use nki_diag::{Advice, Diagnostic, Span, progress};

use super::Interp;
use super::error::{EvalResult, Raise};
use super::value::Value;

/// Bytes charged for a step: the memory that a statement, iteration or call typically retains.
const STEP: u64 = 256;
/// Number of bytes whose allocation costs as much time as a step.
const BYTES_PER_STEP: u64 = 4096;
/// Bytes charged for a statement of the program: the program, the trace, the dependences and the
/// timeline each keep a part (docs/performance.md, memory of an instruction).
const STATEMENT: u64 = 704;
/// Bytes charged for a tensor of the program.
const TENSOR: u64 = 96;
/// Maximum size of a string or container in bytes. A larger one is a mistake, and takes long before
/// it exhausts the memory.
const LARGEST: usize = 256 << 20;
/// Nesting depth beyond which containers are not compared, hashed or copied.
const MAX_NESTING: u32 = 1000;

impl Interp<'_> {
    /// Counts a statement, iteration or call.
    pub(crate) fn step(&mut self, span: Span) -> EvalResult<()> {
        self.take_steps(1, span)
    }

    /// The number of statements, iterations and calls so far.
    pub(crate) fn steps_taken(&self) -> u64 {
        self.steps_taken.get()
    }

    /// Counts several steps.
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

    /// Reports the findings about what was emitted since the last call.
    pub(crate) fn report_findings(&mut self) {
        for (finding, span) in self.backend.take_findings() {
            self.report_once(finding, span);
        }
    }

    /// Counts steps in code that cannot return an error; a later [`Self::check_steps`] does.
    pub(crate) fn count_steps(&self, n: u64) {
        self.steps_taken.set(self.steps_taken.get().saturating_add(n));
    }

    /// Whether the limit of steps is exceeded: code that cannot return an error should stop.
    pub(crate) fn out_of_steps(&self) -> bool {
        self.steps_taken.get() > self.options.step_limit
    }

    /// Fails if the limit of steps is exceeded, or if a value was nested too deeply for an
    /// operation.
    pub(crate) fn check_steps(&self, span: Span) -> EvalResult<()> {
        if self.out_of_steps() {
            return Err(fatal(
                Diagnostic::error(
                    "step-limit",
                    format!("specialisation does not end within {} steps", self.options.step_limit),
                )
                .at(span, "the limit was exceeded here")
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

    /// Whether this nesting depth is too large; if so, a later [`Self::check_steps`] fails.
    pub(crate) fn is_too_deep(&self, depth: u32) -> bool {
        let deep = depth > MAX_NESTING;
        if deep {
            self.too_deep.set(true);
        }
        deep
    }

    /// Charges memory that is about to be allocated, and the time to fill it.
    pub(crate) fn charge(&mut self, bytes: usize, span: Span) -> EvalResult<()> {
        self.count_steps(bytes as u64 / BYTES_PER_STEP);
        self.memory.charge(bytes as u64).map_err(|e| memory_limit(e, span))
    }

    /// Charges a string of `n` bytes that is about to be built: it grows in place, and is then
    /// copied.
    pub(crate) fn charge_text(&mut self, n: usize, span: Span) -> EvalResult<()> {
        self.charge_value(n, n.saturating_mul(3), span)
    }

    /// Charges a container for `n` values that is about to be built.
    pub(crate) fn charge_items(&mut self, n: usize, span: Span) -> EvalResult<()> {
        let bytes = n.saturating_mul(size_of::<Value>());
        self.charge_value(bytes, bytes, span)
    }

    /// Charges for a value of `bytes` whose construction needs `charged` bytes.
    fn charge_value(&mut self, bytes: usize, charged: usize, span: Span) -> EvalResult<()> {
        if bytes > LARGEST {
            let (bytes, limit) = sizes(bytes as u64, LARGEST as u64);
            let message = format!("a value of {bytes} is too large; the limit is {limit}");
            return Err(fatal(
                Diagnostic::error("memory-limit", message)
                    .at(span, "a string, list, tuple or dictionary of this size would be made here")
                    .help("keep data in tensors; the Python values of a kernel only describe the operations on it"),
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
        Diagnostic::error("memory-limit", format!("specialisation needs {needed} of memory; the limit is {limit}"))
            .at(span, "the limit was exceeded here")
            .note("an endless loop also reaches this limit")
            .advise(Advice::MoreMemory),
    )
}
