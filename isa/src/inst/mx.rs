//! OCP Microscaling blocks in the layout of the engines, for the instructions that read and write them.
//!
//! A block is 32 numbers with one scale: 8 partitions of one packed element (four numbers) each. `P` partitions of data therefore have `P / 8`
//! rows of scales, in the same quadrant of 32 partitions as their data: four rows per quadrant, starting at its
//! partition 0, 4, 8 or 12. Sources: `quantize_mx`; trainium3_arch, "Quad-MXFP8/MXFP4 Matmul Performance"; the deep dive
//! mxfp-matmul, "Scale Tensor" and "Packing Scale Values".

use ndarray::{Array2, ArrayView2, Axis, Slice};

use crate::arch::QUADRANT;
use crate::dtype::{DType, mx_scale_bits, mx_scale_value};
use crate::inst::check::Named;
use crate::machine::{Context, Fault, Machine};
use crate::tensor::Tensor;
use crate::view::{Dim, Index, View};
use crate::violation::Violation;

/// Partitions of a block.
pub(crate) const BLOCK: usize = 8;
/// Rows of scales in a quadrant.
const ROWS: u32 = 4;
/// Possible start partitions of the rows in a quadrant.
const STARTS: [u32; 4] = [0, 4, 8, 12];

/// The data has 32, 64, 96 or 128 partitions.
///
/// # Errors
/// `partition-size`.
pub(crate) fn check_partitions(name: &'static str, view: &View) -> Result<(), Violation> {
    let p = view.partitions();
    if p.is_multiple_of(QUADRANT) && p <= 128 {
        return Ok(());
    }
    Err(Violation::new(
        "partition-size",
        name,
        format!("`{name}` has {p} partitions, but blocks of MX data come in 32, 64, 96 or 128"),
    )
    .help("pad the tile with zeros to a multiple of 32 partitions"))
}

/// The first partition, if known before tensors have addresses: a tensor of more than 64 partitions starts at 0.
fn start(view: &View, tensor: &Tensor) -> Option<u32> {
    let base = tensor.address.map(|a| a.partition);
    let fills = tensor.shape.first().is_some_and(|&p| p > 64);
    base.or(fills.then_some(0)).map(|p| p + view.partition)
}

/// `scale` holds the scales of `data` (in packed elements, `columns` of them in each partition).
///
/// # Errors
/// `shape-mismatch`, `partition-stride`, `partition-start`, `partition-size`.
pub(crate) fn check_scale(
    data: Named<'_>,
    columns: usize,
    scale: Named<'_>,
    context: &Context<'_>,
) -> Result<(), Violation> {
    let ((data_name, data), (name, scale)) = (data, scale);
    if scale.free_elements() != columns {
        return Err(Violation::new(
            "shape-mismatch",
            name,
            format!(
                "`{name}` has {:?} = {} scales per partition, `{data_name}` {:?} needs {columns}: one for each packed element",
                scale.shape(),
                scale.free_elements(),
                data.shape()
            ),
        )
        .help("take a slice of the scale tile that is as wide as the data"));
    }
    if let Some(&Dim { stride, count }) = scale.dims.first()
        && count > 1
        && stride != 1
    {
        return Err(Violation::new(
            "partition-stride",
            name,
            format!("`{name}` has a partition stride of {stride}; engines access neighbouring partitions"),
        ));
    }
    let tensor = |v: &View| &context.tensors[v.tensor.0 as usize];
    // A tensor without an address starts at a quadrant.
    let first = tensor(scale).start_partition(scale);
    if !STARTS.contains(&(first % QUADRANT)) {
        return Err(Violation::new(
            "partition-start",
            name,
            format!(
                "`{name}` starts at partition {first}, which is {} of its quadrant; scales start at 0, 4, 8 or 12 of it",
                first % QUADRANT
            ),
        ));
    }
    let needed = data.partitions() - QUADRANT + ROWS;
    if scale.partitions() < needed {
        return Err(Violation::new(
            "partition-size",
            name,
            format!(
                "`{name}` spans {} partitions, the scales of {} partitions of data span {needed}: four in each quadrant of 32",
                scale.partitions(),
                data.partitions()
            ),
        )
        .help("allocate the scale tile with as many partitions as the data"));
    }
    if let (Some(a), Some(b)) = (start(data, tensor(data)), start(scale, tensor(scale)))
        && a / QUADRANT != b / QUADRANT
    {
        return Err(Violation::new(
            "partition-start",
            name,
            format!(
                "`{name}` starts at partition {b}, `{data_name}` at {a}: scales must be in the quadrant of their data"
            ),
        ));
    }
    Ok(())
}

