//! Run-time choice of instruction set for loops that the compiler vectorises.

/// A loop (or several) to be compiled for each instruction set.
///
/// `run` must be `#[inline(always)]`, as must what it calls inside its loops; else the baseline code is used.
pub(crate) trait Kernel {
    /// What it gives.
    type Output;
    /// The loop.
    fn run(self) -> Self::Output;
}

struct Run<K>(K);

impl<K: Kernel> pulp::WithSimd for Run<K> {
    type Output = K::Output;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> K::Output {
        self.0.run()
    }
}

/// Runs `kernel` with the best instruction set of this CPU.
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    pulp::Arch::new().dispatch(Run(kernel))
}
