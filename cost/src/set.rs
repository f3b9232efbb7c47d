//! What if: one value of the plan or one price in the place of another.

use config::plan::Plan;
use config::prices::PriceBook;
use serde_json::Value;

/// Why `--set` cannot be done, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--set {text}: {problem}")]
pub struct SetError {
    text: String,
    problem: String,
}

/// Sets what `text`, a `key=value`, says: the key is the id of a price (`ec2.g5.2xlarge.spot`) or names a part of the
/// plan (`hardware.purchase`). The plan is checked anew.
///
/// # Errors
/// The text is no `key=value`, there is no such price or part, or the plan would be wrong with it.
pub fn apply(plan: &mut Plan, prices: &mut PriceBook, text: &str) -> Result<(), SetError> {
    let failed = |problem: String| SetError {
        text: text.to_owned(),
        problem,
    };
    let Some((key, value)) = text.split_once('=') else {
        return Err(failed("write it as KEY=VALUE".to_owned()));
    };
    let (key, value) = (key.trim(), value.trim());
    if prices.get(key).is_some() {
        let number = value
            .parse()
            .map_err(|_| failed(format!("`{value}` is no number; a price is in US dollars")))?;
        return prices.set(key, number).map_err(failed);
    }
    let mut tree = serde_json::to_value(&*plan).map_err(|error| failed(error.to_string()))?;
    let Some(place) = key
        .split('.')
        .try_fold(&mut tree, |tree, step| tree.get_mut(step))
    else {
        let near = near(key, &tree, prices);
        return Err(failed(format!(
            "there is no part of the plan and no price of this name{near}"
        )));
    };
    *place = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    without_nulls(&mut tree);
    // YAML holds JSON, so the plan's own check does for a changed plan too.
    let changed = config::from_text::<Plan>("--set", &tree.to_string())
        .map_err(|error| failed(error.to_string()))?;
    *plan = changed.into_inner();
    Ok(())
}

/// Absent parts are left out of a file.
fn without_nulls(tree: &mut Value) {
    if let Value::Object(parts) = tree {
        parts.retain(|_, part| !part.is_null());
        parts.values_mut().for_each(without_nulls);
    }
}

/// The names that are most like `key`, as a hint: by the words that they share, then by how far they are the same.
fn near(key: &str, tree: &Value, prices: &PriceBook) -> String {
    let words = |name: &str| -> Vec<String> {
        name.split(['.', '-', '_'])
            .filter(|word| word.len() > 1)
            .map(str::to_owned)
            .collect()
    };
    let wanted = words(key);
    let mut names: Vec<String> = prices.ids().map(str::to_owned).collect();
    list("", tree, &mut names);
    let alike = |name: &str| {
        let shared = words(name).iter().filter(|w| wanted.contains(w)).count();
        let begin = name.bytes().zip(key.bytes()).take_while(|(a, b)| a == b);
        (shared, begin.count())
    };
    names.retain(|name| alike(name).0 > 0);
    names.sort_by_key(|name| (std::cmp::Reverse(alike(name)), name.clone()));
    let best: Vec<String> = names
        .iter()
        .take(5)
        .map(|name| format!("`{name}`"))
        .collect();
    match best.is_empty() {
        true => String::new(),
        false => format!("; near it: {}", best.join(", ")),
    }
}

/// The names of all parts, as they are written in a key.
fn list(at: &str, tree: &Value, names: &mut Vec<String>) {
    match tree {
        Value::Object(parts) => {
            for (name, part) in parts {
                let at = match at.is_empty() {
                    true => name.clone(),
                    false => format!("{at}.{name}"),
                };
                list(&at, part, names);
            }
        }
        _ => names.push(at.to_owned()),
    }
}
