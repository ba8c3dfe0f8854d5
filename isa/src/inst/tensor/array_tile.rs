//! Tiles of the systolic array, and the shapes of its operands, shared by `nc_matmul` and `nc_matmul_mx`.

use crate::arch::Arch;
use crate::arg::Ints;
use crate::inst::indirection::columns;
use crate::view::View;
use crate::violation::Violation;

/// Row and column, as given.
type Pair = [i64; 2];

/// `(position, size)` of the array tile, as (row, column) pairs.
pub(super) fn tile(position: &Ints, size: &Ints) -> ((u32, u32), (u32, u32)) {
    let pair = |list: &Ints, default| match list.0[..] {
        [a, b] => (a as u32, b as u32),
        _ => default,
    };
    (pair(position, (0, 0)), pair(size, (128, 128)))
}

/// Position and size as given: either both are pairs, or both are missing.
pub(super) fn given(position: &Ints, size: &Ints) -> Result<Option<(Pair, Pair)>, Violation> {
    match (&position.0[..], &size.0[..]) {
        ([], []) => Ok(None),
        (&[row, column], &[rows, columns]) => Ok(Some(([row, column], [rows, columns]))),
        (position, size) => {
            let (name, other, n) = if position.len() == 2 {
                ("tile_size", "tile_position", size.len())
            } else {
                ("tile_position", "tile_size", position.len())
            };
            Err(Violation::new(
                "operand-value",
                name,
                format!("`{name}` has {n} values, but must be (row, column) when `{other}` is given"),
            )
            .help("set both `tile_position` and `tile_size`, or neither"))
        }
    }
}

/// The size of the array's tile that holds `extent` rows or columns: the array divides into tiles of 32 (from trn2 on), 64 or 128.
/// The manual lists these sizes and does not say that `tile_size` must be one of them; published kernels give others (16 rows).
pub(super) fn of_array(extent: u32, arch: &Arch) -> u32 {
    let fits = |size: &u32| *size >= extent.max(arch.tensor_tile_min);
    [32, 64, 128].into_iter().find(fits).unwrap_or(128)
}

/// The extent is at most 128, and the start is a multiple of the array's tile that holds it.
pub(super) fn check_axis(axis: &str, start: i64, extent: i64, arch: &Arch) -> Result<(), Violation> {
    if !(1..=128).contains(&extent) {
        return Err(Violation::new(
            "operand-value",
            "tile_size",
            format!("the {axis} size is {extent}, but must be 1 to 128"),
        ));
    }
    let tile = i64::from(of_array(extent as u32, arch));
    if start < 0 || start % tile != 0 || start + tile > 128 {
        return Err(Violation::new(
            "operand-value",
            "tile_position",
            format!(
                "start {axis} {start} is not a multiple of {tile} within the array's 128: {extent} {axis}s take a tile of {tile} on {}",
                arch.target
            ),
        ));
    }
    Ok(())
}

/// Tensor indirection and array tiles exclude each other.
pub(super) fn check_indirect<const N: usize>(
    position: (u32, u32),
    views: [(&'static str, &View); N],
) -> Result<(), Violation> {
    match views.iter().find(|(_, v)| columns(v).is_some()) {
        Some((name, _)) if position != (0, 0) => Err(Violation::new(
            "operand-value",
            "tile_position",
            format!("{position:?} with an indirect `{name}`, but must be (0, 0)"),
        )),
        _ => Ok(()),
    }
}

/// The contraction runs over the partitions of both operands, within the tile's rows.
pub(super) fn check_contraction(stationary: &View, moving: &View, rows: u32) -> Result<(), Violation> {
    let (k, k_moving) = (stationary.partitions(), moving.partitions());
    if k != k_moving {
        return Err(Violation::new(
            "partition-mismatch",
            "moving",
            format!("`moving` has {k_moving} partitions, `stationary` has {k}: the contraction runs over both"),
        )
        .help("`stationary` is [K, M] and `moving` [K, N], with K on the partitions: transpose the one that has K in a row (nisa.nc_transpose)"));
    }
    if k > rows {
        return Err(Violation::new(
            "tile-size",
            "stationary",
            format!("`stationary` has {k} partitions, but the row tile has {rows}"),
        ));
    }
    Ok(())
}

/// `dst` has `m` partitions, one per column of `stationary`, and `n` elements, one per column of `moving`.
pub(super) fn check_result(
    dst: &View,
    stationary: &View,
    moving: &View,
    (m, n): (usize, usize),
) -> Result<(), Violation> {
    let (dst_m, dst_n) = (dst.partitions() as usize, dst.free_elements());
    if (dst_m, dst_n) == (m, n) {
        return Ok(());
    }
    Err(Violation::new(
        "shape-mismatch",
        "dst",
        format!(
            "`dst` is {dst_m} partitions x {dst_n} elements, but `stationary` {:?} and `moving` {:?} give {m} x {n}",
            stationary.shape(),
            moving.shape()
        ),
    ))
}

/// Before trn3 one matmul writes to a single PSUM bank (NKI architecture guide, "Tile Size" of the tensor engine).
pub(super) fn check_bank(dst: &View, arch: &Arch) -> Result<(), Violation> {
    let bank = i64::from(arch.psum_bank_bytes);
    // An address that is known only at run time is not checked.
    if arch.moving_free_max * 4 > arch.psum_bank_bytes || dst.indirect.is_some() {
        return Ok(());
    }
    let (low, high) = View::span(dst.free_dims());
    let size = dst.dtype.size() as i64;
    // A tensor in PSUM starts at a bank boundary or lies within a bank.
    let (first, last) = ((dst.offset + low) * size, (dst.offset + high + 1) * size - 1);
    if first.div_euclid(bank) == last.div_euclid(bank) {
        return Ok(());
    }
    Err(Violation::new(
        "psum-bank",
        "dst",
        format!(
            "`dst` spans bytes {first} to {last} of its partition and crosses a PSUM bank boundary (a multiple of {bank}); on {} one matmul \
             writes to one bank",
            arch.target
        ),
    )
    .help("split the product at the bank boundary, or start the slice on a bank"))
}
/// "TensorE transpose mode for FP8 input data produces 16-bit output elements in PSUM, with the upper 8 bits filled with zeros" (trainium2_arch):
/// a `dst` of 8-bit elements has every second one. nki-library casts FP8 to bfloat16 before a transpose.
///
/// # Errors
/// `dtype-mismatch`.
pub(crate) fn check_fp8_transpose(dst: &View) -> Result<(), Violation> {
    let is_compact = || dst.free_dims().iter().any(|d| d.count > 1 && d.stride.abs() < 2);
    if dst.dtype.size() != 1 || !dst.dtype.is_float() || !is_compact() {
        return Ok(());
    }
    let message = format!(
        "`dst` is {} with elements side by side, but the tensor engine writes a transposed 8-bit float as 16 bits, the upper 8 of them 0",
        dst.dtype
    );
    Err(Violation::new("dtype-mismatch", "dst", message).help(
        "pass every second element of a tile of twice the width, t[:, ::2]; or copy the data to bfloat16 first and transpose that",
    ))
}
