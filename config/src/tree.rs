//! The text as a tree that knows where each value stands.

use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::error::ConfigError;
use crate::text;

/// Line and column, from 1.
pub(crate) type Place = Option<(u64, u64)>;

/// A value of the text and its place.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) place: Place,
    pub(crate) node: Node,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Null,
    Bool,
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<Entry>),
}

/// One key of a mapping and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) value: Tree,
}

impl Tree {
    /// Reads `text`; a file without content is refused.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        if text
            .lines()
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
        {
            return Err(ConfigError::whole_file(
                path,
                "is empty; start from one of the shipped files",
            ));
        }
        let spanned: Spanned<Node> = text::decode(path, text)?;
        Ok(Self::from(spanned))
    }

    /// The place of the value that `at` names, such as `taps[1].listen`; of the nearest part that exists if it is absent.
    pub(crate) fn place(&self, at: &str) -> Place {
        let mut tree = self;
        let mut place = self.place;
        let mut rest = at;
        while let Some((next, left)) = tree.step(rest) {
            tree = next;
            place = next.place.or(place);
            rest = left;
        }
        place
    }

    /// The part that `at` begins with, and what is left of `at`. A key may hold dots itself, as
    /// `g5.2xlarge` does: the longest key that fits is meant.
    fn step<'a>(&self, at: &'a str) -> Option<(&Self, &'a str)> {
        match &self.node {
            Node::Map(entries) => entries
                .iter()
                .filter_map(|entry| Some((entry, after_key(at, &entry.key)?)))
                .max_by_key(|(entry, _)| entry.key.len())
                .map(|(entry, left)| (&entry.value, left)),
            Node::List(items) => {
                let (index, left) = at.strip_prefix('[')?.split_once(']')?;
                let item = items.get(index.parse::<usize>().ok()?)?;
                Some((item, left.strip_prefix('.').unwrap_or(left)))
            }
            _ => None,
        }
    }
}

/// What `at` says after `key`; `None` if it does not begin with it.
fn after_key<'a>(at: &'a str, key: &str) -> Option<&'a str> {
    let left = at.strip_prefix(key).filter(|_| !key.is_empty())?;
    if left.is_empty() || left.starts_with('[') {
        Some(left)
    } else {
        left.strip_prefix('.')
    }
}

impl From<Spanned<Node>> for Tree {
    fn from(spanned: Spanned<Node>) -> Self {
        Self {
            place: place(&spanned),
            node: spanned.value,
        }
    }
}

fn place<T>(spanned: &Spanned<T>) -> Place {
    Some((spanned.referenced.line(), spanned.referenced.column())).filter(|at| at.0 > 0)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        Node::deserialize(from)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Bool)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Integer(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        Ok(Node::Integer(value))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        Ok(i128::try_from(value).map_or(Node::Text(value.to_string()), Node::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element::<Spanned<Node>>()? {
            items.push(item.into());
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = from.next_key::<Spanned<String>>()? {
            let key_place = place(&key);
            let value = from.next_value::<Spanned<Node>>()?.into();
            entries.push(Entry {
                key: key.value,
                key_place,
                value,
            });
        }
        Ok(Node::Map(entries))
    }
}
