//! Avro's variable-length numbers and length-prefixed bytes. Errors are texts; the caller says where.

/// Reads a zigzag number of up to ten bytes.
pub(crate) fn read_long(data: &mut &[u8]) -> Result<i64, String> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = data.split_first().ok_or("ends inside a number")?;
        *data = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            // The tenth byte holds one bit.
            if shift == 63 && *byte > 1 {
                break;
            }
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    Err("a number is too long".into())
}

/// Reads bytes behind their length.
pub(crate) fn read_bytes<'a>(data: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let length = read_long(data)?;
    let length = usize::try_from(length).map_err(|_| format!("negative length {length}"))?;
    read_exact(data, length)
}

/// Reads this many bytes.
pub(crate) fn read_exact<'a>(data: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (bytes, rest) =
        data.split_at_checked(length).ok_or_else(|| format!("length {length} exceeds the data of {}", data.len()))?;
    *data = rest;
    Ok(bytes)
}

/// Appends a zigzag number.
pub(crate) fn write_long(bytes: &mut Vec<u8>, value: i64) {
    let mut value = ((value << 1) ^ (value >> 63)) as u64;
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_long_ones_are_errors() {
        for value in [0, -1, 1, 63, 64, -64, -65, i64::from(i32::MAX), i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            write_long(&mut bytes, value);
            let mut data = &bytes[..];
            assert_eq!((read_long(&mut data), data.len()), (Ok(value), 0));
            assert!(read_long(&mut &bytes[..bytes.len() - 1]).is_err());
        }
        assert!(read_long(&mut &[0xff; 11][..]).is_err());
        assert!(read_long(&mut &[&[0x80; 9][..], &[2]].concat()[..]).is_err());
        assert!(read_bytes(&mut &[1][..]).unwrap_err().contains("negative"));
    }
}
