//! A hash of JSON that stays the same over what gateways do to it. Nothing is kept or sorted: an
//! object's members are combined by a sum, so that their order does not matter.
//!
//! Equal are: absent, null, an empty string, an empty array and an empty object; an array of one
//! element and the element; a part with a `text` string (whatever else it has) and the string;
//! an integer and the same number with a fraction of zero.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use twox_hash::XxHash3_64;

/// Seeds that keep kinds of values apart.
const STRING: u64 = 1;
const NUMBER: u64 = 2;
const BOOL: u64 = 3;
const ARRAY: u64 = 4;
const OBJECT: u64 = 5;
const MESSAGE: u64 = 6;
const REQUEST: u64 = 7;
const AGENT: u64 = 8;
const RPC: u64 = 9;

/// The hash of one value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Canonical {
    /// `None` for a value equal to an absent one.
    hash: Option<u64>,
    /// Bytes of the value if it is a string, of its strings if an array, of its `text` if an object.
    text_bytes: u64,
    number: bool,
}

impl Canonical {
    fn of(kind: u64, bytes: &[u8]) -> Self {
        let hash = Some(XxHash3_64::oneshot_with_seed(kind, bytes));
        Self {
            hash,
            text_bytes: 0,
            number: kind == NUMBER,
        }
    }

    /// Something equal to no absent value was there.
    pub(super) fn is_some(self) -> bool {
        self.hash.is_some()
    }

    pub(super) fn text_bytes(self) -> u64 {
        self.text_bytes
    }

    fn member(self, key: u64) -> u64 {
        self.hash.map_or(0, |value| mix(key, value))
    }
}

fn mix(seed: u64, value: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, &value.to_le_bytes())
}

/// An array's hash and text, element by element.
#[derive(Default)]
struct Elements {
    count: u32,
    numbers: bool,
    text_bytes: u64,
    first: Option<u64>,
    chain: u64,
}

impl Elements {
    fn push(&mut self, element: Canonical) {
        if self.count == 0 {
            self.first = element.hash;
            self.numbers = element.number;
        }
        self.count = self.count.saturating_add(1);
        self.text_bytes += element.text_bytes;
        self.chain = mix(self.chain ^ ARRAY, element.hash.unwrap_or_default());
    }

    fn hash(&self) -> Option<u64> {
        if self.count > 1 {
            Some(self.chain)
        } else {
            self.first
        }
    }
}

/// An object's key.
struct Key {
    hash: u64,
    is_text: bool,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a member's name")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
        Ok(Key {
            hash: XxHash3_64::oneshot(key.as_bytes()),
            is_text: key == "text",
        })
    }
}

impl<'de> Deserialize<'de> for Canonical {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CanonicalVisitor)
    }
}

struct CanonicalVisitor;

