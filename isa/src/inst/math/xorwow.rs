//! The XORWOW random number generator (Marsaglia, "Xorshift RNGs", 2003), which the manual names for trn3.

/// Words of a generator's state: five of the shift register, oldest first, and the counter.
pub const WORDS: usize = 6;

/// What is added to the counter for each number.
const WEYL: u32 = 362_437;

/// Advances the generator in `state` and gives its next number.
pub fn next(state: &mut [u32; WORDS]) -> u32 {
    let [x, y, z, w, v, d] = *state;
    let t = x ^ (x >> 2);
    let new = (v ^ (v << 4)) ^ (t ^ (t << 1));
    let counter = d.wrapping_add(WEYL);
    *state = [y, z, w, v, new, counter];
    new.wrapping_add(counter)
}

/// The state of generator number `stream` for a seed of 32 bits. Nothing documents what the engine makes of a seed; this is
/// splitmix64, run from the seed and the number of the stream, so that streams and seeds have nothing to do with each other.
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
    // A register of zeros would stay so.
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
