//! `kernel.with_schedule(edges)`: instructions that wait for others, both by their `name=`.
//!
//! Source: guide "How to Use the NKI Scheduling APIs". An edge `(later, earlier)` is what `later.depends_on(earlier)` says; the second
//! part may be a list. What has run is unchanged: instructions are issued in program order here, so an edge against it is refused.

use std::rc::Rc;

use super::Interp;
use super::error::{EvalResult, Raise};
use super::native::CallArgs;
use super::value::{Jit, Value};

/// Who waits, and for whom.
pub(crate) type Edge = (Rc<str>, Rc<str>);

impl Interp<'_> {
    /// The kernel with these edges added.
    pub(super) fn with_schedule(&mut self, jit: &Jit, args: CallArgs) -> EvalResult<Value> {
        let span = args.span;
        let [edges] = args.bind(self, "with_schedule", ["edges"], 1)?;
        let edges = edges.unwrap_or(Value::None);
        let mut schedule = jit.schedule.to_vec();
        let Some(pairs) = edges.sequence() else { return Err(refuse(&edges, span)) };
        for pair in pairs {
            let Some([Value::Str(later), earlier]) = pair.sequence().and_then(|p| <[Value; 2]>::try_from(p).ok())
            else {
                return Err(refuse(&pair, span));
            };
            let several = match &earlier {
                Value::Str(_) => vec![earlier],
                other => other.sequence().ok_or_else(|| refuse(other, span))?,
            };
            for one in several {
                let Value::Str(name) = one else { return Err(refuse(&one, span)) };
                schedule.push((later.clone(), name));
            }
        }
        Ok(Value::Jit(Rc::new(Jit { function: jit.function.clone(), schedule: schedule.into(), target: jit.target })))
    }
}

fn refuse(value: &Value, span: nki_diag::Span) -> Box<Raise> {
    let message = format!("with_schedule takes a list of pairs of instruction names, got {}", value.a_type());
    Raise::at("depends-on", message, span, "in this call")
        .help("kernel.with_schedule([(\"later\", \"earlier\"), (\"later\", [\"first\", \"second\"])])")
}
