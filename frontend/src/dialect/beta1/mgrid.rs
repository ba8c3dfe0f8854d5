//! The constructors of index tiles: `nl.mgrid` and `nl.arange`.

use nki_diag::Span;

use super::affine::{Axis, IndexTile, MAX_AXES};
use crate::eval::Interp;
use crate::eval::convert::int;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

/// `nl.mgrid`: `i, j = nl.mgrid[0:128, 0:512]`.
#[derive(Debug)]
pub(super) struct Mgrid;

impl Object for Mgrid {
    fn type_name(&self) -> &'static str {
        "nl.mgrid"
    }

    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        let keys = index.sequence().unwrap_or_else(|| vec![index.clone()]);
        let mut lines = Vec::new();
        for key in &keys {
            let Value::Slice(s) = key else {
                return Err(
                    Raise::at("bad-index", "nl.mgrid takes slices", span, "here").help("i, j = nl.mgrid[0:128, 0:512]")
                );
            };
            let bound = |v: &Value, default: i64| if v.is_none() { Ok(default) } else { int(v, "nl.mgrid", span) };
            lines.push(line(
                bound(&s.start, 0)?,
                int(&s.stop, "nl.mgrid: the end of a slice", span)?,
                bound(&s.step, 1)?,
                "nl.mgrid",
                span,
            )?);
        }
        if lines.len() > MAX_AXES {
            return Err(Raise::at("bad-index", format!("nl.mgrid of {} dimensions", lines.len()), span, "here"));
        }
        let counts: Vec<u32> = lines.iter().map(|l| l.axes[0].count).collect();
        let tile = |at: usize| {
            let axis = |i: usize| if i == at { lines[i].axes[0] } else { Axis { count: counts[i], coefficient: 0 } };
            IndexTile { constant: lines[at].constant, axes: (0..counts.len()).map(axis).collect() }
        };
        Ok(Value::object(MgridTiles((0..counts.len()).map(tile).collect())))
    }
}

/// The index tiles of `nl.mgrid[...]`, one for each slice.
#[derive(Debug)]
pub(super) struct MgridTiles(pub(super) Vec<IndexTile>);

/// The names of the tiles: the partition axis, then the free ones.
const AXIS_NAMES: &[&str] = &["p", "x", "y", "z", "w"];

impl Object for MgridTiles {
    fn type_name(&self) -> &'static str {
        "nl.mgrid"
    }

    fn attributes(&self) -> Vec<&'static str> {
        AXIS_NAMES.iter().take(self.0.len()).copied().collect()
    }

    fn attribute(&self, _interp: &Interp<'_>, name: &str) -> Option<Value> {
        let at = AXIS_NAMES.iter().position(|n| *n == name)?;
        self.0.get(at).cloned().map(Value::object)
    }

    fn item(&self, _interp: &mut Interp<'_>, _this: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        let at = int(index, "an index of nl.mgrid", span)?;
        let found = usize::try_from(at).ok().and_then(|at| self.0.get(at));
        found.cloned().map(Value::object).ok_or_else(|| {
            Raise::at("bad-index", format!("index {at} of nl.mgrid of {} dimensions", self.0.len()), span, "here")
        })
    }

    fn len(&self, _span: Span) -> EvalResult<i64> {
        Ok(self.0.len() as i64)
    }

    fn iterate(&self, _span: Span) -> EvalResult<Vec<Value>> {
        Ok(self.0.iter().cloned().map(Value::object).collect())
    }
}

fn line(start: i64, stop: i64, step: i64, what: &str, span: Span) -> EvalResult<IndexTile> {
    let length = if step == 0 { 0 } else { (stop.saturating_sub(start) as f64 / step as f64).ceil() as i64 };
    let count = u32::try_from(length).ok().filter(|&n| n > 0);
    let Some(count) = count else {
        let message = format!("{what} from {start} to {stop} in steps of {step} has no elements");
        return Err(Raise::at("empty-slice", message, span, "here"));
    };
    Ok(IndexTile::line(start, count, step))
}

/// `nl.arange(stop)`, `nl.arange(start, stop)`, `nl.arange(start, stop, step)`
pub(super) fn arange(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    args.positional_only(interp, "nl.arange", 1, 3)?;
    let numbers = args.positional.iter().map(|v| int(v, "nl.arange", span)).collect::<EvalResult<Vec<_>>>()?;
    let (start, stop, step) = match numbers[..] {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] => (start, stop, step),
        _ => (0, 0, 1),
    };
    Ok(Value::object(line(start, stop, step, "nl.arange", span)?))
}
