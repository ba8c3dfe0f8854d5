//! A driver outside of the evaluator: Python executes the kernel, and comes here for each operation on a value of the device.
//!
//! The functions, methods, operators and checks are those of the evaluator and its dialects: nothing here has a rule of its own. The driver says
//! where it is ([`Trace::enter_call`], the `span` of each operation), hands over arguments as [`Item`]s, and gets a [`Failure`] to raise in its
//! own way.

mod item;
mod values;

use std::path::Path;
use std::rc::Rc;

use nki_diag::{Diagnostic, FileId, SourceMap, Span};
use nki_isa::{DType, Node, RegId, View};

pub use self::item::{Args, Callable, Content, Item};
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

/// An operation that was refused.
#[derive(Debug)]
pub struct Failure(Box<Raise>);

/// What a value of the device is kept in.
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

/// An unrolled loop around a place of the source.
#[derive(Debug, Clone)]
pub struct Loop {
    /// The name of its variable.
    pub variable: String,
    symbol: Name,
    /// From `for` to the end of what it iterates over.
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
    /// The failure of a function of the driver, which knows more about it: whoever called the function passes it on.
    pub fn of_driver() -> Self {
        Failure(Raise::reported())
    }

    /// What to tell the user, with the calls that led there.
    pub fn into_diagnostic(self) -> Diagnostic {
        self.0.into_diagnostic()
    }

    /// Python's name of the class of the exception.
    pub fn class(&self) -> &'static str {
        exception_class(self.0.diagnostic.id)
    }
}

impl DynamicLoop {
    /// The error of a body that was left before its end.
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

/// Follows a trace with a run of the same kernel, and so knows how often the body of a dynamic loop is executed.
pub trait Follower {
    /// A dynamic loop begins, which is the statement at `header` of the core's stream.
    ///
    /// # Errors
    /// The run has come to its end.
    fn begin_loop(&self, trace: &mut Trace<'_, '_>, header: u64) -> Outcome<()>;

    /// The body of that loop has been traced. Whether there is another iteration, for which it is traced again.
    ///
    /// # Errors
    /// The run has come to its end.
    fn next_iteration(&self, trace: &mut Trace<'_, '_>, header: u64) -> Outcome<bool>;
}

/// A [`Follower`] as the evaluation sees it.
struct Following(Rc<dyn Follower>);

impl foreign::Follower for Following {
    fn begin_loop(&self, interp: &mut Interp<'_>, header: u64) -> EvalResult<()> {
        self.0.begin_loop(&mut Trace { interp }, header).map_err(|failure| failure.0)
    }

    fn next_iteration(&self, interp: &mut Interp<'_>, header: u64) -> EvalResult<bool> {
        self.0.next_iteration(&mut Trace { interp }, header).map_err(|failure| failure.0)
    }
}

/// Specialises a kernel that `run` executes. It ends with [`Trace::finish`], or with an error of the driver.
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
    /// Counts a step at `span`, and runs `work`; an error gets the calls around it.
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

    /// The files that spans point into.
    pub fn sources(&self) -> &SourceMap {
        &self.interp.sources
    }

