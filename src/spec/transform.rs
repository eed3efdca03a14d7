//! Partition transforms.
//!
//! Implements the spec section "Partition Transforms" and "Appendix B: 32-bit Hash Requirements". Invariant: time transforms
//! floor the stored UTC value; no session time zone, no rounding toward zero.

/// How a partition value is made from a column's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Transform {
    /// The value itself.
    Identity,
    /// Murmur3 hash modulo this number (1..).
    Bucket(u32),
    /// Value rounded down to a multiple, or the first this-many code points or bytes (1..).
    Truncate(u32),
    /// Years since 1970.
    Year,
    /// Months since 1970-01.
    Month,
    /// Days since 1970-01-01.
    Day,
    /// Hours since 1970-01-01T00.
    Hour,
    /// Always null: a dropped field of a v1 spec.
    Void,
    /// A transform of a later specification, kept as written; never used for pruning, never written with.
    Unknown(String),
}
