//! The rules of [`nc_matmul`](super::nc_matmul): modes, array tile, dtypes, sizes.

use super::array_tile;
use super::nc_matmul::NcMatmul;
use crate::arch::Arch;
use crate::dtype::DType;
use crate::inst::indirection::columns;
use crate::violation::Violation;

/// The distance in elements between the two rows of a double row is a multiple of this.
const DOUBLE_ROW_STRIDE: i64 = 16;

impl NcMatmul {
    /// Checks all rules.
    ///
    /// # Errors
    /// The first broken rule.
    pub(super) fn check_rules(&self, arch: &Arch) -> Result<(), Violation> {
        self.validate_modes(arch)?;
        self.validate_tile(arch)?;
        self.validate_dtypes(arch)?;
        self.validate_sizes(arch)
    }

    fn validate_tile(&self, arch: &Arch) -> Result<(), Violation> {
        let Some((position, size)) = array_tile::given(&self.tile_position, &self.tile_size)? else { return Ok(()) };
        for (i, axis) in ["row", "column"].into_iter().enumerate() {
            array_tile::check_axis(axis, position[i], size[i], arch)?;
        }
        if self.double() && size[1] != 128 {
            return Err(Violation::new(
                "operand-value",
                "perf_mode",
                format!(
                    "double_row cannot be combined with column tiling: the column size is {}, but must be 128",
                    size[1]
                ),
            ));
        }
        Ok(())
    }

    fn validate_dtypes(&self, arch: &Arch) -> Result<(), Violation> {
        let (s, m) = (self.stationary.dtype, self.moving.dtype);
        for (name, dtype) in [("stationary", s), ("moving", m)] {
            if !is_input(dtype) {
                return Err(Violation::new(
                    "operand-dtype",
                    name,
                    format!("`{name}` is {dtype}, but the tensor engine multiplies {}", input_names(arch)),
                ));
            }
            if dtype == DType::F8E4M3FN && !arch.ocp_fp8 {
                return Err(Violation::new(
                    "unsupported-on-target",
                    name,
                    format!(
                        "`{name}` is float8_e4m3fn, which the tensor engine takes from trn3 on (target is {})",
                        arch.target
                    ),
                )
                .help("use float8_e4m3"));
            }
            if self.double() && dtype.size() != 1 {
                return Err(Violation::new(
                    "operand-dtype",
                    name,
                    format!("`{name}` is {dtype}, but double_row takes 8-bit floats"),
                ));
            }
        }
        if is_wide(s) != is_wide(m) {
            return Err(Violation::new(
                "dtype-mismatch",
                "moving",
                format!(
                    "`stationary` is {s} and `moving` is {m}: if one is float32 or tfloat32, the other must be too"
                ),
            )
            .help("cast one of them with nisa.tensor_copy"));
        }
        let formats = [DType::F8E4M3, DType::F8E4M3FN];
        if s != m && formats.contains(&s) && formats.contains(&m) {
            return Err(Violation::new(
                "dtype-mismatch",
                "moving",
                format!("`stationary` is {s} and `moving` is {m}: the two e4m3 formats cannot be mixed"),
            ));
        }
        let dst = self.dst.dtype;
        let ok = dst == DType::F32
            || (dst == DType::BF16 && arch.moving_free_max_bf16 > 0)
            || (self.exact(arch) && (dst == s || (s.size() == 1 && dst.size() == 2)));
        if !ok {
            let allowed = if self.exact(arch) {
                format!("float32 or {s} (transpose mode)")
            } else if arch.moving_free_max_bf16 > 0 {
                "float32 or bfloat16".to_owned()
            } else {
                "float32".to_owned()
            };
            return Err(Violation::new(
                "operand-dtype",
                "dst",
                format!("`dst` is {dst}, but on {} the result must be {allowed}", arch.target),
            )
            .help("allocate the PSUM tile with dtype=nl.float32 and cast when copying it to SBUF"));
        }
        if self.exact(arch) {
            array_tile::check_fp8_transpose(&self.dst)?;
        }
        Ok(())
    }

