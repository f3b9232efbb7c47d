//! Names that become directories, labels and series: what they may be made of.

use std::collections::BTreeMap;

use crate::load::Report;

/// Reports a name that could not be a directory or a label.
pub(crate) fn check(report: &mut Report<'_>, at: &str, name: &str) {
    let valid = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let good = name
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric())
        && name.bytes().all(valid)
        && name.len() <= 64;
    if !good {
        report.add(at, format!("`{at}` is `{name}`; use 1 to 64 letters, digits, `-`, `_` and `.`, the first a letter or digit"));
    }
}

/// Reports names that occur twice, with the place of the first.
pub(crate) fn unique<'n>(report: &mut Report<'_>, names: impl Iterator<Item = (String, &'n str)>) {
    let mut first: BTreeMap<&str, String> = BTreeMap::new();
    for (at, name) in names {
        if let Some(other) = first.get(name) {
            let other = report.location(other);
            report.add(
                &at,
                format!("the name `{name}` is taken at {other}; choose another"),
            );
        } else {
            first.insert(name, at);
        }
    }
}
