//! The price table: all files of a directory together.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Basis, Price, PriceFile};
use crate::error::{ConfigError, Finding};
use crate::load::{Checked, from_text, load};

/// The table that is part of the program, so that it can be asked away from its repository.
const SHIPPED: [(&str, &str); 5] = [
    (
        "config/prices/bedrock.yaml",
        include_str!("../../prices/bedrock.yaml"),
    ),
    (
        "config/prices/import.yaml",
        include_str!("../../prices/import.yaml"),
    ),
    (
        "config/prices/agentcore.yaml",
        include_str!("../../prices/agentcore.yaml"),
    ),
    (
        "config/prices/eks.yaml",
        include_str!("../../prices/eks.yaml"),
    ),
    (
        "config/prices/plan.yaml",
        include_str!("../../prices/plan.yaml"),
    ),
];

/// What `set` writes as the source of a price.
const SET: &str = "set on the command line";

/// Prices by id, of one Region.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceBook {
    region: String,
    prices: BTreeMap<String, Price>,
}

impl PriceBook {
    /// The table of the program itself.
    ///
    /// # Errors
    /// None but by a mistake in the program: a test reads it.
    pub fn shipped() -> Result<Self, ConfigError> {
        let files = SHIPPED.iter().map(|(path, text)| from_text(path, text));
        Self::of(Path::new("config/prices"), files.collect())
    }

    /// Reads every `.yaml` file of `dir`.
    ///
    /// # Errors
    /// Findings of every file: one that cannot be read or is wrong, an id that two files give, files of
    /// different Regions, a directory without any.
    pub fn load(dir: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let dir = dir.as_ref();
        let entries = fs::read_dir(dir).map_err(|error| {
            ConfigError::whole_file(
                dir,
                format!("cannot be read ({error}); give a directory of price files"),
            )
        })?;
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
            .collect();
        paths.sort();
        Self::of(dir, paths.iter().map(load).collect())
    }

    fn of(
        dir: &Path,
        files: Vec<Result<Checked<PriceFile>, ConfigError>>,
    ) -> Result<Self, ConfigError> {
        let mut findings: Vec<Finding> = Vec::new();
        let mut good = Vec::new();
        for file in files {
            match file {
                Ok(file) => good.push(file),
                Err(error) => findings.extend(error.into_findings()),
            }
        }
        let mut prices = BTreeMap::new();
        let mut places: BTreeMap<String, String> = BTreeMap::new();
        let region = good.first().map(|file| file.region.clone());
        for file in &good {
            if Some(&file.region) != region.as_ref() {
                findings.push(file.finding(
                    "region",
                    format!(
                        "`{}` is not `{}`, the Region of the files before it; keep a directory for each Region",
                        file.region,
                        region.as_deref().unwrap_or_default()
                    ),
                ));
            }
            for (id, price) in &file.prices {
                let at = format!("prices.{id}");
                if let Some(other) = places.get(id) {
                    findings.push(file.finding(
                        &at,
                        format!("`{id}` has a price at {other} already; remove one"),
                    ));
                    continue;
                }
                places.insert(id.clone(), file.location(&at));
                prices.insert(id.clone(), price.clone());
            }
        }
        if !findings.is_empty() {
            return Err(ConfigError::new(findings));
        }
        match region {
            Some(region) => Ok(Self { region, prices }),
            None => Err(ConfigError::whole_file(
                dir,
                "holds no `.yaml` file of prices; the project's are in config/prices",
            )),
        }
    }

    /// The Region of all prices.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The price with this id; `None`: nobody has found it, and whatever needs it cannot be told.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Price> {
        self.prices.get(id)
    }

    /// All ids, in their order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.prices.keys().map(String::as_str)
    }

    /// Puts `value` in the place of a price that is there: what if it were that? It counts as assumed, and exact.
    ///
    /// # Errors
    /// There is no such price.
    pub fn set(&mut self, id: &str, value: f64) -> Result<(), String> {
        if !(value.is_finite() && value >= 0.0) {
            return Err(format!("`{value}` is no price; give US dollars, 0 or more"));
        }
        let Some(price) = self.prices.get_mut(id) else {
            return Err(format!(
                "there is no price `{id}`; add it to a file of the price table, with its unit and source"
            ));
        };
        price.value = value;
        price.low = None;
        price.high = None;
        price.basis = Basis::Assumed;
        SET.clone_into(&mut price.source);
        Ok(())
    }
}