    fn validate_sizes(&self, arch: &Arch) -> Result<(), Violation> {
        let (_, (rows, columns)) = self.tile();
        array_tile::check_contraction(&self.stationary, &self.moving, rows)?;
        if self.double() {
            for (name, view) in [("stationary", &self.stationary), ("moving", &self.moving)] {
                if view.free_dims().first().map(|d| d.count) != Some(2) {
                    return Err(Violation::new(
                        "shape-mismatch",
                        name,
                        format!("`{name}` has shape {:?}, but double_row takes [K, 2, ...]", view.shape()),
                    ));
                }
            }
            // The compiler's verifier: "second dim of input AP must have Num=2, Size%16==0"; nki-library: "multiple of 16 for double row
            // stride access".
            let stride = self.moving.free_dims().first().map_or(0, |d| d.stride);
            if stride % DOUBLE_ROW_STRIDE != 0 {
                return Err(Violation::new(
                    "operand-value",
                    "moving",
                    format!(
                        "`moving` has its two rows {stride} elements apart; double_row takes a multiple of {DOUBLE_ROW_STRIDE}"
                    ),
                )
                .help(format!("allocate the tile with a multiple of {DOUBLE_ROW_STRIDE} columns and slice it")));
            }
        }
        let (m, n) = (self.columns_of(&self.stationary), self.columns_of(&self.moving));
        let m_max = arch.stationary_free_max.min(columns);
        if m > m_max as usize {
            return Err(Violation::new(
                "tile-size",
                "stationary",
                format!("`stationary` has {m} elements per partition; the limit is {m_max}"),
            )
            .help("tile the rows of the result"));
        }
        let n_max = arch.moving_max(self.dst.dtype);
        if n > n_max as usize {
            return Err(Violation::new(
                "tile-size",
                "moving",
                format!("`moving` has {n} elements per partition; the limit on {} is {n_max}", arch.target),
            )
            .help(format!("tile the columns of the result{}", arch.more_columns(self.dst.dtype))));
        }
        array_tile::check_result(&self.dst, &self.stationary, &self.moving, (m, n))?;
        array_tile::check_bank(&self.dst, arch)
    }

    fn validate_modes(&self, arch: &Arch) -> Result<(), Violation> {
        if self.double() && !arch.double_row {
            return Err(Violation::new(
                "unsupported-on-target",
                "perf_mode",
                format!("double_row needs trn2 or later (target is {})", arch.target),
            ));
        }
        if self.double() && self.is_transpose {
            return Err(Violation::new(
                "operand-value",
                "perf_mode",
                "double_row cannot be combined with is_transpose",
            ));
        }
        for (name, view) in [("dst", &self.dst), ("stationary", &self.stationary), ("moving", &self.moving)] {
            if columns(view).is_none() {
                continue;
            }
            if self.is_transpose && name == "moving" {
                return Err(Violation::new(
                    "indirect-view",
                    name,
                    "`moving` is indirect, which transpose mode does not take",
                ));
            }
            if name != "dst" && (is_wide(view.dtype) || !is_input(view.dtype)) {
                return Err(Violation::new(
                    "operand-dtype",
                    name,
                    format!("an indirect `{name}` is {}, but must be a float of 8 or 16 bits", view.dtype),
                ));
            }
        }
        array_tile::check_indirect(
            self.tile().0,
            [("dst", &self.dst), ("stationary", &self.stationary), ("moving", &self.moving)],
        )
    }
}

/// Types that the tensor engine multiplies, including OCP FP8.
pub(crate) fn is_input(dtype: DType) -> bool {
    dtype.is_float() && dtype != DType::F8E8M0
}

fn input_names(arch: &Arch) -> &'static str {
    if arch.ocp_fp8 {
        "float8_e4m3, float8_e4m3fn, float8_e5m2, bfloat16, float16, tfloat32 and float32"
    } else {
        "float8_e4m3, float8_e5m2, bfloat16, float16, tfloat32 and float32"
    }
}

fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::TF32)
}
