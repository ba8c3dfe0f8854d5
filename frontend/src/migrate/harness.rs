//! Decorators, and the functions that run kernels.

use rustc_hash::FxHashSet;

use super::kinds::walk;
use super::tree::{expressions, statements};
use super::{Edit, Outcome, Pass, by_hand};
use crate::syntax::{Argument, Expr, ExprKind, FuncDef, Stmt, StmtKind, Symbol};

/// Functions that convert a function to a kernel.
const WRAPPERS: &[&str] = &["nki.jit", "nki.trace", "nki.baremetal", "nki.benchmark", "nki.profile"];

impl Pass<'_> {
    /// Functions of the file called by decorated functions: they are not kernels themselves.
    pub(super) fn called_by_kernels(&self, body: &[Stmt]) -> FxHashSet<Symbol> {
        let mut found = FxHashSet::default();
        statements(body, &mut |stmt| {
            let StmtKind::Def(def, _) = &stmt.kind else { return };
            statements(&def.body, &mut |inner| {
                for expr in expressions(inner) {
                    walk(expr, &mut |e| {
                        if let ExprKind::Call(callee, _) = &e.kind
                            && let ExprKind::Name(name, _) = callee.kind
                            && !def.decorators.is_empty()
                        {
                            found.insert(name);
                        }
                    });
                }
            });
        });
        found
    }

    /// The function of a decorator, and whether it was called with options.
    pub(super) fn wrapper(&self, decorator: &Expr) -> Option<String> {
        let of = match &decorator.kind {
            ExprKind::Call(callee, _) => callee,
            _ => decorator,
        };
        self.kinds.path(of)
    }

    /// Kernels have `@nki.jit`, functions called by kernels have none.
    pub(super) fn decorators(&mut self, def: &FuncDef, name: &Expr) {
        let is_helper = matches!(&name.kind, ExprKind::Name(n, _) if self.called.contains(n));
        let mut has_jit = false;
        for decorator in &def.decorators {
            let Some(path) = self.wrapper(decorator) else { continue };
            let is_wrapper = WRAPPERS.contains(&path.as_str());
            if !is_wrapper && !path.starts_with("nki.compiler.") {
                continue;
            }
            let plain = path == "nki.jit" && !matches!(decorator.kind, ExprKind::Call(..));
            if is_wrapper && !is_helper && !has_jit {
                has_jit = true;
                if !plain {
                    let nki = self.module("nki", "nki");
                    let is_name = matches!(decorator.kind, ExprKind::Name(..));
                    let text = if is_name && path == "nki.jit" {
                        self.kinds.source(decorator.span).to_owned()
                    } else {
                        format!("{nki}.jit")
                    };
                    self.replaced(decorator.span, text);
                }
                continue;
            }
            let line = self.text[..decorator.span.start as usize].rfind('\n').map_or(0, |at| at + 1);
            let end = self.text[decorator.span.end as usize..]
                .find('\n')
                .map_or(self.text.len(), |at| decorator.span.end as usize + at + 1);
            let why = if is_wrapper { "nothing: kernels call the function" } else { "nothing: the compiler decides" };
            self.changes.push(super::Change {
                span: decorator.span.start as usize..decorator.span.end as usize,
                old: format!("@{}", self.kinds.source(decorator.span)),
                new: why.to_owned(),
                rewritten: true,
            });
            self.edits.push(Edit { span: line..end, text: String::new() });
        }
    }

    /// A call that runs or creates a kernel; `None` for other calls.
    pub(super) fn harness(&mut self, call: &Expr) -> Outcome<Option<String>> {
        let ExprKind::Call(callee, args) = &call.kind else { return Ok(None) };
        // `nki.baremetal(kernel, ...)(a, b)`
        if let ExprKind::Call(inner, _) = &callee.kind
            && let Some(path) = self.kinds.path(inner)
            && WRAPPERS.contains(&path.as_str())
            && path != "nki.jit"
        {
            let kernel = self.kernel(callee)?;
            let Some(kernel) = kernel else {
                // `nki.baremetal(options)(kernel)`
                return match &args[..] {
                    [Argument::Positional(kernel)] if path != "nki.benchmark" && path != "nki.profile" => {
                        self.expr(kernel).map(Some)
                    }
                    _ => Err(self.no_benchmark(call, &path)),
                };
            };
            let rest = &self.text[callee.span.end as usize..call.span.end as usize];
            return Ok(Some(format!("{kernel}{rest}")));
        }
        if let ExprKind::Subscript(kernel, _) = &callee.kind
            && matches!(kernel.kind, ExprKind::Name(name, _) if self.kernels.contains(&name))
        {
            let instead = "a loop over the programs in the kernel; kernel[lnc](...) launches on physical cores";
            return Err(by_hand(callee.span, "a launch grid", instead));
        }
        let Some(path) = self.kinds.path(callee) else {
            return Ok(None);
        };
        match path.as_str() {
            "nki.simulate_kernel" => {
                let (_, parts) = self.arguments(call)?;
                let Some(kernel) = parts.given.first() else { return Err(self.no_benchmark(call, &path)) };
                let kernel_text = self.expr(kernel.value)?;
                let rest: Vec<String> = parts.given[1..]
                    .iter()
                    .map(|g| {
                        let text = self.kinds.source(g.value.span);
                        g.keyword.as_ref().map_or(text.to_owned(), |k| format!("{k}={text}"))
                    })
                    .collect();
                let nki = self.module("nki", "nki");
                Ok(Some(format!("{nki}.simulate({kernel_text})({})", rest.join(", "))))
            }
            "nki.baremetal" | "nki.trace" => match self.kernel(call)? {
                Some(kernel) => Ok(Some(kernel)),
                None => Err(self.no_benchmark(call, &path)),
            },
            "nki.benchmark" | "nki.profile" => Err(self.no_benchmark(call, &path)),
            "nki.jit"
                if matches!(
                    &args[..],
                    [Argument::Keyword(..), ..] | [Argument::Positional(_), Argument::Keyword(..), ..]
                ) =>
            {
                match self.kernel(call)? {
                    Some(kernel) => Ok(Some(format!("{}({kernel})", self.kinds.source(callee.span)))),
                    None => Ok(Some(self.kinds.source(callee.span).to_owned())),
                }
            }
            _ => Ok(None),
        }
    }

    /// The kernel passed to a wrapper.
    fn kernel(&mut self, call: &Expr) -> Outcome<Option<String>> {
        let (_, parts) = self.arguments(call)?;
        let first = parts.given.iter().find(|g| g.keyword.is_none() || g.keyword.as_deref() == Some("kernel"));
        first.map(|g| self.expr(g.value)).transpose()
    }

    fn no_benchmark(&self, call: &Expr, path: &str) -> super::ByHand {
        let instead = match path {
            "nki.benchmark" => "run the kernel: its JSON report has the latency",
            "nki.profile" => "run the kernel: its trace has the timeline",
            _ => "call the kernel",
        };
        by_hand(call.span, path, instead)
    }
}
