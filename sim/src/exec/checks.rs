//! The selection of findings about values.

/// Findings about values, each on or off. A disabled check costs nothing.
///
/// They need the values, so only a run that computes them can report them; with `precise` off (`NKI_PRECISE_FP=0`) floats are kept as fp32, and
/// nothing overflows in a narrower type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// `non-finite`: infinity or NaN arises.
    pub non_finite: bool,
    /// `saturated-store`: a value is clipped to the range of an integer type.
    pub saturated_store: bool,
    /// `inexact-integer`: an integer loses bits in fp32.
    pub inexact_integer: bool,
    /// `wrapped-integer`: the result of 32-bit integer arithmetic exceeds int32.
    pub wrapped_integer: bool,
    /// `activation-range`: an argument of an activation function is outside the valid range of the engine's approximation.
    pub activation_range: bool,
    /// `uninitialized-output`: unwritten memory reaches an output.
    pub uninitialized_output: bool,
}

impl Checks {
    /// All findings.
    pub const ALL: Checks = Checks {
        non_finite: true,
        saturated_store: true,
        inexact_integer: true,
        wrapped_integer: true,
        activation_range: true,
        uninitialized_output: true,
    };
    /// No finding.
    pub const NONE: Checks = Checks {
        non_finite: false,
        saturated_store: false,
        inexact_integer: false,
        wrapped_integer: false,
        activation_range: false,
        uninitialized_output: false,
    };

    /// The findings whose slug satisfies `wanted`.
    pub fn wanted(wanted: impl Fn(&str) -> bool) -> Checks {
        Checks {
            non_finite: wanted("non-finite"),
            saturated_store: wanted("saturated-store"),
            inexact_integer: wanted("inexact-integer"),
            wrapped_integer: wanted("wrapped-integer"),
            activation_range: wanted("activation-range"),
            uninitialized_output: wanted("uninitialized-output"),
        }
    }
}

impl Default for Checks {
    fn default() -> Self {
        Checks::ALL
    }
}
