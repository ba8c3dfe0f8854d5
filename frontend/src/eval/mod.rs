//! The evaluator of the NKI meta-program: what Python does at specialisation time.
//!
//! A tree walker over [`crate::syntax`]. Names are resolved to slots beforehand ([`scope`]); values are cheap to clone
//! ([`value`]); what touches tensors, registers and instructions goes through the hooks of [`crate::api`].

pub(crate) mod error;
pub(crate) mod native;
pub(crate) mod value;

use std::rc::Rc;
use std::sync::Arc;

use nki_diag::{Diagnostic, SourceMap, Span};
use nki_isa::Loc;
use nki_isa::program::{Step, Trail, TrailId};

use self::error::EvalResult;
use self::native::CallArgs;
use self::value::Value;
use crate::api;
use crate::syntax::{Interner, Symbol};
use crate::{Loader, Options};

/// The state of one evaluation.
pub(crate) struct Interp<'a> {
    /// Interned names.
    pub(crate) names: Interner,
    /// Files read so far.
    pub(crate) sources: SourceMap,
    /// Findings so far.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Lines printed at specialisation.
    pub(crate) prints: Vec<String>,
    /// What the caller asked for.
    pub(crate) options: &'a Options,
    /// Reads files.
    pub(crate) loader: &'a dyn Loader,
    /// The state of the API: the program being built.
    pub(crate) api: api::State,
    /// A kernel is being specialised (as opposed to module-level code).
    pub(crate) in_kernel: bool,
    /// Iterations and calls around the current place; the id is made when first asked for.
    steps: Vec<(PendingStep, Option<TrailId>)>,
    /// All trails made; the first is the root.
    trails: Vec<Trail>,
}

/// A step of a trail whose strings are not made yet.
pub(crate) enum PendingStep {
    /// One iteration of an unrolled loop.
    Iteration {
        /// The loop variable.
        variable: Symbol,
        /// Its value, or the number of the iteration.
        value: i64,
        /// The loop.
        span: Span,
    },
    /// An inlined call.
    Call {
        /// The callee.
        function: Symbol,
        /// The call.
        span: Span,
    },
}

impl<'a> Interp<'a> {
    /// The text of a name.
    pub(crate) fn name(&self, symbol: Symbol) -> Rc<str> {
        self.names.name(symbol).clone()
    }

    /// The symbol of a name.
    pub(crate) fn sym(&mut self, name: &str) -> Symbol {
        self.names.intern(name)
    }

    /// A span as the program's location.
    pub(crate) fn loc(&self, span: Span) -> Loc {
        let (line, column) = self.sources.line_col(span);
        Loc { file: span.file.0, line, column, start: span.start, end: span.end }
    }

    /// The trail of the current place: which iterations and inlined calls are around it.
    pub(crate) fn trail(&mut self) -> TrailId {
        let known = self.steps.iter().rposition(|s| s.1.is_some());
        let mut parent = known.and_then(|i| self.steps[i].1).unwrap_or(TrailId::ROOT);
        for i in known.map_or(0, |i| i + 1)..self.steps.len() {
            let step = match self.steps[i].0 {
                PendingStep::Iteration { variable, value, span } => {
                    Step::Iteration { variable: Arc::from(&*self.name(variable)), value, loc: self.loc(span) }
                }
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

    /// All trails, for the program; the first is the root.
    pub(crate) fn take_trails(&mut self) -> Vec<Trail> {
        std::mem::replace(&mut self.trails, vec![Trail { parent: None, step: Step::Root }])
    }

    /// Reports a finding that does not stop evaluation.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Calls a value.
    pub(crate) fn call(&mut self, callee: &Value, args: CallArgs) -> EvalResult<Value> {
        let _ = (callee, args);
        Ok(Value::None)
    }

    /// `repr(value)`.
    pub(crate) fn repr(&mut self, value: &Value) -> EvalResult<String> {
        Ok(format!("{value:?}"))
    }

    /// Whether the value counts as true.
    pub(crate) fn truth(&mut self, value: &Value, span: Span) -> EvalResult<bool> {
        let _ = span;
        Ok(!value.is_none())
    }

    /// The items of any iterable.
    pub(crate) fn iterate(&mut self, value: &Value, span: Span) -> EvalResult<Vec<Value>> {
        let _ = span;
        Ok(value.sequence().unwrap_or_default())
    }
}
