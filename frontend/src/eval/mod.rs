//! The evaluator of the NKI meta-program: the Python code that runs during specialisation.
//!
//! A tree walker over [`crate::syntax`]. Names are resolved to slots beforehand
//! ([`crate::syntax::resolve`]). Values are cheap to clone ([`value`]). Tensors, registers and
//! instructions are objects whose types the evaluator does not know, and the rules of NKI are those
//! of a dialect ([`foreign`]).

mod arithmetic;
mod assign;
mod attrs;
mod builtins;
mod cached;
mod call;
mod class;
pub(crate) mod compare;
mod context;
pub(crate) mod convert;
mod dict;
mod enums;
mod equality;
pub(crate) mod error;
mod exception;
mod exec;
mod expr;
pub(crate) mod foreign;
mod format;
mod generator;
mod guess;
mod hash;
mod inert;
mod inheritance;
mod items;
pub(crate) mod iterator;
pub(crate) mod kernel;
pub(crate) mod language;
pub(crate) mod limits;
mod linear;
mod live;
mod loops;
mod methods;
mod modules;
pub(crate) mod native;
mod object;
mod ops;
mod pattern;
pub(crate) mod place;
mod protocol;
mod recover;
mod set;
mod set_methods;
pub(crate) mod stdlib;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod types;
mod unroll;
pub(crate) mod value;
pub(crate) mod view;

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use nki_diag::memory::Account;
use nki_diag::{Diagnostic, FileId, SourceMap, Span};
use nki_isa::ids::TrailId;
use nki_isa::program::{Step, Trail};
use nki_isa::{Loc, Program, TensorId};

use rustc_hash::{FxHashMap, FxHashSet};

use self::error::EvalResult;
use self::language::{Backend, ChooseDialect, Construct, Dialect};
use self::value::{Function, Module, NativeModule, Value};
use crate::syntax::{Interner, Symbol};
use crate::{Host, Loader, Options};

pub(crate) use self::exception::class_of as exception_class;
pub(crate) use self::expr::nearest;
pub(crate) use self::stdlib::MODULES as PYTHON_MODULES;

/// Stack size, in bytes, of the thread that parses and evaluates.
pub(crate) const STACK: usize = 256 << 20;

/// The state of one evaluation.
pub(crate) struct Interp<'a> {
    /// Interned names.
    pub(crate) names: Interner,
    /// Files read so far.
    pub(crate) sources: SourceMap,
    /// Diagnostics so far.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Lines printed during specialisation.
    pub(crate) prints: Vec<String>,
    /// Printed text after the last line end.
    unfinished: String,
    /// Whether a class has a `__setattr__` or is a descriptor with a `__set__`, so that attribute
    /// accesses must check for them.
    custom_attributes: bool,
    /// Whether a class has `__slots__`.
    has_slots: bool,
    /// The options of the caller.
    pub(crate) options: &'a Options,
    /// The reader of files.
    pub(crate) loader: &'a dyn Loader,
    /// The Python process around the kernel, if any.
    pub(crate) host: Option<&'a dyn Host>,
    /// The follower, which runs the kernel along with the evaluation.
    pub(crate) follower: Option<Rc<dyn foreign::Follower>>,
    /// Values taken over from the host.
    live: live::Live,
    /// The program being built.
    pub(crate) backend: Box<dyn Backend>,
    /// The dialect of the module whose code is running.
    pub(crate) dialect: &'static dyn Dialect,
    /// Chooses the dialect of a file.
    dialect_of: ChooseDialect,
    /// The dialects of a driver's files, by file number.
    driven: Vec<Option<&'static dyn Dialect>>,
    /// Whether a kernel is being specialised (as opposed to module-level code).
    pub(crate) in_kernel: bool,
    /// Slots of all active frames.
    stack: Vec<Value>,
    /// Active calls: callee and call site.
    calls: Vec<(Symbol, Span)>,
    /// The assumption about the host that the running statement at module level has made.
    guessed: Option<guess::Guess>,
    /// An import in a `try` at module level that was assumed to succeed.
    assumed_import: Option<Span>,
    /// `compile_config` and `specialization_config` of the kernel being specialised.
    pub(crate) outer_config: (Value, Value),
    /// The depth of the call stack while the kernel's own body runs.
    kernel_depth: usize,
    /// Names in the kernel's last `return`.
    returned: Vec<Option<String>>,
    /// The tensors that the first core has returned.
    first_result: Vec<Option<(TensorId, String)>>,
    /// Statements, iterations and calls so far.
    steps_taken: Cell<u64>,
    /// Whether a value was nested too deeply for an operation.
    too_deep: Cell<bool>,
    /// The memory account.
    memory: Account,
    /// The statements and tensors of the program that have been charged to it.
    charged: (u64, usize),
    /// Exceptions being handled.
    handling: Vec<Value>,
    /// Saved positions in the generator that is being resumed, outermost last.
    rewind: Vec<generator::Saved>,
    /// Saved positions in the generator that is being suspended, innermost first.
    suspended: Vec<generator::Saved>,
    /// The value or error that resumes the generator.
    sent: Option<generator::Sent>,
    /// Errors after which evaluation continued.
    recovery: recover::Recovery,
    /// Objects whose `id()` was requested.
    ids: Vec<Value>,
    /// Keys of dicts and sets whose class has a `__hash__`, by its value: one key for each set of
    /// equal objects.
    hashed: FxHashMap<i64, Vec<Value>>,
    /// The findings that [`Self::report_once`] has reported, with their spans.
    reported: FxHashSet<(&'static str, Span)>,
    /// Loaded files by path; `None` for those that cannot be read.
    modules: Vec<(PathBuf, Option<Rc<Module>>)>,
    /// Files whose statements are being run, outermost first.
    loading: Vec<Rc<Module>>,
    /// The simulator's own modules created so far.
    native_modules: Vec<Rc<NativeModule>>,
    /// Whether output is dropped, because the kernel is being run for another core.
    quiet: bool,
    /// Address near the start of the machine stack.
    stack_base: usize,
    /// The iterations and calls around the current position. The id is created on first use.
    steps: Vec<(PendingStep, Option<TrailId>)>,
    /// All trails created; the first is the root.
    trails: Vec<Trail>,
}

