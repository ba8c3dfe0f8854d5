//! Rewrites a file for `neuronxcc.nki` (Beta 1) in the current language.
//!
//! One pass over the syntax tree tracks the kinds of the names of a function ([`kinds`]) and replaces statements, each
//! completely or not at all: a statement with a construct that has no mechanical replacement is unchanged and reported.
//! Replacements are of spans, and calls keep the layout of their arguments.

mod access;
mod annotations;
mod assign;
mod call;
mod expr;
mod flow;
mod function;
mod harness;
mod imports;
mod instruction;
mod kinds;
mod language;
mod lines;
mod make;
mod numpy;
mod poly;
mod reduction;
mod result;
mod rows;
mod tree;

use std::ops::Range;

use nki_diag::{Diagnostic, FileId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use self::flow::Flow;
use self::kinds::{Kind, Kinds, Tile, walk};
use self::tree::{assigned, expressions, parts, statements};
use crate::syntax::resolve::pattern_targets;
use crate::syntax::{self, Expr, ExprKind, For, Interner, Stmt, StmtKind, Symbol};

/// A construct of Beta 1 in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its location, in bytes.
    pub span: Range<usize>,
    /// The original text.
    pub old: String,
    /// The replacement in the current language: the new text if it was rewritten, else a description.
    pub new: String,
    /// Whether it was rewritten.
    pub rewritten: bool,
}

/// The packages whose names are of Beta 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `neuronxcc.nki`.
    Neuronxcc,
    /// `neuronxcc.nki` and `nki`.
    Any,
}

/// A file in the current language.
#[derive(Debug, Default)]
pub struct Migration {
    /// The new text.
    pub text: String,
    /// Changes made, and changes to make by hand, in the order of the file.
    pub changes: Vec<Change>,
    /// Syntax errors; if there are any, nothing is rewritten.
    pub errors: Vec<Diagnostic>,
}

/// A construct without a mechanical replacement.
#[derive(Debug)]
struct ByHand {
    span: Span,
    construct: String,
    instead: String,
}

type Outcome<T> = Result<T, ByHand>;

fn by_hand(span: Span, construct: &str, instead: &str) -> ByHand {
    ByHand { span, construct: construct.to_owned(), instead: instead.to_owned() }
}

/// A replacement of a span.
#[derive(Debug, Clone)]
struct Edit {
    span: Range<usize>,
    text: String,
}

/// The definition of an index tile, which is removed if the name is not used any more.
#[derive(Debug)]
struct Definition {
    names: Vec<Symbol>,
    stmt: Span,
}

/// The state of a migration.
struct Pass<'a> {
    text: &'a str,
    kinds: Kinds<'a>,
    edits: Vec<Edit>,
    changes: Vec<Change>,
    /// Statements to insert before the current one.
    before: Vec<String>,
    definitions: Vec<Definition>,
    /// The line of the current statements, if several share it.
    line: Option<lines::Line>,
    /// Index tiles that are still used.
    used: FxHashSet<Symbol>,
    /// Tensors that the function returns.
    returned: FxHashSet<Symbol>,
    /// Tiles of PSUM that matmuls accumulate into as a whole.
    accumulated: FxHashSet<Symbol>,
    /// Tensors that instructions other than matmuls write, in part or as a whole.
    overwritten: FxHashSet<Symbol>,
    /// Tiles of PSUM filled with zeros, in which matmuls accumulate.
    zeroed: FxHashSet<Symbol>,
    /// The parameters of the functions of the file.
    functions: FxHashMap<Symbol, Vec<Symbol>>,
    /// The function of the current statements.
    function: Option<Symbol>,
    /// Arguments and results of functions, from the last reading of the file.
    flow: Flow,
    /// The same, from the current reading.
    learned: Flow,
    /// Functions of the file called by the host.
    kernels: FxHashSet<Symbol>,
    /// The tile created by the last new statements.
    last_made: Option<Tile>,
    /// Functions of the file called by functions, not by the host.
    called: FxHashSet<Symbol>,
    /// Functions of the file that run, or may run, on the device.
    on_device: FxHashSet<Symbol>,
    /// Whether the statements belong to a function called by the host.
    in_kernel: bool,
    /// Whether the statements belong to a class, not to a function in it.
    in_class: bool,
    /// Number of generated names in this file.
    made: usize,
    /// Names imported outside of functions, which serve all of them.
    imported_at_top: FxHashMap<Symbol, String>,
    /// Names that are bound to lists and dicts.
    containers: FxHashSet<Symbol>,
    /// Modules that the new text uses, with their local names.
    needs: FxHashMap<&'static str, String>,
    /// Calls of NumPy's functions with tiles, with the functions of the language that they call.
    of_numpy: Vec<Edit>,
}

