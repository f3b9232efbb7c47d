//! SHA-256 and its HMAC (RFC 2104).

use sha2::{Digest as _, Sha256};

/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;

/// The hash of some bytes, in lower-case hexadecimal.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(&[bytes]))
}

/// The HMAC of `text` under `key`.
pub(super) fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0_u8; BLOCK];
    match key.len() > BLOCK {
        true => block[..32].copy_from_slice(&sha256(&[key])),
        false => block[..key.len()].copy_from_slice(key),
    }
    let inner = sha256(&[&block.map(|byte| byte ^ 0x36), text]);
    sha256(&[&block.map(|byte| byte ^ 0x5c), &inner])
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::{hex, hmac};

    /// RFC 4231, cases 2 and 6: a key shorter than a block, and a longer one.
    #[test]
    fn known_answers() {
        assert_eq!(
            hex(&hmac(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(&hmac(
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First"
            )),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }
}
