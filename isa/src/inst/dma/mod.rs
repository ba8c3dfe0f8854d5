//! Instructions of the DMA engines.

pub mod dma_compute;
pub mod dma_copy;
pub mod dma_transpose;
pub mod sendrecv;
pub mod sendrecv_compute;

use crate::arg::Arg;
use crate::inst::Inst;
use crate::machine::{Fault, Machine};
use crate::names::{Named, OobMode};
use crate::view::{Dim, Index, View};

/// The rows of a view (steps of its first dimension) as views without a vector index; `None` for a skipped row, whose index is out of
/// bounds. The index is read column by column, as the hardware does with `[P, N]` index tiles.
pub(crate) fn rows(machine: &mut dyn Machine, view: &View, oob: OobMode) -> Result<Vec<Option<View>>, Fault> {
    let outer = view.dims.first().copied().unwrap_or(Dim { stride: 0, count: 1 });
    let mut row = view.clone();
    if let Some(d) = row.dims.first_mut() {
        d.count = 1;
    }
    let Some((indirect, Index::Vector(index))) = view.indirect.as_deref().map(|i| (i, &i.index)) else {
        return Ok((0..outer.count)
            .map(|i| {
                let mut row = row.clone();
                let step = outer.stride * i64::from(i);
                if view.space.is_on_chip() {
                    row.partition = row.partition.saturating_add_signed(step as i32);
                } else {
                    row.offset += step;
                }
                Some(row)
            })
            .collect());
    };
    row.indirect = None;
    let index = machine.read_bits(index)?;
    let by_column = index.t();
    by_column
        .iter()
        .take(outer.count as usize)
        .map(|&bits| {
            // Indices are 32 bits; those that are negative as signed numbers are out of bounds either way.
            if bits >= indirect.bound {
                return match oob {
                    OobMode::Skip => Ok(None),
                    OobMode::Error => Err(Fault::new(
                        "index-out-of-bounds",
                        format!("index {} is out of bounds: the tensor has {} rows", bits as i32, indirect.bound),
                    )),
                };
            }
            let mut row = row.clone();
            row.offset += i64::from(bits) * indirect.stride;
            Ok(Some(row))
        })
        .collect()
}

/// Whether the instruction skips elements out of bounds (`oob_mode=skip`).
pub fn skips_out_of_bounds(inst: &Inst) -> bool {
    inst.args().iter().zip(inst.schema().operands).any(|(arg, operand)| {
        operand.name == "oob_mode" && matches!(arg, Arg::Name(name) if **name == *OobMode::Skip.name())
    })
}
