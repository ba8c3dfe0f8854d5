//! `nl.matmul`, and the masks of matmuls and of their operands.

use nki_diag::{Diagnostic, Span};

use super::access::Place;
use super::arithmetic::widened;
use super::calls::{bind_known, lower, need, tile_of};
use super::clips::{counts, narrowed, restrictions};
use super::mask::{Mask, clip_of};
use crate::build::lower::{Lower, Operand};
use crate::build::tensor::Tensor;
use crate::dialect::common::clip::Clip;
use crate::dialect::common::state::state;
use crate::dialect::common::tensor::option;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

/// `x[mask]`: an operand of a matmul, restricted by a mask. The product has all rows and columns; only the remaining ones are computed.
#[derive(Debug, Clone)]
pub(super) struct MaskedOperand {
    pub(super) place: Place,
    pub(super) clip: Clip,
}

impl MaskedOperand {
    /// `base[mask]`; `None` if the index is not a mask.
    pub(super) fn of(base: &Value, index: &Value, span: Span) -> EvalResult<Option<Value>> {
        if index.downcast::<Mask>().is_none() {
            return Ok(None);
        }
        let (Some(place), Some(clip)) = (Place::of(base, "an index", span)?, clip_of(Some(index), span)?) else {
            return Ok(None);
        };
        Ok(Some(Value::object(MaskedOperand { place, clip })))
    }

    /// An operand of a matmul with its mask.
    pub(super) fn parts(value: &Value, what: &str, span: Span) -> EvalResult<(Place, Option<Clip>)> {
        match value.downcast::<MaskedOperand>() {
            Some(masked) => Ok((masked.place.clone(), Some(masked.clip.clone()))),
            None => Ok((Place::need(value, what, span)?, None)),
        }
    }
}

impl Object for MaskedOperand {
    fn type_name(&self) -> &'static str {
        "masked operand"
    }

    fn is_device_data(&self) -> bool {
        true
    }
}

/// The parts of a matmul left by masks: of its first operand, its second and its product.
pub(super) struct MatmulClips {
    pub(super) first: Clip,
    pub(super) second: Clip,
    pub(super) product: Clip,
    /// The text of a finding if `mask=` is ambiguous.
    pub(super) ambiguous: Option<String>,
}

/// The extents of a matmul and the remaining part of each: of the rows of the product, its columns, and the contraction.
struct MatmulParts {
    rows: (u32, u32),
    columns: (u32, u32),
    contracted: (u32, u32),
}

impl MatmulClips {
    /// The parts left by the operands' own masks and by `mask=`; `rows` is the axis of the first operand for the rows of the product
    /// `whole`. If one operand omits a part of the contraction, so does the other.
    pub(super) fn new(
        first: &(Place, Option<Clip>),
        second: &(Place, Option<Clip>),
        rows: usize,
        whole: &Tensor,
        mask: Option<&Clip>,
        span: Span,
    ) -> EvalResult<Self> {
        let (of_rows, of_columns) = (whole.view.partitions(), whole.view.free_elements() as u32);
        let inner = second.0.outline(span)?.view.partitions();
        let mut first_frame = [inner; 2];
        first_frame[rows] = of_rows;
        let second_frame = [inner, of_columns];
        let outer = own_parts(first, first_frame, span)?;
        let own = own_parts(second, second_frame, span)?;
        let mut parts = MatmulParts { rows: outer[rows], columns: own[1], contracted: common(outer[1 - rows], own[0]) };
        let mut ambiguous = None;
        if let Some(mask) = mask {
            let needs_mask = [first, second].map(|(place, _)| place.leaves_tensor_along(1));
            let operands = MaskedAxes { first: first_frame, second: second_frame, rows, needs_mask };
            ambiguous = parts.restrict(mask, &operands, span)?;
        }
        if [parts.rows, parts.columns, parts.contracted].iter().any(|(from, to)| from >= to) {
            (parts.rows, parts.columns) = ((0, 0), (0, 0));
        }
        let mut kept = [parts.contracted; 2];
        kept[rows] = parts.rows;
        let clip = |frame: [u32; 2], kept: [(u32, u32); 2]| Clip {
            frame: frame.into_iter().collect(),
            kept: kept.into_iter().collect(),
        };
        Ok(MatmulClips {
            first: clip(first_frame, kept),
            second: clip(second_frame, [parts.contracted, parts.columns]),
            product: clip([of_rows, of_columns], [parts.rows, parts.columns]),
            ambiguous,
        })
    }

    /// Reports that `mask=` is ambiguous.
    pub(super) fn report(&self, interp: &mut Interp<'_>, span: Span) {
        if let Some(message) = &self.ambiguous {
            let finding = Diagnostic::warning("matmul-mask", message.clone())
                .at(span, "in this call")
                .help("write x[i < n] for the intended operand, where i is an index tile: its partitions are the contraction, its columns are rows or columns of the product");
            interp.report_once(finding, span);
        }
    }
}

/// The candidate axes of `mask=`: axes of the operands, the first of which has the rows of the product along axis `rows`.
struct MaskedAxes {
    first: [u32; 2],
    second: [u32; 2],
    rows: usize,
    /// For either operand, whether it indexes beyond its tensor along its second axis, so that it needs a mask.
    needs_mask: [bool; 2],
}