/// The findings of an evaluation up to some point.
#[derive(Debug, PartialEq)]
struct Findings {
    diagnostics: usize,
    reported: FxHashSet<(&'static str, Span)>,
    recovery: recover::Recovery,
}

/// A step of a trail whose strings have not been created yet.
pub(crate) enum PendingStep {
    /// One iteration of an unrolled loop.
    Iteration {
        /// The loop variable.
        variable: Symbol,
        /// Its value, or the number of the iteration.
        value: i64,
        /// The loop.
        span: Span,
        /// Whether that is the number of the iteration.
        is_count: bool,
        /// Whether the loop is declared to have independent iterations.
        independent: bool,
    },
    /// An inlined call.
    Call {
        /// The callee.
        function: Symbol,
        /// The call.
        span: Span,
    },
}

/// The running function, class body or module.
pub(crate) struct Frame<'f> {
    /// The stack index of its first slot.
    pub(crate) base: usize,
    /// Captured cells.
    pub(crate) captures: &'f [Value],
    pub(crate) module: &'f Rc<Module>,
    pub(crate) function: Option<&'f Rc<Function>>,
    /// Names of the slots.
    pub(crate) names: &'f [Symbol],
}

impl Frame<'_> {
    /// Whether it is the frame of a generator.
    pub(crate) fn is_generator(&self) -> bool {
        self.function.is_some_and(|f| f.def.is_generator)
    }
}

impl<'a> Interp<'a> {
    /// An evaluator without loaded files. Must be created on the thread that evaluates.
    pub(crate) fn new(
        loader: &'a dyn Loader,
        options: &'a Options,
        dialect_of: ChooseDialect,
        backend: Box<dyn Backend>,
    ) -> Self {
        let marker = 0u8;
        Self {
            names: Interner::new(),
            sources: SourceMap::new(),
            diagnostics: Vec::new(),
            prints: Vec::new(),
            unfinished: String::new(),
            custom_attributes: false,
            has_slots: false,
            options,
            loader,
            host: None,
            follower: None,
            live: live::Live::default(),
            backend,
            dialect: dialect_of(options, &[]),
            dialect_of,
            driven: Vec::new(),
            in_kernel: false,
            stack: Vec::new(),
            calls: Vec::new(),
            guessed: None,
            assumed_import: None,
            outer_config: (Value::None, Value::None),
            kernel_depth: usize::MAX,
            returned: Vec::new(),
            first_result: Vec::new(),
            steps_taken: Cell::new(0),
            too_deep: Cell::new(false),
            memory: Account::new(options.memory),
            charged: (0, 0),
            handling: Vec::new(),
            rewind: Vec::new(),
            suspended: Vec::new(),
            sent: None,
            recovery: recover::Recovery::default(),
            ids: Vec::new(),
            hashed: FxHashMap::default(),
            reported: FxHashSet::default(),
            modules: Vec::new(),
            loading: Vec::new(),
            native_modules: Vec::new(),
            quiet: false,
            stack_base: &raw const marker as usize,
            steps: Vec::new(),
            trails: vec![Trail { parent: None, step: Step::Root }],
        }
    }

    /// The number of trails created so far.
    pub(crate) fn trails(&self) -> usize {
        self.trails.len()
    }

    /// All trails created so far.
    pub(crate) fn all_trails(&self) -> &[Trail] {
        &self.trails
    }

    /// Adds a copied trail.
    pub(crate) fn add_trail(&mut self, trail: Trail) {
        self.trails.push(trail);
    }

    /// Removes all trails but the first `remaining`.
    pub(crate) fn take_back_trails(&mut self, remaining: usize) {
        self.trails.truncate(remaining);
        for (_, id) in &mut self.steps {
            id.take_if(|id| id.0 as usize >= remaining);
        }
    }

    /// The text of a name.
    pub(crate) fn name(&self, symbol: Symbol) -> Rc<str> {
        self.names.name(symbol).clone()
    }