    /// Reports a finding.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.interp.report(diagnostic);
    }

    /// Takes over a file whose code uses these modules. Its imports choose the dialect of the operations in it. If they name none, as in a cell
    /// of a notebook, the modules do.
    pub fn add_file(&mut self, path: &str, text: &str, modules: &[String]) -> FileId {
        // What the parser refuses Python has accepted: it is newer than the parser.
        let (tree, _) = self.interp.take_file(Path::new(path), text);
        let file = FileId(self.interp.sources.len() as u32 - 1);
        self.interp.drive_file(file, self.interp.dialect_of(&tree), modules);
        file
    }

    /// A file whose text is not known, with this number of lines, which are empty.
    pub fn add_lines(&mut self, path: &str, lines: u32, modules: &[String]) -> FileId {
        let file = self.interp.sources.add(path, "\n".repeat(lines as usize));
        self.interp.drive_file(file, None, modules);
        file
    }

    /// The loops around a place that have one variable, within its function, outermost first.
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

    /// Refuses a `return` at `span` in a loop of Beta 1 whose compiler read the body once: it runs all iterations, but Python has ended the loop.
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

    /// The kernel of this name at `span` is about to be run for this core; instructions wait for each other by the options' schedule. Gives the
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

    /// The program at this position of the launch grid is about to be run; `index` counts those of its core. The `first` one of all prints.
    pub fn begin_program(&mut self, at: &[u32], index: u32, first: bool) {
        self.leave_to(0);
        self.interp.begin_program(at, index, first);
    }

    /// Reports, in a kernel compiled with [`Options::strict`], what the official compiler rejects in an argument whose parameter is at `span`.
    pub fn check_argument(&mut self, arg: &Arg, span: Span) {
        self.interp.check_argument(arg, span);
    }

    /// The tensor that is passed as an argument, written at `span`.
    ///
    /// # Errors
    /// The rule that its shape breaks.
    pub fn input(&mut self, name: &str, shape: &[usize], dtype: DType, span: Span) -> Outcome<Item> {
        self.at(span, |interp| {
            let loc = interp.loc(span);
            interp.backend.input(name, shape, dtype, loc, span).map(Item)
        })
    }

    /// Checks that a kernel with this `compile_config`, None without, may be called inside of the one that is traced.
    ///
    /// # Errors
    /// `kernel-config`
    pub fn check_nested(&mut self, config: &Item, span: Span) -> Outcome<()> {
        self.at(span, |interp| interp.dialect.nested_kernel(interp, &config.0, span))
    }

    /// Refuses a kernel with a grid that the traced one calls at `span`.
    ///
    /// # Errors
    /// `launch-grid`
    pub fn refuse_grid(&mut self, span: Span) -> Outcome<()> {
        self.at(span, |_| Err(Interp::nested_grid(span)))
    }

    /// What the kernel at `span` returned for its first core; `names` are those of the variables of its `return`.
    ///
    /// # Errors
    /// `kernel-output` for what is no tensor, and no tuple, list or dict of them.
    pub fn take_result(&mut self, result: &Item, names: &[Option<String>], span: Span) -> Outcome<Returned> {
        let tree = self.interp.tree(span.file);
        let def = tree.as_ref().and_then(|tree| tree.functions.iter().find(|def| def.name_span == span));
        let params = def.map_or(&[][..], |def| &def.params);
        self.at(span, |interp| interp.take_result(&result.0, names, interp.dialect, params, span))
    }

    /// The program of the kernel at `span`, which has run for all cores.
    ///
    /// # Errors
    /// `depends-on` for an edge of the schedule that no instruction keeps.
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

    /// From now on, `follower` decides how often the bodies of dynamic loops are traced.
    pub fn follow(&mut self, follower: Rc<dyn Follower>) {
        self.interp.follower = Some(Rc::new(Following(follower)));
    }

    /// Position of the statement that comes next in the core's stream, in which a dynamic statement comes before what is in it.
    pub fn position(&mut self) -> u64 {
        state(self.interp).builder.position()
    }

    /// The statements appended last to the innermost block, at most this many.
    pub fn last_statements(&mut self, most: usize) -> &[Node] {
        state(self.interp).builder.last_nodes(most)
    }

    /// What the `for` statement at a place iterates over; the place itself if there is none.
    pub fn iterated_at(&self, place: Span) -> Span {
        self.interp.iterated_at(place).unwrap_or(place)
    }

    /// Begins the loop of a range that the device counts; `None` for any other value.
    ///
    /// # Errors
    /// No loop is allowed here.
    pub fn begin_loop(&mut self, range: &Item, span: Span) -> Outcome<Option<DynamicLoop>> {
        let Value::Object(object) = &range.0 else { return Ok(None) };
        let Some(counted) = object.range() else { return Ok(None) };
        let variable = self.at(span, |interp| counted.begin(interp, span).map(Item))?;
        Ok(Some(DynamicLoop { range: range.clone(), variable, span }))
    }

    /// The body of the dynamic loop that began last has been traced; whether it is traced again, which a [`Follower`] decides.
    ///
    /// # Errors
    /// That of the follower.
    pub fn next_iteration(&mut self, of: &DynamicLoop) -> Outcome<bool> {
        let Value::Object(object) = &of.range.0 else { return Ok(false) };
        let Some(range) = object.range() else { return Ok(false) };
        self.at(of.span, |interp| range.again(interp))
    }

    /// Ends the dynamic loop that began last. A body that failed leaves nothing.
    pub fn end_loop(&mut self, of: &DynamicLoop, complete: bool) {
        if let Value::Object(object) = &of.range.0
            && let Some(range) = object.range()
        {
            range.end(self.interp, &of.variable.0, of.span, complete);
        }
    }

    /// `with value:` begins; gives what `as` binds.
    ///
    /// # Errors
    /// It is no context.
    pub fn enter(&mut self, value: &Item, span: Span) -> Outcome<Item> {
        self.at(span, |interp| match &value.0 {
            Value::Object(object) => object.enter(interp, span).map(Item),
            other => Err(interp.no_item(other, "entered", span)),
        })
    }

    /// `with value:` ends.
    pub fn exit(&mut self, value: &Item) {
        if let Value::Object(object) = &value.0 {
            object.exit(self.interp);
        }
    }
}
