//! What the stand-ins for AWS share: keys, signatures, instants and the frames of event streams.

pub(crate) mod frame;
mod hash;
mod keys;
pub(crate) mod sigv4;
pub(crate) mod time;
mod verifier;

pub use keys::KeyOptions;
pub(crate) use verifier::{Received, Refused, Verifier};

/// The value of `x-amzn-ErrorType` for an error of this type, as Bedrock writes it.
pub(crate) fn error_field(kind: &str) -> Vec<u8> {
    format!("{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/").into_bytes()
}
