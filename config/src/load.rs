//! From a file to its checked form.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::error::{ConfigError, Finding};
use crate::shape;
use crate::text;
use crate::tree::{Place, Tree};

/// A form that has its own file and knows what must hold between its parts.
pub trait Form: DeserializeOwned + JsonSchema {
    /// What the file is called in messages: `chain`, `scenario`, ….
    const NAME: &'static str;

    /// Reports what is wrong although every part is well formed by itself.
    fn check(&self, report: &mut Report<'_>);
}

/// A form whose file was read and found right, with the text's places for later findings.
#[derive(Clone, Debug)]
pub struct Checked<T> {
    value: T,
    path: PathBuf,
    tree: Tree,
}

impl<T> Checked<T> {
    /// The form itself.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The file from which it was read.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `relative` as the file means it: against the file's own directory.
    #[must_use]
    pub fn beside(&self, relative: &Path) -> PathBuf {
        beside(&self.path, relative)
    }

    /// A finding at the value that `at` names, such as `taps[1].listen`; for checks that need more than one file.
    #[must_use]
    pub fn finding(&self, at: &str, message: impl Into<String>) -> Finding {
        Finding {
            file: self.path.clone(),
            place: self.tree.place(at),
            message: message.into(),
        }
    }

    /// `file:line:column` of the value that `at` names.
    #[must_use]
    pub fn location(&self, at: &str) -> String {
        location(&self.path, self.tree.place(at))
    }
}

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Collects findings of one file.
#[derive(Debug)]
pub struct Report<'a> {
    path: &'a Path,
    tree: &'a Tree,
    findings: Vec<Finding>,
}

impl Report<'_> {
    /// Adds a finding at the value that `at` names, such as `taps[1].listen`; the nearest part that the file holds if it is absent.
    pub fn add(&mut self, at: &str, message: impl Into<String>) {
        let place = self.tree.place(at);
        self.findings.push(Finding {
            file: self.path.to_path_buf(),
            place,
            message: message.into(),
        });
    }

    /// Adds a finding at a place of the text.
    pub(crate) fn add_place(&mut self, place: Place, message: String) {
        self.findings.push(Finding {
            file: self.path.to_path_buf(),
            place,
            message,
        });
    }

    /// `file:line:column` of the value that `at` names, to point at the other half of a conflict.
    #[must_use]
    pub fn location(&self, at: &str) -> String {
        location(self.path, self.tree.place(at))
    }

    /// Whether the file that `relative` means exists; adds a finding at `at` if not.
    pub fn needs_file(&mut self, at: &str, relative: &Path) {
        let path = beside(self.path, relative);
        if !path.is_file() {
            self.add(at, format!("`{}` is not a file; correct the path, which is relative to this file's directory", path.display()));
        }
    }
}

/// Reads the file at `path` and checks it.
///
/// # Errors
/// Every finding of the first step that fails: reading the file, its YAML, the shape of its
/// values, and what must hold between them.
pub fn load<T: Form>(path: impl AsRef<Path>) -> Result<Checked<T>, ConfigError> {
    let path = path.as_ref();
    let text = text::read(path, T::NAME)?;
    from_text(path, &text)
}

/// Checks `text` as if it stood in the file at `path`.
///
/// # Errors
/// As [`load`], but for reading the file.
pub fn from_text<T: Form>(path: impl AsRef<Path>, text: &str) -> Result<Checked<T>, ConfigError> {
    let path = path.as_ref();
    let tree = Tree::parse(path, text)?;
    let mut report = Report {
        path,
        tree: &tree,
        findings: Vec::new(),
    };
    shape::check::<T>(&tree, &mut report);
    finish(report.findings)?;
    let value: T = text::decode(path, text)?;
    let mut report = Report {
        path,
        tree: &tree,
        findings: Vec::new(),
    };
    value.check(&mut report);
    finish(report.findings)?;
    Ok(Checked {
        value,
        path: path.to_path_buf(),
        tree,
    })
}

fn finish(findings: Vec<Finding>) -> Result<(), ConfigError> {
    if findings.is_empty() {
        Ok(())
    } else {
        Err(ConfigError::new(findings))
    }
}

fn location(path: &Path, place: Option<(u64, u64)>) -> String {
    Finding {
        file: path.to_path_buf(),
        place,
        message: String::new(),
    }
    .to_string()
    .trim_end_matches(": ")
    .to_owned()
}

fn beside(file: &Path, relative: &Path) -> PathBuf {
    file.parent()
        .map_or_else(|| relative.to_path_buf(), |dir| dir.join(relative))
}
