//! Finds scenarios by their number and chains by their name.

use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};

/// The file of a scenario: `wanted` is its number in the plan, or a file.
pub(super) fn scenario(dir: &Path, wanted: &str) -> anyhow::Result<PathBuf> {
    if wanted.parse::<u8>().is_err() {
        return Ok(PathBuf::from(wanted));
    }
    let shelf = dir.join("scenarios");
    let begin = format!("{wanted}-");
    let mut found: Vec<PathBuf> = files(&shelf)?
        .into_iter()
        .filter(|path| stem(path).starts_with(&begin))
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => bail!(
            "--scenario {wanted}: several files of {} begin with `{begin}`; name one",
            shelf.display()
        ),
        (None, _) => bail!(
            "--scenario {wanted}: no file of {} begins with `{begin}`; there are {}",
            shelf.display(),
            names(&shelf)?
        ),
    }
}

/// The file of a chain: `wanted` is its name, or a file.
pub(super) fn chain(dir: &Path, wanted: &str) -> anyhow::Result<PathBuf> {
    if wanted.contains('/') || Path::new(wanted).extension().is_some() {
        return Ok(PathBuf::from(wanted));
    }
    let shelf = dir.join("chains");
    let path = shelf.join(format!("{wanted}.yaml"));
    if path.is_file() {
        return Ok(path);
    }
    bail!(
        "--chain {wanted}: {} has no {wanted}.yaml; there are {}",
        shelf.display(),
        names(&shelf)?
    )
}

fn files(shelf: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(shelf).with_context(|| {
        format!(
            "{}: cannot be read; run from the repository's root, or say --config-dir",
            shelf.display()
        )
    })?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

fn names(shelf: &Path) -> anyhow::Result<String> {
    let names: Vec<String> = files(shelf)?.iter().map(|path| stem(path)).collect();
    Ok(names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_the_plan_that_is_shipped_is_found_and_others_are_explained() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
        for number in ["1", "2", "3", "4", "6", "7", "8", "9"] {
            let path = scenario(&dir, number).unwrap();
            assert!(stem(&path).starts_with(number), "{}", path.display());
        }
        let missing = scenario(&dir, "12").unwrap_err().to_string();
        assert!(missing.contains("1-simple-inference"), "{missing}");
        assert_eq!(scenario(&dir, "x.yaml").unwrap(), Path::new("x.yaml"));
    }

    #[test]
    fn a_chain_is_found_by_its_name_and_a_wrong_name_gets_the_list() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
        for name in [
            "baseline",
            "baseline-plus",
            "a1",
            "a2",
            "b1",
            "b2",
            "b1-random",
            "relay",
        ] {
            assert!(chain(&dir, name).unwrap().is_file());
        }
        let missing = chain(&dir, "a3").unwrap_err().to_string();
        assert!(missing.contains("a1, a2"), "{missing}");
        assert_eq!(
            chain(&dir, "my/own.yaml").unwrap(),
            Path::new("my/own.yaml")
        );
    }
}