/// Rewrites a file. For one with syntax errors, only these are returned.
pub fn migrate(file: FileId, text: &str, api: Api) -> Migration {
    let renamed = numpy::Renamed::of(file, text, api);
    let migration = migrate_renamed(file, &renamed.text, api);
    renamed.of_original(text, migration)
}

fn migrate_renamed(file: FileId, text: &str, api: Api) -> Migration {
    let mut names = Interner::new();
    let (mut module, errors) = syntax::parse::parse(file, text, &mut names);
    if !errors.is_empty() {
        return Migration { text: text.to_owned(), changes: Vec::new(), errors };
    }
    syntax::resolve::resolve(&mut module);
    let flow = Flow::of(text, &module.body, &names, api);
    let mut pass = Pass::over(text, &module.body, &names, flow, api);
    pass.imports(&module.body);
    pass.finish(file)
}

/// Text without its line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl<'a> Pass<'a> {
    /// Reads all statements of a file.
    fn over(text: &'a str, body: &[Stmt], names: &'a Interner, flow: Flow, api: Api) -> Self {
        let imported = imports::names(body, names, api);
        let mut pass = Self {
            text,
            kinds: Kinds::new(text, names, imported),
            edits: Vec::new(),
            changes: Vec::new(),
            before: Vec::new(),
            definitions: Vec::new(),
            line: None,
            used: FxHashSet::default(),
            returned: FxHashSet::default(),
            accumulated: FxHashSet::default(),
            overwritten: FxHashSet::default(),
            zeroed: FxHashSet::default(),
            functions: flow::parameters(body),
            containers: tree::containers(body),
            imported_at_top: imports::names_at_top(body, names, api),
            function: None,
            flow,
            learned: Flow::default(),
            kernels: FxHashSet::default(),
            last_made: None,
            called: FxHashSet::default(),
            on_device: FxHashSet::default(),
            in_kernel: false,
            in_class: false,
            made: 0,
            needs: FxHashMap::default(),
            of_numpy: Vec::new(),
        };
        pass.called = pass.called_by_kernels(body);
        pass.on_device = pass.on_device(body);
        statements(body, &mut |stmt| {
            if let StmtKind::Def(def, name) = &stmt.kind
                && pass.is_kernel(def, name)
            {
                pass.kernels.insert(def.name);
            }
        });
        pass.block(body);
        pass.definitions_gone();
        pass
    }
}

