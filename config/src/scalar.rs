//! Scalars with a meaning: what may stand where a plain string or number would say too little.
//!
//! Each type parses the text of a file with [`std::str::FromStr`], prints what it parsed, and
//! names itself in the JSON Schema by a `format` that the checker looks up in [`problem`].

mod address;
mod date;
mod name;
mod quantity;

pub use address::{HostPort, HttpUrl, Listen};
pub use date::Date;
pub use name::{EnvName, HeaderName};
pub use quantity::{ByteSize, Period};

use std::str::FromStr;

/// Implements serde and JSON Schema for a type that is written as one string.
macro_rules! written_as_text {
    ($type:ty, $name:literal, $format:literal, $example:literal) => {
        impl $type {
            /// The `format` under which the JSON Schema names this type.
            pub const FORMAT: &'static str = $format;
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "format": $format, "examples": [$example] })
            }
        }
    };
}
use written_as_text;

/// What is wrong with `text` as a value of the JSON Schema `format`; `None` if nothing is,
/// or if the format is not one of this crate's.
pub(crate) fn problem(format: &str, text: &str) -> Option<String> {
    fn of<T: FromStr<Err = String>>(text: &str) -> Option<String> {
        text.parse::<T>().err()
    }
    match format {
        Period::FORMAT => of::<Period>(text),
        ByteSize::FORMAT => of::<ByteSize>(text),
        Date::FORMAT => of::<Date>(text),
        Listen::FORMAT => of::<Listen>(text),
        HostPort::FORMAT => of::<HostPort>(text),
        HttpUrl::FORMAT => of::<HttpUrl>(text),
        EnvName::FORMAT => of::<EnvName>(text),
        HeaderName::FORMAT => of::<HeaderName>(text),
        _ => None,
    }
}
