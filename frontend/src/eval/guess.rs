//! Names of a module whose values depend on a guessed condition, which only a running Python could
//! evaluate.
//!
//! A host value counts as false, and a host module as importable. Everything that the statement at
//! module level then binds or changes is marked, and reported where a kernel reads it.

use nki_diag::{Diagnostic, Span};

use super::native::CallArgs;
use super::value::{Host, Module, Value};
use super::{Frame, Interp};
use crate::syntax::*;

/// Standard-library modules that files import along with packages that may be missing.
const LIBRARY: [&str; 27] = [
    "__future__",
    "argparse",
    "ast",
    "asyncio",
    "bisect",
    "ctypes",
    "datetime",
    "glob",
    "heapq",
    "importlib",
    "inspect",
    "io",
    "json",
    "logging",
    "os",
    "pathlib",
    "pickle",
    "random",
    "re",
    "string",
    "subprocess",
    "sys",
    "threading",
    "time",
    "types",
    "unittest",
    "warnings",
];

/// An assumption about the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guess {
    /// The condition.
    span: Span,
    /// The assumption: "assumed to be false".
    taken: &'static str,
}

impl Interp<'_> {
    /// Records that a host value was taken as false.
    pub(super) fn guess_false(&mut self, span: Span) {
        self.guess(span, "assumed to be false");
    }

    /// Records an assumption about the host.
    pub(super) fn guess(&mut self, span: Span, taken: &'static str) {
        if !self.in_kernel {
            self.guessed.get_or_insert(Guess { span, taken });
        }
    }

    /// The result of `os.environ.get(name, default)`: a file has no access to the environment, so
    /// the variable is taken as unset.
    pub(super) fn unset_variable(&mut self, host: &Host, args: &CallArgs) -> Option<Value> {
        if self.in_kernel || !["os.environ.get", "os.getenv"].contains(&&*host.path) {
            return None;
        }
        let by_name = args.keyword.iter().find(|(name, _)| &*self.name(*name) == "default").map(|(_, value)| value);
        let default = args.positional.get(1).or(by_name).filter(|value| !value.is_none())?.clone();
        self.guess(args.span, "the variable is assumed to be unset");
        Some(default)
    }

    /// Marks the names that a statement at module level binds or changes, if it made a guess.
    pub(super) fn mark_guessed(&mut self, module: &Module, stmt: &Stmt) {
        let Some(guess) = self.guessed.take() else { return };
        let mut names = Vec::new();
        resolve::bound_names(stmt, &mut names);
        changed_names(stmt, &mut names);
        names.into_iter().for_each(|name| mark(module, name, guess));
    }

    /// Records the import of a module that may not be installed, which only a running Python knows.
    pub(super) fn assume_import(&mut self, root: &str, span: Span) {
        if !self.in_kernel && !LIBRARY.contains(&root) {
            self.assumed_import.get_or_insert(span);
        }
    }

    /// Marks the names that the handlers of a `try` at module level would bind if a host module could
    /// not be imported.
    pub(super) fn mark_import(&mut self, frame: &Frame<'_>, t: &Try) {
        let Some(span) = self.assumed_import.take() else { return };
        if frame.function.is_some() {
            return;
        }
        let mut names = Vec::new();
        t.handlers.iter().flat_map(|handler| &handler.body).for_each(|stmt| resolve::bound_names(stmt, &mut names));
        let guess = Guess { span, taken: "the module is assumed to be installed" };
        names.into_iter().for_each(|name| mark(frame.module, name, guess));
    }

    /// An imported name is as uncertain as it is in the module that it comes from.
    pub(super) fn copy_guess(&self, from: &Module, name: Symbol, frame: &Frame<'_>, bind: &Expr) {
        let at = from.index.borrow().get(&name).copied();
        let guess = at.and_then(|at| from.guesses.borrow().get(&at).copied());
        if let (Some(guess), ExprKind::Name(bound, _), None) = (guess, &bind.kind, frame.function) {
            mark(frame.module, *bound, guess);
        }
    }

    /// Reports that a kernel reads a global whose value was guessed. At module level, the reading
    /// statement makes the same guess instead.
    #[cold]
    pub(super) fn tell_guess(&mut self, module: &Module, index: u32, value: &Value, span: Span) {
        let Some(guess) = module.guesses.borrow().get(&index).copied() else { return };
        if !self.in_kernel {
            self.guessed.get_or_insert(guess);
            return;
        }
        // These have errors of their own, or do not depend on the guess.
        if matches!(value, Value::Host(_) | Value::Module(_) | Value::NativeModule(_)) {
            return;
        }
        module.guesses.borrow_mut().remove(&index);
        let name = module.symbols.borrow().get(index as usize).map(|name| self.name(*name));
        let Guess { span: condition, taken } = guess;
        let name = name.as_deref().unwrap_or_default();
        let message = format!("only Python can evaluate this condition, on which `{name}` depends: {taken}");
        let help = "call the kernel from Python, which runs its module, or remove the condition";
        let warning = Diagnostic::warning("host-condition", message).at(condition, "here");
        self.report(warning.with(span, format!("the kernel uses `{name}`")).help(help));
    }
}

fn mark(module: &Module, name: Symbol, guess: Guess) {
    if let Some(at) = module.index.borrow().get(&name) {
        module.guesses.borrow_mut().insert(*at, guess);
    }
}

/// The names that a statement modifies in place: `table[key] = value`, `items.append(value)`.
fn changed_names(stmt: &Stmt, out: &mut Vec<Symbol>) {
    fn root(expr: &Expr, out: &mut Vec<Symbol>) {
        match &expr.kind {
            ExprKind::Name(name, _) => out.push(*name),
            ExprKind::Attr(base, _) | ExprKind::Subscript(base, _) => root(base, out),
            _ => {}
        }
    }
    match &stmt.kind {
        StmtKind::Assign(targets, _) => targets.iter().for_each(|target| root(target, out)),
        StmtKind::AugAssign(target, ..) => root(target, out),
        StmtKind::Expr(Expr { kind: ExprKind::Call(callee, _), .. }) => {
            if let ExprKind::Attr(base, _) = &callee.kind {
                root(base, out);
            }
        }
        StmtKind::Def(..) | StmtKind::Class(..) => {}
        _ => stmt.blocks().into_iter().flatten().for_each(|stmt| changed_names(stmt, out)),
    }
}
