//! The XORWOW random number generator (Marsaglia, "Xorshift RNGs", 2003), which the manual names for trn3.

use super::simd::{Kernel, dispatch};

/// Words of a generator's state: five of the shift register, oldest first, and the counter.
pub const WORDS: usize = 6;

/// The counter's increment for each number.
const WEYL: u32 = 362_437;

/// Advances the generator in `state` and returns its next number.
pub fn next(state: &mut [u32; WORDS]) -> u32 {
    let [x, y, z, w, v, d] = *state;
    let t = x ^ (x >> 2);
    let new = (v ^ (v << 4)) ^ (t ^ (t << 1));
    let counter = d.wrapping_add(WEYL);
    *state = [y, z, w, v, new, counter];
    new.wrapping_add(counter)
}

/// Rows that [`fill`] fills in parallel.
pub const ROWS: usize = 8;

/// `L` generators in parallel: word `w` of all of them is `words[w]`.
struct Abreast<'a, 'r, const G: usize, const L: usize> {
    words: &'a mut [[u32; L]; WORDS],
    /// Groups of elements, one element from each of the row's `G` generators.
    rows: [&'r mut [[u32; G]]; ROWS],
}

impl<const G: usize, const L: usize> Kernel for Abreast<'_, '_, G, L> {
    type Output = ();
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an index is that of a generator in all words")]
    fn run(self) {
        let Abreast { words, mut rows } = self;
        let steps = rows[0].len();
        // The shift register is not moved: step `s` replaces the oldest word, number `s % 5`, by the new one.
        const REGISTER: usize = WORDS - 1;
        for step in 0..steps {
            let (x, v) = (words[step % REGISTER], words[(step + REGISTER - 1) % REGISTER]);
            let (mut new, mut numbers) = ([0; L], [0; L]);
            for i in 0..L {
                let t = x[i] ^ (x[i] >> 2);
                new[i] = (v[i] ^ (v[i] << 4)) ^ (t ^ (t << 1));
                words[REGISTER][i] = words[REGISTER][i].wrapping_add(WEYL);
                numbers[i] = new[i].wrapping_add(words[REGISTER][i]);
            }
            words[step % REGISTER] = new;
            for (row, numbers) in rows.iter_mut().zip(numbers.as_chunks::<G>().0) {
                if let Some(group) = row.get_mut(step) {
                    *group = *numbers;
                }
            }
        }
        words[..REGISTER].rotate_left(steps % REGISTER);
    }
}

/// Fills at most [`ROWS`] rows of equal length with the numbers of their generators, `G` per row, which alternate from element to element.
/// `L` is `G` times [`ROWS`]. Rows without generators become 0.
pub fn fill<const G: usize, const L: usize>(generators: &mut [[u32; WORDS]], rows: &mut [&mut [u32]]) {
    const { assert!(L == G * ROWS, "a generator of each row for each lane") };
    let count = rows.len().min(ROWS).min(generators.len() / G);
    let (rows, others) = rows.split_at_mut(count);
    others.iter_mut().for_each(|row| row.fill(0));
    let generators = &mut generators[..count * G];
    let mut words = [[0; L]; WORDS];
    for (i, generator) in generators.iter().enumerate() {
        (0..WORDS).for_each(|w| words[w][i] = generator[w]);
    }
    let mut rest = rows.iter_mut();
    let groups = std::array::from_fn(|_| rest.next().map_or(&mut [][..], |row| row.as_chunks_mut::<G>().0));
    dispatch(Abreast::<G, L> { words: &mut words, rows: groups });
    for (i, generator) in generators.iter_mut().enumerate() {
        (0..WORDS).for_each(|w| generator[w] = words[w][i]);
    }
    // The first generators of a row fill its last, partial group.
    for (row, generators) in rows.iter_mut().zip(generators.chunks_exact_mut(G)) {
        let (_, rest) = row.as_chunks_mut::<G>();
        rest.iter_mut().zip(generators).for_each(|(number, generator)| *number = next(generator));
    }
}

/// The state of generator number `stream` for a 32-bit seed. The engine's seeding is undocumented; this is
/// splitmix64, started from the seed and the stream number, so that streams and seeds are independent.
pub fn seeded(seed: u32, stream: u32) -> [u32; WORDS] {
    let mut at = (u64::from(stream) << 32) | u64::from(seed);
    let mut state = [0; WORDS];
    for word in &mut state {
        at = at.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = at;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        *word = ((z ^ (z >> 31)) >> 32) as u32;
    }
    // A register of zeros would remain zero.
    state[0] |= 1;
    state
}

/// A number in `[0, 1)` of 24 random bits, exact in fp32.
pub fn unit(bits: u32) -> f32 {
    (bits >> 8) as f32 / (1 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_recurrence() {
        // The state of the paper, worked by hand for the first number: t = x ^ x >> 2, v ^ v << 4 ^ t ^ t << 1, plus the counter.
        let mut state = [123_456_789, 362_436_069, 521_288_629, 88_675_123, 5_783_321, 6_615_241];
        let t = 123_456_789u32 ^ (123_456_789 >> 2);
        let v = 5_783_321u32 ^ (5_783_321 << 4) ^ t ^ (t << 1);
        assert_eq!(next(&mut state), v.wrapping_add(6_615_241 + 362_437));
        assert_eq!(state, [362_436_069, 521_288_629, 88_675_123, 5_783_321, v, 6_615_241 + 362_437]);
    }

    /// Compares with separate generators, for all row lengths and numbers of rows, over several calls.
    fn filled_as_one_by_one<const G: usize, const L: usize>() {
        for count in [1, 3, ROWS] {
            let mut fast: Vec<[u32; WORDS]> = (0..(count * G) as u32).map(|i| seeded(7, i)).collect();
            // Counters and registers that wrap.
            fast[0] = [u32::MAX; WORDS];
            let mut slow = fast.clone();
            for length in [0, 1, 2, 3, 4, 5, 7, 19, 20, 64, 513] {
                let mut got = vec![vec![9; length]; count];
                fill::<G, L>(&mut fast, &mut got.iter_mut().map(|row| &mut row[..]).collect::<Vec<_>>());
                let want: Vec<Vec<u32>> =
                    slow.chunks_mut(G).map(|lane| (0..length).map(|i| next(&mut lane[i % G])).collect()).collect();
                assert_eq!(got, want, "{count} rows of {length}");
                assert_eq!(fast, slow, "{count} rows of {length}");
            }
        }
    }

    #[test]
    fn rows_side_by_side_have_the_sequence_of_each_generator() {
        filled_as_one_by_one::<1, 8>();
        filled_as_one_by_one::<4, 32>();
        let mut row = [3; 5];
        fill::<4, 32>(&mut [], &mut [&mut row]);
        assert_eq!(row, [0; 5]);
    }

    #[test]
    fn numbers_fill_the_unit_interval() {
        assert_eq!((unit(0), unit(u32::MAX)), (0.0, 1.0 - f32::EPSILON / 2.0));
        let mut state = seeded(1, 0);
        let n = 10_000;
        let mean = (0..n).map(|_| f64::from(unit(next(&mut state)))).sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_ne!(seeded(1, 0), seeded(1, 1));
        assert_ne!(seeded(0, 1), seeded(1, 0));
    }
}
