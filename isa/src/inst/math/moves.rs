//! Selection and gathering of element bits on rows.

use super::simd::{Kernel, dispatch};

/// `out = new` where the mask holds, else `old`. All have the same length; `new` may be longer.
pub fn choose(mask: &[bool], new: impl IntoIterator<Item = u32>, old: &[u32], out: &mut [u32]) {
    struct K<'a, I>(&'a [bool], I, &'a [u32], &'a mut [u32]);
    impl<I: Iterator<Item = u32>> Kernel for K<'_, I> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let K(mask, new, old, out) = self;
            for (((o, &m), &old), new) in out.iter_mut().zip(mask).zip(old).zip(new) {
                *o = if m { new } else { old };
            }
        }
    }
    dispatch(K(mask, new.into_iter(), old, out));
}

/// Replaces the random bits in `out` by 0 where they are below `limit` (at most 2^32), and by `data` elsewhere.
pub fn drop_below(limit: u64, data: &[u32], out: &mut [u32]) {
    struct K<'a>(u32, &'a [u32], &'a mut [u32]);
    impl Kernel for K<'_> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let K(limit, data, out) = self;
            for (o, &x) in out.iter_mut().zip(data) {
                *o = if *o < limit { 0 } else { x };
            }
        }
    }
    match u32::try_from(limit) {
        Ok(limit) => dispatch(K(limit, data, out)),
        Err(_) => out.fill(0),
    }
}

/// Fills `out` with the elements of `data` at `indices`.
///
/// # Errors
/// The first index that is out of bounds.
pub fn gather(data: &[u32], indices: &[u32], out: &mut [u32]) -> Result<(), u32> {
    for (o, &index) in out.iter_mut().zip(indices) {
        *o = *data.get(index as usize).ok_or(index)?;
    }
    Ok(())
}

/// Fills `out` with runs of `run` consecutive elements of `data`, one from each of `starts`, all within bounds.
pub fn gather_runs(data: &[u32], starts: &[u32], run: usize, out: &mut [u32]) {
    if run == 1 {
        return out.iter_mut().zip(starts).for_each(|(o, &start)| *o = data[start as usize]);
    }
    for (out, &start) in out.chunks_exact_mut(run.max(1)).zip(starts) {
        out.copy_from_slice(&data[start as usize..][..run]);
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat;

    use proptest::prelude::*;

    use super::*;

    /// Bits of all kinds: NaNs with payload, -0.0, infinities, and arbitrary bits.
    fn bits(count: usize) -> impl Strategy<Value = Vec<u32>> {
        let special = prop::sample::select(vec![0, 0x8000_0000, 0x7f80_0000, 0xff80_0001, 0x7fc0_1234, u32::MAX]);
        prop::collection::vec(prop_oneof![special, any::<u32>()], count)
    }

    fn row() -> impl Strategy<Value = (Vec<bool>, Vec<u32>, Vec<u32>)> {
        (0..70_usize).prop_flat_map(|n| (prop::collection::vec(any::<bool>(), n), bits(n), bits(n)))
    }

    proptest! {
        #[test]
        fn each_element_is_chosen_by_its_mask((mask, new, old) in row(), one in any::<u32>()) {
            let mut out = vec![7; mask.len()];
            choose(&mask, new.iter().copied(), &old, &mut out);
            for i in 0..mask.len() {
                prop_assert_eq!(out[i], if mask[i] { new[i] } else { old[i] });
            }
            choose(&mask, repeat(one), &old, &mut out);
            for i in 0..mask.len() {
                prop_assert_eq!(out[i], if mask[i] { one } else { old[i] });
            }
        }

        #[test]
        fn random_bits_below_the_limit_drop_an_element(
            (_, random, data) in row(),
            limit in prop_oneof![Just(0), Just(1_u64 << 32), Just((1 << 32) - 1), 0..1_u64 << 32],
        ) {
            let mut out = random.clone();
            drop_below(limit, &data, &mut out);
            for i in 0..data.len() {
                prop_assert_eq!(out[i], if u64::from(random[i]) < limit { 0 } else { data[i] });
            }
        }

        #[test]
        fn gathers_take_what_the_indices_name(
            data in bits(67),
            indices in prop::collection::vec(0..64_u32, 0..40),
            run in 1..5_usize,
            bad in prop::option::of(67..90_u32),
        ) {
            let mut out = vec![0; indices.len()];
            prop_assert_eq!(gather(&data, &indices, &mut out), Ok(()));
            let want: Vec<u32> = indices.iter().map(|&i| data[i as usize]).collect();
            prop_assert_eq!(&out, &want);
            let mut out = vec![0; indices.len() * run];
            gather_runs(&data, &indices, run, &mut out);
            let want: Vec<u32> =
                indices.iter().flat_map(|&i| data[i as usize..][..run].to_vec()).collect();
            prop_assert_eq!(&out, &want);
            if let Some(bad) = bad {
                let indices: Vec<u32> = indices.iter().copied().chain([bad, 99]).collect();
                prop_assert_eq!(gather(&data, &indices, &mut vec![0; indices.len()]), Err(bad));
            }
        }
    }
}
