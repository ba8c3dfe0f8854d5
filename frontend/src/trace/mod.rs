//! Tracing for a driver outside the evaluator: Python executes the kernel, and calls the trace for each operation on a value of the device.
//!
//! The functions, methods, operators and checks are those of the evaluator and its dialects: this module adds no rules. The driver reports
//! its location ([`Trace::enter_call`], the `span` of each operation), passes arguments as [`Item`]s, and receives a [`Failure`] to raise in its
//! own way.

mod item;
mod values;

use std::path::Path;
use std::rc::Rc;

use nki_diag::{Diagnostic, FileId, SourceMap, Span};
use nki_isa::{DType, Node, RegId, View};

pub use self::item::{Args, Callable, Content, Item, Located, Selected, Selector};
pub use self::values::LoopOver;
use crate::dialect;
use crate::dialect::common::state::state;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::exception_class;
use crate::eval::foreign;
use crate::eval::place::Around;
use crate::eval::value::Value;
use crate::syntax::{StmtKind, Symbol, parse};
use crate::{Arg, Compiled, KernelInfo, Loader, Options, Returned};

/// The specialisation of a kernel by a driver.
#[expect(missing_debug_implementations, reason = "the state of an evaluation is of no use as text")]
pub struct Trace<'t, 'i> {
    interp: &'t mut Interp<'i>,
}

/// An interned name: of an attribute, a keyword or a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name(Symbol);

/// A rejected operation.
#[derive(Debug)]
pub struct Failure(Box<Raise>);

/// The storage of a value of the device.
#[derive(Debug, Clone, PartialEq)]
pub enum Held {
    /// Elements of a tensor.
    Tensor(View),
    /// A register.
    Register(RegId),
}

/// An operator of Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Add,
    Sub,
    Mul,
    MatMul,
    Div,
    Mod,
    Pow,
    LShift,
    RShift,
    BitOr,
    BitXor,
    BitAnd,
    FloorDiv,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// An unrolled loop around a location of the source.
#[derive(Debug, Clone)]
pub struct Loop {
    /// The name of its variable.
    pub variable: String,
    symbol: Name,
    /// From `for` to the end of its iterable.
    pub header: Span,
    independent: bool,
}

/// The definition of a kernel in its source.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its name.
    pub span: Span,
    /// Its parameters.
    pub params: Vec<(String, Span)>,
}

/// A dynamic loop whose body is being traced.
#[derive(Debug)]
pub struct DynamicLoop {
    range: Item,
    /// Its variable.
    pub variable: Item,
    span: Span,
}

impl Failure {
    /// The failure of a function of the driver, which has the details: callers of the function propagate it.
    pub fn of_driver() -> Self {
        Failure(Raise::reported())
    }

    /// The diagnostic for the user, with the calls that led to it.
    pub fn into_diagnostic(self) -> Diagnostic {
        self.0.into_diagnostic()
    }

    /// Python's name of the class of the exception.
    pub fn class(&self) -> &'static str {
        exception_class(self.0.diagnostic.id)
    }
}

impl DynamicLoop {
    /// The error of a body that was left early.
    pub fn left_early(&self) -> Diagnostic {
        Diagnostic::error("dynamic-loop", "a loop on the device was left before the end of its body")
            .at(self.span, "this loop runs on the device")
            .help("its body is traced once and runs as often as the device counts: `break` and `return` have no meaning in it")
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Failure(Raise::new(diagnostic))
    }
}

type Outcome<T> = Result<T, Failure>;

/// Runs the same kernel in step with a trace, and so determines the number of iterations of dynamic loops.
pub trait Follower {
    /// Starts a dynamic loop, which is the statement at `header` of the core's stream.
    ///
    /// # Errors
    /// If the run has ended.
    fn begin_loop(&self, trace: &mut Trace<'_, '_>, header: u64) -> Outcome<()>;

    /// Called after the body of that loop has been traced. Returns whether there is another iteration, for which it is traced again.
    ///
    /// # Errors
    /// If the run has ended.
    fn next_iteration(&self, trace: &mut Trace<'_, '_>, header: u64) -> Outcome<bool>;
}

/// Adapter from [`Follower`] to the evaluation.
struct Following(Rc<dyn Follower>);

