//! Holds a text against the JSON Schema of its form, so that all findings come at once and with their place.

mod value;

use serde_json::{Map, Value};

use crate::load::{Form, Report};
use crate::schema;
use crate::tree::{Entry, Node, Tree};

/// Reports everything in `tree` that the schema of `T` does not allow.
pub(crate) fn check<T: Form>(tree: &Tree, report: &mut Report<'_>) {
    let schema = schema::of::<T>();
    Shape {
        root: &schema,
        report,
        what: T::NAME,
    }
    .tree(tree, &schema, "");
}

/// One walk over a text and its schema.
struct Shape<'a, 'r> {
    root: &'a Value,
    report: &'a mut Report<'r>,
    what: &'static str,
}

impl<'a> Shape<'a, '_> {
    /// Checks one value against one schema. `at` is the value's path, empty for the whole file.
    fn tree(&mut self, tree: &Tree, schema: &'a Value, at: &str) {
        let schema = self.resolved(schema);
        if let Some(options) = list(schema, "anyOf") {
            self.optional(tree, options, at);
        } else if let Some(options) = list(schema, "oneOf") {
            self.one_of(tree, options, at);
        } else if let Some(message) = value::problem(&tree.node, schema) {
            self.report
                .add_place(tree.place, format!("{}{message}", self.named(at)));
        } else {
            match &tree.node {
                Node::Map(entries) => self.map(tree, entries, schema, at),
                Node::List(items) => self.list(items, schema, at),
                _ => {}
            }
        }
    }

    /// A value that may be null: the schema of an optional field.
    fn optional(&mut self, tree: &Tree, options: &'a [Value], at: &str) {
        let is_null = |option: &&Value| option.get("type").is_some_and(|kind| kind == "null");
        if matches!(tree.node, Node::Null) && options.iter().any(|option| is_null(&option)) {
            return;
        }
        if let Some(option) = options.iter().find(|option| !is_null(option)) {
            self.tree(tree, option, at);
        }
    }

    /// One of several words, or a mapping with one of several keys, or either.
    fn one_of(&mut self, tree: &Tree, options: &'a [Value], at: &str) {
        let words: Vec<&str> = options.iter().flat_map(value::words).collect();
        let may_map = options.iter().any(|option| properties(option).is_some());
        let is_map = may_map && matches!(tree.node, Node::Map(_));
        if !words.is_empty() && !is_map {
            if let Some(message) = value::not_among(&tree.node, &words) {
                self.report
                    .add_place(tree.place, format!("{}{message}", self.named(at)));
            }
            return;
        }
        let keys: Vec<&str> = options
            .iter()
            .filter_map(|option| properties(option)?.keys().next())
            .map(String::as_str)
            .collect();
        if let Node::Map(entries) = &tree.node
            && let [entry] = entries.as_slice()
            && let Some(schema) = options
                .iter()
                .find_map(|option| properties(option)?.get(&entry.key))
        {
            return self.tree(&entry.value, schema, &join(at, &entry.key));
        }
        let message = format!(
            "{}must have exactly one of the keys {}",
            self.named(at),
            value::listed(&keys)
        );
        self.report.add_place(tree.place, message);
    }

    fn map(&mut self, tree: &Tree, entries: &[Entry], schema: &'a Value, at: &str) {
        let none = Map::new();
        let known = properties(schema).unwrap_or(&none);
        let others = schema
            .get("additionalProperties")
            .filter(|others| others.is_object());
        for entry in entries {
            let at = join(at, &entry.key);
            if let Some(schema) = properties(schema).and_then(|known| known.get(&entry.key)) {
                self.tree(&entry.value, schema, &at);
            } else if let Some(schema) = others {
                self.tree(&entry.value, schema, &at);
            } else {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                let message = format!(
                    "unknown key `{}`; {}",
                    entry.key,
                    value::nearest(&entry.key, &names)
                );
                self.report
                    .add_place(entry.key_place.or(entry.value.place), message);
            }
        }
        self.missing(tree, entries, schema, at);
    }

    /// Reports every required key that the mapping lacks.
    fn missing(&mut self, tree: &Tree, entries: &[Entry], schema: &'a Value, at: &str) {
        for key in list(schema, "required")
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            if entries.iter().any(|entry| entry.key == key) {
                continue;
            }
            let described = properties(schema).and_then(|known| known.get(key));
            let meaning = described
                .and_then(|schema| self.meaning(schema))
                .unwrap_or_default();
            let owner = if at.is_empty() {
                format!("the {}", self.what)
            } else {
                format!("`{at}`")
            };
            let message = format!("{owner} lacks the key `{key}`; add it{meaning}");
            self.report.add_place(tree.place, message);
        }
    }

    fn list(&mut self, items: &[Tree], schema: &'a Value, at: &str) {
        if let Some(schema) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                self.tree(item, schema, &format!("{at}[{index}]"));
            }
        }
    }

    /// The schema that `schema` refers to, or itself.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|to| to.strip_prefix('#'));
        target
            .and_then(|to| self.root.pointer(to))
            .unwrap_or(schema)
    }

    /// The first sentence of what the documentation says about a key.
    fn meaning(&self, schema: &'a Value) -> Option<String> {
        let text = schema
            .get("description")
            .or_else(|| self.resolved(schema).get("description"))?
            .as_str()?;
        let sentence = text
            .split(". ")
            .next()
            .unwrap_or(text)
            .trim_end_matches('.');
        Some(format!(
            " ({})",
            sentence.split_whitespace().collect::<Vec<_>>().join(" ")
        ))
    }

    fn named(&self, at: &str) -> String {
        if at.is_empty() {
            format!("the {} ", self.what)
        } else {
            format!("`{at}` ")
        }
    }
}

fn join(at: &str, key: &str) -> String {
    if at.is_empty() {
        key.to_owned()
    } else {
        format!("{at}.{key}")
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> Option<&'a [Value]> {
    schema.get(key)?.as_array().map(Vec::as_slice)
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}