/// The scales of `data`, if `scale` names as many partitions as there are rows of scales: the deep dive mxfp-matmul gives them the shape
/// `[P / 8, F / 4]`, and a kernel of nki-library (attention_mxfp8_tkg) passes such a slice of a tile that has them in all quadrants.
pub(crate) fn completed(scale: View, data: &View) -> View {
    let rows = data.partitions() / BLOCK as u32;
    let is_short = scale.partitions() == rows && rows > ROWS && scale.indirect.is_none();
    if is_short { scale.rows(0, data.partitions() - QUADRANT + ROWS) } else { scale }
}

/// The partitions of a scale tile that hold scales, counted from its first.
pub(crate) fn scale_rows(partitions: u32) -> Vec<u32> {
    (0..partitions / QUADRANT).flat_map(|q| q * QUADRANT..q * QUADRANT + ROWS).collect()
}

/// The rows of scales of each data quadrant, as views.
fn quadrants(scale: &View, partitions: u32) -> impl Iterator<Item = View> {
    (0..partitions / QUADRANT).map(|q| {
        let mut view = scale.rows(q * QUADRANT, ROWS);
        // The quadrant's own offsets.
        if let Some(Index::Columns(index)) = view.indirect.as_deref_mut().map(|i| &mut i.index) {
            index.partition += q * QUADRANT;
            index.dims[0].count = QUADRANT;
        }
        view
    })
}

/// The rows of quadrant `q` in an array of all rows.
fn rows_of(q: usize) -> Slice {
    let rows = ROWS as usize;
    (q * rows..(q + 1) * rows).into()
}

/// The scales of `partitions` partitions of data: one row per 8 partitions.
///
/// # Errors
/// As [`Machine::read_tile`].
pub(crate) fn read_scales(machine: &mut dyn Machine, scale: &View, partitions: u32) -> Result<Array2<f32>, Fault> {
    let mut out = Array2::zeros((partitions as usize / BLOCK, scale.free_elements()));
    for (q, view) in quadrants(scale, partitions).enumerate() {
        let rows = if view.dtype == DType::F8E8M0 {
            machine.read_tile(&view)?
        } else {
            machine.read_bits(&view)?.mapv(|code| mx_scale_value(code as u8))
        };
        out.slice_axis_mut(Axis(0), rows_of(q)).assign(&rows);
    }
    Ok(out)
}

/// Writes scales, powers of two, in the layout of [`read_scales`]. The other partitions of the quadrants are unchanged.
///
/// # Errors
/// As [`Machine::write_tile`].
pub(crate) fn write_scales(
    machine: &mut dyn Machine,
    scale: &View,
    partitions: u32,
    values: ArrayView2<'_, f32>,
) -> Result<(), Fault> {
    for (q, view) in quadrants(scale, partitions).enumerate() {
        let rows = values.slice_axis(Axis(0), rows_of(q));
        if view.dtype == DType::F8E8M0 {
            machine.write_tile(&view, rows)?;
        } else {
            machine.write_bits(&view, rows.mapv(|x| u32::from(mx_scale_bits(x))).view())?;
        }
    }
    Ok(())
}