impl Pass<'_> {
    fn finish(mut self, file: FileId) -> Migration {
        self.edits.sort_by_key(|e| (e.span.start, e.span.end));
        let mut text = self.edited();
        while let Some(at) = self.faulty(file, &text) {
            let Edit { span, .. } = self.edits.remove(at);
            self.changes.retain(|c| c.span != span);
            let kept = Span { file, start: span.start as u32, end: span.end as u32 };
            self.report(by_hand(kept, self.kinds.source(kept), "no text that parses was found"));
            text = self.edited();
        }
        self.changes.sort_by_key(|c| c.span.start);
        Migration { text, changes: self.changes, errors: Vec::new() }
    }

    fn report(&mut self, problem: ByHand) {
        let span = problem.span.start as usize..problem.span.end as usize;
        self.changes.push(Change { span, old: problem.construct, new: problem.instead, rewritten: false });
    }

    fn replaced(&mut self, span: Span, text: String) {
        let range = span.start as usize..span.end as usize;
        let (old, new) = (one_line(&self.text[range.clone()]), one_line(&text));
        self.changes.push(Change { span: range.clone(), old, new, rewritten: true });
        self.edits.push(Edit { span: range, text });
    }

    /// A name that does not occur in the file.
    fn fresh(&mut self, stem: &str) -> String {
        loop {
            self.made += 1;
            let name = format!("{stem}_{}", self.made);
            if self.kinds.names.find(&name).is_none() {
                return name;
            }
        }
    }

    /// The file's name for a module, which is imported if necessary.
    fn module(&mut self, path: &'static str, short: &str) -> String {
        let name = self.module_name(path, short);
        self.needs.insert(path, name.clone());
        name
    }

    /// The file's current or future name for a module.
    fn module_name(&self, path: &str, short: &str) -> String {
        if let Some(name) = self.needs.get(path) {
            return name.clone();
        }
        let names = self.kinds.names;
        let mut found: Vec<&str> =
            self.kinds.imported.iter().filter(|(_, p)| *p == path).map(|(n, _)| &**names.name(*n)).collect();
        found.sort_unstable();
        found.first().map_or(short, |n| n).to_owned()
    }

    fn nl(&mut self) -> String {
        self.module("nki.language", "nl")
    }

    fn nisa(&mut self) -> String {
        self.module("nki.isa", "nisa")
    }

    /// Statements in order; the knowledge of names is updated along the way.
    fn block(&mut self, body: &[Stmt]) {
        let mut rest = body;
        while let Some((stmt, after)) = rest.split_first() {
            if let Some(line) = self.shared_line(rest) {
                let (stmts, after) = rest.split_at(line.statements);
                self.on_one_line(stmts, line);
                rest = after;
            } else {
                self.stmt(stmt);
                rest = after;
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Def(def, name) => self.definition(def, name),
            StmtKind::Class(class, _) => {
                let outer = std::mem::replace(&mut self.in_class, true);
                self.block(&class.body);
                self.in_class = outer;
            }
            StmtKind::If(arms, orelse) => {
                let before = self.kinds.state();
                let mut ends = vec![before];
                for (test, body) in arms {
                    self.header(test);
                    self.block(body);
                    ends.push(self.kinds.state());
                }
                self.block(orelse);
                ends.iter().for_each(|state| self.kinds.join(state));
            }
            StmtKind::For(f) => {
                self.carried(f);
                self.header(&f.iter);
                self.again(&f.body);
                self.loop_targets(&f.target, &f.iter);
                self.block(&f.body);
                self.block(&f.orelse);
            }
            StmtKind::While(test, body, orelse) => {
                self.again(body);
                self.header(test);
                self.block(body);
                self.block(orelse);
            }
            StmtKind::With(items, body) => {
                items.iter().for_each(|(e, _)| self.header(e));
                self.block(body);
            }
            StmtKind::Try(t) => {
                self.again(&t.body);
                self.block(&t.body);
                for handler in &t.handlers {
                    self.block(&handler.body);
                }
                self.block(&t.orelse);
                self.block(&t.finally);
            }
            StmtKind::Match(m) => {
                self.header(&m.subject);
                let mut ends = vec![self.kinds.state()];
                for case in &m.cases {
                    pattern_targets(&case.pattern, &mut |e| {
                        if let ExprKind::Name(name, _) = &e.kind {
                            self.kinds.forget(*name);
                        }
                    });
                    case.guard.iter().for_each(|guard| self.header(guard));
                    self.block(&case.body);
                    ends.push(self.kinds.state());
                }
                ends.iter().for_each(|state| self.kinds.join(state));
            }
            StmtKind::Import(_) | StmtKind::ImportFrom(_) => {}
            _ => self.simple(stmt),
        }
    }

    /// Removes the names that a loop binds: an earlier line of it may use the value of a later one. A tile that is updated in place
    /// keeps its kind.
    fn again(&mut self, body: &[Stmt]) {
        let mut bound = Vec::new();
        assigned(body, &mut |name, stmt| {
            let number = match &stmt.kind {
                StmtKind::Assign(_, value) => matches!(self.kinds.kind(value), Kind::Int | Kind::Float),
                _ => false,
            };
            let in_place = match &stmt.kind {
                StmtKind::AugAssign(..) => true,
                StmtKind::Assign(_, Expr { kind: ExprKind::Call(callee, _), .. }) => {
                    self.kinds.language(callee).as_deref() == Some("loop_reduce")
                }
                _ => false,
            };
            bound.push((name, in_place, number));
        });
        for (name, in_place, number) in bound {
            match self.kinds.name(name) {
                Kind::Tile(_) if in_place => {}
                // A recomputed tile is a tile.
                Kind::Tile(tile) if tile.blocks.is_empty() && !number => {
                    self.kinds.bind(name, Kind::Tile(Tile::default()), &[]);
                }
                _ => self.kinds.forget(name),
            }
        }
    }

    /// Reports names changed by a loop whose iterations all started with the values before it.
    fn carried(&mut self, f: &For) {
        let ExprKind::Call(range, _) = &f.iter.kind else { return };
        if !self.kinds.language(range).is_some_and(|name| matches!(&*name, "affine_range" | "sequential_range")) {
            return;
        }
        statements(&f.body, &mut |stmt| {
            let place = stmt.span.start as usize..stmt.span.end as usize;
            if matches!(stmt.kind, StmtKind::Return(_)) && !self.changes.iter().any(|c| c.span == place) {
                let what = "`return` in a loop: all iterations ran, and now it ends the loop";
                self.report(by_hand(stmt.span, what, "a `return` behind the loop"));
            }
        });
        // `tile += x` modifies the tile itself, in both languages.
        let in_place = |span: Span| {
            let mut found = false;
            statements(&f.body, &mut |stmt| {
                found |= stmt.span == span && matches!(stmt.kind, StmtKind::AugAssign(..));
            });
            found
        };
        for carried in f.carried_into().filter(|carried| !carried.is_counter) {
            if !matches!(self.kinds.name(carried.name), Kind::Int | Kind::Float) && in_place(carried.span) {
                continue;
            }
            let what = "a name that the loop changes: each iteration started with the value from before the loop, and now continues from the previous iteration";
            self.report(by_hand(
                carried.span,
                what,
                "check which of the two is meant, and compute the value from the loop variable",
            ));
        }
    }

    /// The expression of a compound statement's head.
    fn header(&mut self, expr: &Expr) {
        self.note_numpy(expr);
        match self.expr(expr) {
            Ok(text) if self.before.is_empty() => {
                if text != self.kinds.source(expr.span) {
                    self.replaced(expr.span, text);
                }
            }
            Ok(_) => {
                self.before.clear();
                self.report(by_hand(
                    expr.span,
                    "an instruction in a condition",
                    "compute the tile in a statement before",
                ));
            }
            Err(problem) => self.failed(expr, problem),
        }
    }

    /// Reports a problem; index tiles of the expression remain.
    fn failed(&mut self, expr: &Expr, problem: ByHand) {
        self.before.clear();
        self.keep(expr);
        self.report(problem);
    }

    fn keep(&mut self, expr: &Expr) {
        let mut found = Vec::new();
        walk(expr, &mut |e| {
            if let ExprKind::Name(name, _) = &e.kind {
                found.push(*name);
            }
        });
        self.used.extend(found);
    }

    /// A statement without a body.
    fn simple(&mut self, stmt: &Stmt) {
        expressions(stmt).into_iter().for_each(|expr| self.note_numpy(expr));
        let made = self.made;
        match self.lines(stmt) {
            Ok(None) => self.before.clear(),
            Ok(Some(mut lines)) => {
                let mut all = std::mem::take(&mut self.before);
                all.append(&mut lines);
                let old = self.kinds.source(stmt.span);
                if all.len() == 1 && all[0] == old {
                    return;
                }
                match self.joined(stmt.span, &all) {
                    Ok(text) => self.replaced(stmt.span, text),
                    Err(problem) => {
                        expressions(stmt).into_iter().for_each(|e| self.keep(e));
                        self.report(problem);
                    }
                }
            }
            Err(problem) => {
                self.made = made;
                self.before.clear();
                for expr in expressions(stmt) {
                    self.keep(expr);
                }
                self.forget_targets(stmt);
                self.report(problem);
            }
        }
    }

    /// After an unchanged statement, the kinds of its targets are unknown, except that they are tiles.
    fn forget_targets(&mut self, stmt: &Stmt) {
        let StmtKind::Assign(targets, value) = &stmt.kind else { return };
        let is_tile = self.tile(value).is_some();
        for target in targets.iter().flat_map(parts) {
            if let ExprKind::Name(name, _) = &target.kind {
                self.kinds.forget(*name);
                if is_tile {
                    self.kinds.bind(*name, Kind::Tile(Tile::default()), &[]);
                }
            }
        }
    }

    /// The new lines of a statement; `None` if it is decided later.
    fn lines(&mut self, stmt: &Stmt) -> Outcome<Option<Vec<String>>> {
        match &stmt.kind {
            StmtKind::Assign(targets, value) if targets.len() == 1 => self.assign(stmt, &targets[0], value),
            StmtKind::AnnAssign(_, annotation, value)
                if (value.is_none() || self.in_class) && self.is_of_typing(annotation.span) =>
            {
                Ok(Some(vec![self.with_any_class(stmt, annotation.span)]))
            }
            StmtKind::AnnAssign(target, annotation, Some(value)) => {
                if self.is_of_typing(annotation.span) {
                    return Ok(Some(self.assign(stmt, target, value)?.unwrap_or_default()));
                }
                self.assign(stmt, target, value)
            }
            StmtKind::AugAssign(target, op, value) => self.update(stmt, target, *op, value).map(Some),
            StmtKind::Expr(value) => self.statement(value).map(Some),
            StmtKind::Return(Some(value)) => {
                self.returns(value);
                if self.in_kernel {
                    self.check_outputs(value)?;
                }
                self.spliced(stmt.span, &[value]).map(|t| Some(vec![t]))
            }
            _ => {
                let parts = expressions(stmt);
                self.spliced(stmt.span, &parts).map(|t| Some(vec![t]))
            }
        }
    }
}