impl foreign::Follower for Following {
    fn begin_loop(&self, interp: &mut Interp<'_>, header: u64) -> EvalResult<()> {
        self.0.begin_loop(&mut Trace { interp }, header).map_err(|failure| failure.0)
    }

    fn next_iteration(&self, interp: &mut Interp<'_>, header: u64) -> EvalResult<bool> {
        self.0.next_iteration(&mut Trace { interp }, header).map_err(|failure| failure.0)
    }
}

/// Specialises a kernel executed by `run`. It ends with [`Trace::finish`], or with an error of the driver.
///
/// # Errors
/// That of `run`.
pub fn trace<E>(
    options: &Options,
    loader: &dyn Loader,
    run: impl FnOnce(&mut Trace<'_, '_>) -> Result<Compiled, E>,
) -> Result<Compiled, E> {
    let mut interp = dialect::evaluation(loader, options);
    interp.be_driven();
    run(&mut Trace { interp: &mut interp })
}

impl Trace<'_, '_> {
    /// Counts a step at `span`, and runs `work`; an error gets its call stack.
    fn at<T>(&mut self, span: Span, work: impl FnOnce(&mut Interp<'_>) -> EvalResult<T>) -> Outcome<T> {
        self.interp.enter_file(span.file);
        let result = self.interp.step(span).and_then(|()| work(self.interp));
        result.map_err(|mut raise| {
            if raise.frames.is_empty() && !raise.reported {
                let calls = self.interp.kernel_calls().iter().rev();
                raise.frames = calls.map(|(name, span)| (self.interp.name(*name).to_string(), *span)).collect();
            }
            Failure(raise)
        })
    }

    /// The name with this text.
    pub fn name(&mut self, text: &str) -> Name {
        Name(self.interp.sym(text))
    }

    /// Findings so far.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.interp.diagnostics
    }

    /// Warns of an error that the kernel has caught.
    pub fn report_caught(&mut self, error: &Diagnostic) {
        self.interp.report_caught(error);
    }

    /// The files of spans.
    pub fn sources(&self) -> &SourceMap {
        &self.interp.sources
    }

