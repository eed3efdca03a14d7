//! Murmur3, x86 variant, 32 bits, seed 0.
//!
//! Implements the spec section "Appendix B: 32-bit Hash Requirements".

const C1: u32 = 0xcc9e_2d51;
const C2: u32 = 0x1b87_3593;

/// Hash of `bytes`.
pub(crate) fn hash(bytes: &[u8]) -> i32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut h = 0u32;
    for block in blocks {
        h = (h ^ mix(u32::from_le_bytes(*block))).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        h ^= mix(tail.iter().rev().fold(0, |acc, b| acc << 8 | u32::from(*b)));
    }
    // The length enters modulo 2^32, as in the reference implementation.
    h ^= bytes.len() as u32;
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    (h ^ h >> 16).cast_signed()
}

fn mix(k: u32) -> u32 {
    k.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2)
}
