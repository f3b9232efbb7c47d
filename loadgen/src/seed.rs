//! Seeds from names and numbers, the same in every process and version.

use record::timeline::{hash, hash_on};

/// A seed that depends on every part, and on their order and borders.
pub(crate) fn derive(base: u64, parts: &[&[u8]]) -> u64 {
    let mut sum = hash(&base.to_le_bytes());
    for part in parts {
        sum = hash_on(sum, &(part.len() as u64).to_le_bytes());
        sum = hash_on(sum, part);
    }
    mix(sum)
}

/// SplitMix64's finaliser: FNV's low bits alone are too regular for a generator's seed.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_and_order_count() {
        let all = [
            derive(1, &[b"ab", b"c"]),
            derive(1, &[b"a", b"bc"]),
            derive(1, &[b"c", b"ab"]),
            derive(2, &[b"ab", b"c"]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one));
        }
    }
}