impl MatmulParts {
    /// Applies `mask=`, whose axes are those of the operands: the first is their partitions, the second the free axis of the same length,
    /// if there are two, that of the operand that needs a mask. Returns an alternative meaning of the mask, if any.
    fn restrict(&mut self, mask: &Clip, axes: &MaskedAxes, span: Span) -> EvalResult<Option<String>> {
        if mask.is_empty() {
            self.contracted = (0, 0);
            return Ok(None);
        }
        let mut ambiguous = None;
        let last = mask.frame.len().saturating_sub(1);
        for (axis, (&n, &part)) in mask.frame.iter().zip(&mask.kept).enumerate() {
            if part == (0, n) {
                continue;
            }
            let applied = match axis {
                0 => self.restrict_first_axis(axes, n, part),
                _ if axis == last => self.restrict_last_axis(axes, n, part),
                _ => None,
            };
            let Some(doubt) = applied else {
                let ([a, b], [c, d]) = (axes.first, axes.second);
                let message = format!(
                    "mask= restricts an axis of length {n}, but the operands of the matmul have shapes ({a}, {b}) and ({c}, {d})"
                );
                return Err(Raise::at("bad-mask", message, span, "here")
                    .help("mask the operands separately, x[i_p < n], or slice them"));
            };
            ambiguous = ambiguous.or(doubt);
        }
        Ok(ambiguous)
    }

    /// Applies the mask along its first axis; `None` if the matmul has no such axis, otherwise an alternative meaning, if any.
    fn restrict_first_axis(&mut self, axes: &MaskedAxes, n: u32, part: (u32, u32)) -> Option<Option<String>> {
        let mut doubt = None;
        if axes.first[0] == n && axes.rows == 0 {
            self.rows = common(self.rows, part);
        } else if axes.second[0] == n {
            self.contracted = common(self.contracted, part);
            doubt = (axes.first[axes.rows] == n).then(|| {
                format!("mask= restricts the first axis of a matmul, of length {n}: the contraction, which is the partitions of both operands, not the rows of the product")
            });
        } else if axes.first[axes.rows] == n {
            self.rows = common(self.rows, part);
        } else {
            return None;
        }
        Some(doubt)
    }

    /// The same for the last axis.
    fn restrict_last_axis(&mut self, axes: &MaskedAxes, n: u32, part: (u32, u32)) -> Option<Option<String>> {
        let fits = [axes.first[1] == n, axes.second[1] == n];
        let [of_first, of_second] = match fits {
            [true, true] if axes.needs_mask != [false, false] => axes.needs_mask,
            [true, true] => [false, true],
            fits => fits,
        };
        let of_rows = axes.rows == 1;
        if of_first {
            let own = if of_rows { &mut self.rows } else { &mut self.contracted };
            *own = common(*own, part);
        }
        if of_second {
            self.columns = common(self.columns, part);
        }
        let doubt = (fits == [true, true] && axes.needs_mask == [false, false]).then(|| {
            let other = if of_rows { "its rows" } else { "the contraction" };
            format!("mask= restricts the last axis of a matmul, of length {n}: the columns of the product, not {other}")
        });
        (of_first || of_second).then_some(doubt)
    }
}

fn common(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    (a.0.max(b.0), a.1.min(b.1))
}

/// The parts of both axes of a matmul's operand left by its own mask.
fn own_parts((place, clip): &(Place, Option<Clip>), frame: [u32; 2], span: Span) -> EvalResult<[(u32, u32); 2]> {
    let mut kept = frame.map(|n| (0, n));
    if let Some(clip) = clip {
        let outline = place.outline(span)?;
        if outline.ndim() != 2 {
            let message = format!(
                "a mask cannot index `{}` of shape {}, which does not have two dimensions",
                outline.storage.name,
                outline.shape_text()
            );
            return Err(Raise::at("bad-mask", message, span, "here").help("slice the operand instead"));
        }
        for (axis, &part) in restrictions(clip, &counts(&outline), &outline, span)? {
            kept[axis] = part;
        }
    }
    Ok(kept)
}

/// `nl.matmul(x, y, transpose_x=False, mask=None)`
pub(super) fn matmul(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nl.matmul";
    let [x, y, turned, mask, _] = bind_known(interp, args, what, ["x", "y", "transpose_x", "mask", "name"], 2)?;
    let turned = option(turned, "nl.matmul: transpose_x", false, span)?;
    let (x, y) = (MaskedOperand::parts(&need(x), what, span)?, MaskedOperand::parts(&need(y), what, span)?);
    let clip = clip_of(mask.as_ref(), span)?;
    let run = |l: &mut Lower<'_>, o: &[Operand]| {
        let (x, y) = (l.in_sbuf(tile_of(&o[0])?)?, l.in_sbuf(tile_of(&o[1])?)?);
        let (x, y) = widened(l, &x, &y)?;
        l.matmul(&x, &y, turned)
    };
    if clip.is_none() && x.1.is_none() && y.1.is_none() {
        let operands = [Operand::Tile(x.0.tensor(None, span)?), Operand::Tile(y.0.tensor(None, span)?)];
        return lower(interp, what, span, &[], |l| run(l, &operands)).map(Value::object);
    }
    let all = [Operand::Tile(x.0.outline(span)?), Operand::Tile(y.0.outline(span)?)];
    let whole = lower(interp, what, span, &[], |l| l.rehearse(&all, &run))?;
    let clips = MatmulClips::new(&x, &y, usize::from(turned), &whole, clip.as_ref(), span)?;
    clips.report(interp, span);
    let product = clips.product;
    if !product.is_empty() {
        let parts = [
            Operand::Tile(x.0.tensor(Some(&clips.first), span)?),
            Operand::Tile(y.0.tensor(Some(&clips.second), span)?),
        ];
        let to = narrowed(&whole, &product, span)?;
        lower(interp, what, span, &[&whole.storage], |l| {
            let made = run(l, &parts)?;
            if l.builder.redirect(&made, &to.view)? { Ok(()) } else { l.assign(&to, &made) }
        })?;
    }
    state(interp).note_mask(whole.storage.id, vec![product]);
    Ok(Value::object(whole))
}