    /// Reports a finding.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.interp.report(diagnostic);
    }

    /// Adds a file whose code uses these modules. Its imports choose the dialect of the operations in it. If they name none, as in a cell
    /// of a notebook, the modules do.
    pub fn add_file(&mut self, path: &str, text: &str, modules: &[String]) -> FileId {
        // Python has accepted code that the parser rejects: it is newer than the parser.
        let (tree, _) = self.interp.take_file(Path::new(path), text);
        let file = FileId(self.interp.sources.len() as u32 - 1);
        self.interp.drive_file(file, self.interp.dialect_of(&tree), modules);
        file
    }

    /// A file of unknown text, with this number of empty lines.
    pub fn add_lines(&mut self, path: &str, lines: u32, modules: &[String]) -> FileId {
        let file = self.interp.sources.add(path, "\n".repeat(lines as usize));
        self.interp.drive_file(file, None, modules);
        file
    }

    /// The loops with one variable around a location, within its function, outermost first.
    pub fn loops_around(&mut self, place: Span) -> Vec<Loop> {
        let found = self.interp.loops_around(place);
        let named = |around: Around| Loop {
            variable: self.interp.name(around.variable).to_string(),
            symbol: Name(around.variable),
            header: around.header,
            independent: around.independent,
        };
        found.into_iter().map(named).collect()
    }

    /// The function of this name that a file defines at a line (of its first decorator, or of `def`).
    pub fn definition(&self, file: FileId, name: &str, line: u32, params: &[String]) -> Option<Definition> {
        let tree = self.interp.tree(file)?;
        let def = self.interp.find_definition(&tree, name, line, params, None).ok()?;
        let params = def.params.iter().map(|p| (self.interp.name(p.name).to_string(), p.span)).collect();
        Some(Definition { span: def.name_span, params })
    }

    /// Rejects a `return` at `span` in a loop of Beta 1 whose compiler read the body once: it runs all iterations, but Python has ended the loop.
    ///
    /// # Errors
    /// `unsupported-syntax` for such a `return`.
    pub fn check_return(&mut self, span: Span) -> Outcome<()> {
        self.at(span, |interp| {
            let Some(header) = interp.loop_read_once_around(span) else { return Ok(()) };
            let message = "`return` in a loop whose body the compiler reads once: it runs all iterations, but Python ends the loop here";
            Err(Raise::new(
                Diagnostic::error("unsupported-syntax", message)
                    .at(span, "Python leaves the loop")
                    .with(header, "this loop runs as a whole on the device")
                    .help("move the `return` behind the loop, or let the built-in evaluator execute the kernel"),
            ))
        })
    }

    /// The names of the variables that the `return` statement at `span` returns.
    pub fn returned_names(&mut self, span: Span) -> Vec<Option<String>> {
        let text = self.interp.source_text(span);
        let (module, _) = parse::parse(span.file, &text, &mut self.interp.names);
        match module.body.first().map(|stmt| &stmt.kind) {
            Some(StmtKind::Return(Some(value))) => self.interp.names_in(value),
            _ => Vec::new(),
        }
    }

    /// Number of iterations and calls around the current place.
    pub fn depth(&self) -> usize {
        self.interp.depth()
    }

    /// Leaves the iterations and calls above `depth`.
    pub fn leave_to(&mut self, depth: usize) {
        self.interp.leave_to(depth);
    }

    /// Enters an iteration of an unrolled loop, the value of whose variable is `value`.
    pub fn enter_iteration(&mut self, of: &Loop, value: i64) {
        let Loop { symbol, header, independent, .. } = of;
        self.interp.enter_iteration(&Around { variable: symbol.0, header: *header, independent: *independent }, value);
    }

    /// Enters a call at `span` of this function.
    pub fn enter_call(&mut self, function: Name, span: Span) {
        self.interp.enter_call(function.0, span);
    }

    /// Called before the kernel of this name at `span` runs for this core; the options' schedule orders its instructions. Returns the
    /// positions in the launch grid of the programs that the core runs: one without a grid.
    ///
    /// # Errors
    /// `launch-grid` for a grid over another number of cores.
    pub fn begin_core(&mut self, kernel: &str, core: u32, span: Span) -> Outcome<Vec<Vec<u32>>> {
        let edges = self.interp.options.schedule.iter();
        let edges: Vec<_> = edges.map(|(later, earlier)| (later.as_str().into(), earlier.as_str().into())).collect();
        self.leave_to(0);
        self.at(span, |interp| {
            interp.check_launch(span)?;
            interp.outer_config = interp.take_config(&interp.options.config, span)?;
            Ok(())
        })?;
        self.interp.begin_core(kernel, core, &edges);
        Ok(crate::programs_of(&self.interp.options.grid, core))
    }

    /// Called before the program at this position of the launch grid runs; `index` counts those of its core. Only the first one prints.
    pub fn begin_program(&mut self, at: &[u32], index: u32) {
        self.leave_to(0);
        self.interp.begin_program(at, index);
    }

    /// Reports, for a kernel compiled with [`Options::strict`], an argument that the official compiler rejects; its parameter is at `span`.
    pub fn check_argument(&mut self, arg: &Arg, span: Span) {
        self.interp.check_argument(arg, span);
    }

    /// The tensor passed as an argument, declared at `span`.
    ///
    /// # Errors
    /// If its shape breaks a rule.
    pub fn input(&mut self, name: &str, shape: &[usize], dtype: DType, span: Span) -> Outcome<Item> {
        self.at(span, |interp| {
            let loc = interp.loc(span);
            interp.backend.input(name, shape, dtype, loc, span).map(Item)
        })
    }

    /// Checks that a kernel with this `compile_config`, or None, may be called inside the traced one.
    ///
    /// # Errors
    /// `kernel-config`
    pub fn check_nested(&mut self, config: &Item, span: Span) -> Outcome<()> {
        self.at(span, |interp| interp.dialect.nested_kernel(interp, &config.0, span))
    }

    /// Rejects a kernel with a grid that the traced one calls at `span`.
    ///
    /// # Errors
    /// `launch-grid`
    pub fn refuse_grid(&mut self, span: Span) -> Outcome<()> {
        self.at(span, |_| Err(Interp::nested_grid(span)))
    }

    /// The value returned by the kernel at `span` for its first core; `names` are those of the variables of its `return`.
    ///
    /// # Errors
    /// `kernel-output` unless it is a tensor, or a tuple, list or dict of tensors.
    pub fn take_result(&mut self, result: &Item, names: &[Option<String>], span: Span) -> Outcome<Returned> {
        let tree = self.interp.tree(span.file);
        let def = tree.as_ref().and_then(|tree| tree.functions.iter().find(|def| def.name_span == span));
        let params = def.map_or(&[][..], |def| &def.params);
        self.at(span, |interp| interp.take_result(&result.0, names, interp.dialect, params, span))
    }

    /// Reports other tensors than those of the first core in the value that the kernel at `span` returns for a later core.
    ///
    /// # Errors
    /// `kernel-output` for a value that is nested too deeply.
    pub fn compare_result(&mut self, result: &Item, core: u32, span: Span) -> Outcome<()> {
        self.at(span, |interp| interp.compare_result(&result.0, core, span))
    }

    /// The program of the kernel at `span`, which has run for all cores.
    ///
    /// # Errors
    /// `depends-on` for an edge of the schedule that no instruction enforces.
    pub fn finish(&mut self, kernel: &str, returned: Returned, span: Span) -> Outcome<Compiled> {
        let program = self.at(span, |interp| interp.finish(span))?;
        let kernel = KernelInfo {
            name: kernel.to_owned(),
            params: Vec::new(),
            signature: kernel.to_owned(),
            span,
            target: None,
            older_compiler: self.interp.dialect.is_older(),
            as_written: self.interp.options.as_written,
            decorated: true,
        };
        Ok(Compiled {
            kernel: Some(kernel),
            target: self.interp.options.target,
            program: Some(program),
            refused: None,
            diagnostics: std::mem::take(&mut self.interp.diagnostics),
            sources: std::mem::take(&mut self.interp.sources),
            prints: self.interp.take_prints(),
            returned,
        })
    }

    /// From now on, `follower` determines the number of iterations of dynamic loops.
    pub fn follow(&mut self, follower: Rc<dyn Follower>) {
        self.interp.follower = Some(Rc::new(Following(follower)));
    }

    /// Position of the next statement in the core's stream, in which a dynamic statement precedes its contents.
    pub fn position(&mut self) -> u64 {
        state(self.interp).builder.position()
    }

    /// The statements appended last to the innermost block, at most `most`.
    pub fn last_statements(&mut self, most: usize) -> &[Node] {
        state(self.interp).builder.last_nodes(most)
    }

    /// The iterable of the `for` statement at a location; the location itself if there is none.
    pub fn iterated_at(&self, place: Span) -> Span {
        self.interp.iterated_at(place).unwrap_or(place)
    }

    /// Starts the loop of a range counted on the device; `None` for any other value.
    ///
    /// # Errors
    /// If no loop is allowed here.
    pub fn begin_loop(&mut self, range: &Item, span: Span) -> Outcome<Option<DynamicLoop>> {
        let Value::Object(object) = &range.0 else { return Ok(None) };
        let Some(counted) = object.range() else { return Ok(None) };
        let variable = self.at(span, |interp| counted.begin(interp, span).map(Item))?;
        Ok(Some(DynamicLoop { range: range.clone(), variable, span }))
    }

    /// Called after the body of the last started dynamic loop has been traced; returns whether it is traced again, which a [`Follower`] decides.
    ///
    /// # Errors
    /// If the follower fails.
    pub fn next_iteration(&mut self, of: &DynamicLoop) -> Outcome<bool> {
        let Value::Object(object) = &of.range.0 else { return Ok(false) };
        let Some(range) = object.range() else { return Ok(false) };
        self.at(of.span, |interp| range.again(interp))
    }

    /// Ends the last started dynamic loop. A failed body is removed.
    pub fn end_loop(&mut self, of: &DynamicLoop, complete: bool) {
        if let Value::Object(object) = &of.range.0
            && let Some(range) = object.range()
        {
            range.end(self.interp, &of.variable.0, of.span, complete);
        }
    }

    /// Enters `with value:`; returns the value bound by `as`.
    ///
    /// # Errors
    /// If it is not a context manager.
    pub fn enter(&mut self, value: &Item, span: Span) -> Outcome<Item> {
        self.at(span, |interp| match &value.0 {
            Value::Object(object) => object.enter(interp, span).map(Item),
            other => Err(interp.no_item(other, "entered", span)),
        })
    }

    /// Leaves `with value:`.
    pub fn exit(&mut self, value: &Item) {
        if let Value::Object(object) = &value.0 {
            object.exit(self.interp);
        }
    }
}
