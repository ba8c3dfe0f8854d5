//! Run-time choice of instruction set for loops that the compiler vectorises.

/// A loop (or several) to be compiled for each instruction set.
///
/// `run` must be `#[inline(always)]`, as must all functions called inside its loops; else the baseline code is used.
pub(crate) trait Kernel: Sized {
    /// What it gives.
    type Output;
    /// The loop.
    fn run(self) -> Self::Output;
    /// The loop for CPUs without a supported vector instruction set. Kernels with many variants have a smaller, slower one here that
    /// computes the same.
    #[inline(always)]
    fn run_baseline(self) -> Self::Output {
        self.run()
    }
}

struct Run<K>(K);

impl<K: Kernel> pulp::WithSimd for Run<K> {
    type Output = K::Output;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> K::Output {
        if S::IS_SCALAR { self.0.run_baseline() } else { self.0.run() }
    }
}

/// Runs `kernel` with the best instruction set of this CPU.
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(test)]
    if tests::BASELINE.get() {
        return kernel.run_baseline();
    }
    pulp::Arch::new().dispatch(Run(kernel))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::dtype::{DType, decode_f32, encode_f32};
    use crate::inst::math::activation::{self, ActFn};
    use crate::inst::math::alu::{self, Rhs};
    use crate::inst::math::reduce::reduce;
    use crate::names::{AluOp, Named};

    thread_local! {
        /// Makes [`super::dispatch`] on this thread run the code for CPUs without vector instructions.
        pub(super) static BASELINE: Cell<bool> = const { Cell::new(false) };
    }

    /// Asserts that `f` computes equal bits on both paths.
    fn same(what: &str, f: impl Fn() -> Vec<f32>) {
        let bits = |baseline| {
            BASELINE.set(baseline);
            let out: Vec<u32> = f().into_iter().map(|x| if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() }).collect();
            BASELINE.set(false);
            out
        };
        assert_eq!(bits(false), bits(true), "{what} depends on the CPU");
    }

    /// The baseline has no fused multiply-add instruction, so this also shows that none is used where it would change a result.
    #[test]
    fn results_do_not_depend_on_the_cpu() {
        let mut x: Vec<f32> = (0..333u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9))).collect();
        x.extend((0..2000).map(|i| (i as f32 - 1000.0) * 0.0173));
        let y: Vec<f32> = x.iter().rev().copied().collect();
        for &f in ActFn::ALL {
            same(f.name(), || {
                let mut row = x.clone();
                activation::apply(f, 0.25, &mut row);
                row
            });
        }
        for &op in AluOp::ALL {
            for (reverse, rhs) in
                [(false, Rhs::Row(&y[..])), (true, Rhs::Row(&y)), (false, Rhs::One(1.7)), (true, Rhs::One(-2.0))]
            {
                same(op.name(), || {
                    let mut out = vec![0.0; x.len()];
                    alu::apply(op, reverse, &x, rhs, &mut out);
                    let mut row = x.clone();
                    alu::apply_in_place(op, reverse, &mut row, rhs);
                    out.extend(row);
                    out
                });
            }
            same(op.name(), || vec![reduce(op, &x[333..])]);
        }
        for &dtype in DType::ALL {
            same(dtype.name(), || {
                let mut bytes = vec![0; x.len() * dtype.size()];
                encode_f32(dtype, &x, &mut bytes);
                let mut out = vec![0.0; x.len()];
                decode_f32(dtype, &bytes, &mut out);
                out
            });
        }
    }
}