impl<'de> Visitor<'de> for CanonicalVisitor {
    type Value = Canonical;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Canonical, E> {
        Ok(Canonical::of(BOOL, &[u8::from(value)]))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Canonical, E> {
        Ok(Canonical::of(NUMBER, &value.to_le_bytes()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Canonical, E> {
        Ok(Canonical::of(NUMBER, &value.to_le_bytes()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Canonical, E> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() == 0.0 && value.abs() < EXACT {
            return self.visit_i64(value as i64);
        }
        Ok(Canonical::of(NUMBER, &value.to_le_bytes()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Canonical, E> {
        if value.is_empty() {
            return Ok(Canonical::default());
        }
        let canonical = Canonical::of(STRING, value.as_bytes());
        Ok(Canonical {
            text_bytes: value.len() as u64,
            ..canonical
        })
    }

    fn visit_unit<E: de::Error>(self) -> Result<Canonical, E> {
        Ok(Canonical::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Canonical, A::Error> {
        let mut elements = Elements::default();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        Ok(Canonical {
            hash: elements.hash(),
            text_bytes: elements.text_bytes,
            number: false,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Canonical, A::Error> {
        let mut text = None;
        let mut sum = 0u64;
        while let Some(key) = map.next_key::<Key>()? {
            let value: Canonical = map.next_value()?;
            sum = sum.wrapping_add(value.member(key.hash));
            if key.is_text && value.text_bytes > 0 {
                text = Some(value);
            }
        }
        let object = (sum != 0).then(|| mix(OBJECT, sum));
        Ok(text.unwrap_or(Canonical {
            hash: object,
            text_bytes: 0,
            number: false,
        }))
    }
}

/// The messages of a chat, or the prompts of a completion.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Prompt {
    pub(super) items: u32,
    pub(super) text_bytes: u64,
    hash: Option<u64>,
}

/// The fingerprint of a request.
pub(super) fn fingerprint(prompt: &Prompt, seed: Canonical, max_tokens: Option<u64>) -> u64 {
    let absent_or = |hash: Option<u64>| hash.unwrap_or_default();
    let limit = max_tokens.map(|tokens| mix(NUMBER, tokens));
    [prompt.hash, seed.hash, limit]
        .into_iter()
        .map(absent_or)
        .fold(REQUEST, mix)
}

/// The fingerprint of a request that is any JSON value.
pub(super) fn of_value(value: Canonical) -> u64 {
    mix(AGENT, value.hash.unwrap_or_default())
}

/// The fingerprint of a request by its method, what that names, and what it is given.
pub(super) fn rpc(names: [Option<&str>; 2], parts: [Canonical; 3]) -> u64 {
    let names = names.map(|name| name.map(|name| Canonical::of(STRING, name.as_bytes())));
    let names = names.map(Option::unwrap_or_default);
    let all = names.into_iter().chain(parts);
    all.map(|part| part.hash.unwrap_or_default()).fold(RPC, mix)
}

/// Reads `prompt`: a string, token ids, or an array of either.
pub(super) fn prompts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Prompt, D::Error> {
    deserializer.deserialize_any(PromptsVisitor)
}

struct PromptsVisitor;

impl<'de> Visitor<'de> for PromptsVisitor {
    type Value = Prompt;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a prompt: a string, token ids, or an array of either")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Prompt, E> {
        Ok(Prompt::default())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Prompt, E> {
        let text = CanonicalVisitor.visit_str::<E>(value)?;
        Ok(Prompt {
            items: 1,
            text_bytes: text.text_bytes,
            hash: text.hash,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Prompt, A::Error> {
        let mut elements = Elements::default();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        let items = if elements.numbers { 1 } else { elements.count };
        Ok(Prompt {
            items,
            text_bytes: elements.text_bytes,
            hash: elements.hash(),
        })
    }
}

/// The prompt of a chat. A `system` that stands beside the messages is the first of them.
pub(super) fn chat(system: Canonical, messages: &[Message]) -> Prompt {
    let mut elements = Elements::default();
    if system.hash.is_some() {
        elements.push(Message::said("system", system).0);
    }
    for message in messages {
        elements.push(message.0);
    }
    Prompt {
        items: elements.count,
        text_bytes: elements.text_bytes,
        hash: elements.hash(),
    }
}

/// The input of a response: a text, which is what the user says, or a list of items.
#[derive(Default)]
pub(super) struct Items(pub(super) Vec<Message>);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemsVisitor)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Items;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an input: a string or an array of items")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Items, E> {
        Ok(Items::default())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Items, E> {
        let content = CanonicalVisitor.visit_str::<E>(value)?;
        Ok(Items(vec![Message::said("user", content)]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Items(items))
    }
}

/// The members of a message that make the prompt; gateways add and drop others.
pub(super) struct Message(Canonical);

impl Message {
    fn said(role: &str, content: Canonical) -> Self {
        let role = Canonical::of(STRING, role.as_bytes());
        let role = role.member(Member::Role as u64);
        let sum = MESSAGE
            .wrapping_add(role)
            .wrapping_add(content.member(Member::Content as u64));
        Self::of(sum, content.text_bytes)
    }

    fn of(sum: u64, text_bytes: u64) -> Self {
        Self(Canonical {
            hash: Some(mix(MESSAGE, sum)),
            text_bytes,
            number: false,
        })
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Member {
    Role,
    Name,
    Content,
    ToolCalls,
    ToolCallId,
    /// Of a call or its output among the items of a response, as the next two.
    CallId,
    Arguments,
    Output,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message, A::Error> {
        let mut text_bytes = 0;
        let mut sum = MESSAGE;
        while let Some(member) = map.next_key()? {
            if let Member::Other = member {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: Canonical = map.next_value()?;
            if let Member::Content = member {
                text_bytes = value.text_bytes;
            }
            sum = sum.wrapping_add(value.member(member as u64));
        }
        Ok(Message::of(sum, text_bytes))
    }
}
