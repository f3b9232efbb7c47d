//! From a file to its text, and from the text to a typed form.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Options, UserMessageFormatter};

use crate::error::{ConfigError, Finding};

/// No file of ours comes near this; a larger one is the wrong file.
const TEXT_MAX: u64 = 4 << 20;

/// The text of the file at `path`, which is to hold a `what`.
pub(crate) fn read(path: &Path, what: &str) -> Result<String, ConfigError> {
    let whole = |message: String| ConfigError::whole_file(path, message);
    let meta = fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => whole(format!("no such file; give the path of a {what} file")),
        _ => whole(format!(
            "cannot be read: {error}; give the path of a {what} file"
        )),
    })?;
    if meta.is_dir() {
        return Err(whole(format!("is a directory; name a {what} file in it")));
    }
    if meta.len() > TEXT_MAX {
        return Err(whole(format!(
            "holds {} bytes, more than the {TEXT_MAX} allowed; give the path of a {what} file",
            meta.len()
        )));
    }
    let bytes = fs::read(path)
        .map_err(|error| whole(format!("cannot be read: {error}; check its permissions")))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..valid];
        let line = before
            .iter()
            .fold(1, |lines, byte| lines + u64::from(*byte == b'\n'));
        let column = 1 + before
            .iter()
            .rev()
            .take_while(|byte| **byte != b'\n')
            .fold(0, |count, _| count + 1);
        ConfigError::new(vec![Finding {
            file: path.to_path_buf(),
            place: Some((line, column)),
            message: "is not UTF-8 from here on; save the file as UTF-8".to_owned(),
        }])
    })
}

/// `text` as a `T`; the reader's own words for what is wrong with it.
pub(crate) fn decode<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
        let place = error
            .location()
            .map(|at| (at.line(), at.column()))
            .filter(|at| at.0 > 0);
        let words = error.render_with_formatter(&UserMessageFormatter);
        let first = words.lines().next().unwrap_or_default();
        // The reader appends the place in its own form; ours stands before the message.
        let message = first.split(" at line ").next().unwrap_or(first);
        ConfigError::new(vec![Finding {
            file: path.to_path_buf(),
            place,
            message: format!("{message}; correct the text here"),
        }])
    })
}

fn options() -> Options {
    let mut options = Options::default();
    options.duplicate_keys = DuplicateKeyPolicy::Error;
    options.merge_keys = MergeKeyPolicy::Error;
    // `off` and `no` are words of ours and not booleans.
    options.strict_booleans = true;
    options.with_snippet = false;
    options
}