    /// The symbol of a name.
    pub(crate) fn sym(&mut self, name: &str) -> Symbol {
        self.names.intern(name)
    }

    /// The program location of a span.
    pub(crate) fn loc(&self, span: Span) -> Loc {
        let (line, column) = self.sources.line_col(span);
        Loc { file: span.file.0, line, column, start: span.start, end: span.end }
    }

    /// The trail of the current position: the iterations and inlined calls around it.
    pub(crate) fn trail(&mut self) -> TrailId {
        let known = self.steps.iter().rposition(|s| s.1.is_some());
        let mut parent = known.and_then(|i| self.steps[i].1).unwrap_or(TrailId::ROOT);
        for i in known.map_or(0, |i| i + 1)..self.steps.len() {
            let step = match self.steps[i].0 {
                PendingStep::Iteration { variable, value, span, is_count, independent } => Step::Iteration {
                    variable: Arc::from(&*self.name(variable)),
                    value,
                    is_count,
                    loc: self.loc(span),
                    independent,
                },
                PendingStep::Call { function, span } => {
                    Step::Call { function: Arc::from(&*self.name(function)), loc: self.loc(span) }
                }
            };
            let id = TrailId(self.trails.len() as u32);
            self.trails.push(Trail { parent: Some(parent), step });
            self.steps[i].1 = Some(id);
            parent = id;
        }
        parent
    }

    /// Makes the named values that core 0 returned the outputs of the kernel at `span`.
    fn take_outputs(&mut self, outputs: &[(String, Value)], allowed: language::Outputs, span: Span) -> EvalResult<()> {
        self.report_findings();
        let mut findings = Vec::new();
        let returned = self.backend.return_outputs(outputs, allowed, span, &mut findings);
        self.diagnostics.extend(findings);
        returned
    }

    /// The program, after the kernel at `span` has been evaluated for every core.
    pub(crate) fn finish(&mut self, span: Span) -> EvalResult<Program> {
        self.report_findings();
        let files = (0..self.sources.len()).map(|i| self.sources.path(FileId(i as u32)).into()).collect();
        let trails = std::mem::replace(&mut self.trails, vec![Trail { parent: None, step: Step::Root }]);
        self.backend.finish(files, trails, span)
    }

    /// The findings so far.
    fn findings(&self) -> Findings {
        Findings { diagnostics: self.diagnostics.len(), reported: self.reported.clone(), recovery: self.recovery }
    }

    /// Removes the findings made since.
    fn take_back_findings(&mut self, before: Findings) {
        self.diagnostics.truncate(before.diagnostics);
        self.reported = before.reported;
        self.recovery = before.recovery;
    }

    /// Reports a finding that does not stop evaluation.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Prints text with its end during specialisation.
    pub(crate) fn print_part(&mut self, text: String, end: &str) {
        let mut line = std::mem::take(&mut self.unfinished);
        line.push_str(&text);
        match end.strip_suffix('\n') {
            Some(end) => {
                line.push_str(end);
                self.print(line);
            }
            None if !self.quiet => self.unfinished = line + end,
            None => {}
        }
    }

    /// Takes the printed lines.
    pub(crate) fn take_prints(&mut self) -> Vec<String> {
        if !self.unfinished.is_empty() {
            self.prints.push(std::mem::take(&mut self.unfinished));
        }
        std::mem::take(&mut self.prints)
    }

    /// Prints a line during specialisation.
    pub(crate) fn print(&mut self, line: String) {
        if !self.quiet {
            self.prints.push(line);
        }
    }

    /// Reports a finding that does not stop evaluation, once per span.
    pub(crate) fn report_once(&mut self, diagnostic: Diagnostic, span: Span) {
        if self.reported.insert((diagnostic.id, span)) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// With [`Options::strict`], lets the dialect report constructs that it rejects in a kernel.
    pub(crate) fn check_strictly(&mut self, construct: Construct<'_>) {
        if self.options.strict && self.in_kernel {
            self.dialect.check_strictly(self, &construct);
        }
    }

    /// Bytes of machine stack in use.
    pub(crate) fn stack_used(&self) -> usize {
        let marker = 0u8;
        (&raw const marker as usize).abs_diff(self.stack_base)
    }

    /// Enters a loop, whose iterations are `independent` if the kernel declares so; returns the
    /// depth to pass to [`Self::pop_steps`].
    pub(crate) fn push_iteration(&mut self, variable: Symbol, span: Span, independent: bool) -> usize {
        self.steps.push((PendingStep::Iteration { variable, value: 0, span, is_count: false, independent }, None));
        self.steps.len() - 1
    }

    /// Begins an iteration of the loop at `depth`, with its number or the value of its variable.
    pub(crate) fn set_iteration(&mut self, depth: usize, new: i64, counted: bool) {
        if let Some((PendingStep::Iteration { value, is_count, .. }, id)) = self.steps.get_mut(depth) {
            (*value, *is_count) = (new, counted);
            *id = None;
        }
    }

    /// Leaves the loops and calls above `depth`.
    pub(crate) fn pop_steps(&mut self, depth: usize) {
        self.steps.truncate(depth);
    }
}
