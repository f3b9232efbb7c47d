//! Headers of a frame: `u8` length of the name, name, `u8` type, value.

/// The value of a header, of the ten types that the format has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Types 0 and 1.
    Bool(bool),
    /// Types 2 to 5: one, two, four or eight bytes, signed.
    Integer(i64),
    /// Type 6: up to 32,767 bytes.
    Bytes(&'a [u8]),
    /// Type 7: UTF-8, up to 32,767 bytes.
    String(&'a str),
    /// Type 8: milliseconds since 1970, UTC.
    Timestamp(i64),
    /// Type 9.
    Uuid([u8; 16]),
}

const STRING: u8 = 7;

/// The headers up to the first that cannot be read.
pub(super) fn all<'a>(bytes: &'a [u8]) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
    let mut rest = bytes;
    std::iter::from_fn(move || next(&mut rest))
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<(&'a str, Value<'a>)> {
    let length = take(rest, 1)?[0];
    let name = std::str::from_utf8(take(rest, usize::from(length))?).ok()?;
    let value = match take(rest, 1)?[0] {
        kind @ 0..=1 => Value::Bool(kind == 0),
        2 => Value::Integer(integer(take(rest, 1)?)),
        3 => Value::Integer(integer(take(rest, 2)?)),
        4 => Value::Integer(integer(take(rest, 4)?)),
        5 => Value::Integer(integer(take(rest, 8)?)),
        6 => Value::Bytes(long(rest)?),
        STRING => Value::String(std::str::from_utf8(long(rest)?).ok()?),
        8 => Value::Timestamp(integer(take(rest, 8)?)),
        9 => Value::Uuid(take(rest, 16)?.try_into().ok()?),
        _ => return None,
    };
    Some((name, value))
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (bytes, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    Some(bytes)
}

/// A value behind its length.
fn long<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = integer(take(rest, 2)?);
    take(rest, usize::try_from(length).ok()?)
}

/// Big-endian, signed, of one to eight bytes.
fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let begin = if negative { -1 } else { 0 };
    bytes
        .iter()
        .fold(begin, |sum, byte| (sum << 8) | i64::from(*byte))
}

pub(super) fn push(bytes: &mut Vec<u8>, name: &str, value: &str) {
    let (short, long) = (name.len(), value.len());
    assert!(
        short <= 255 && long <= 32_767,
        "a header {name} of {long} bytes"
    );
    bytes.push(short as u8);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(STRING);
    bytes.extend_from_slice(&(long as u16).to_be_bytes());
    bytes.extend_from_slice(value.as_bytes());
}
