//! Every shipped file loads, and the published schemas are those of the types.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails loudly")]

use std::fs;
use std::path::{Path, PathBuf};

use config::{Calibration, Chain, Form, Scenario, TapProcess};

fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn yaml_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    paths.sort();
    paths
}

fn loads<T: Form>(path: &Path) {
    if let Err(error) = config::load::<T>(path) {
        panic!("{error}");
    }
}

/// A file of a directory that holds several forms.
fn by_name(path: &Path) {
    let name = path.file_stem().unwrap().to_str().unwrap();
    match name {
        "matrix" => match config::matrix(path) {
            Ok(set) => assert!(set.runs.len() >= 8),
            Err(error) => panic!("{error}"),
        },
        "variants" => loads::<config::Variants>(path),
        "plan" | "plan-sound" => loads::<config::Plan>(path),
        "objectives" => loads::<config::Objectives>(path),
        "facts" => loads::<config::Facts>(path),
        "workload" => loads::<config::Workload>(path),
        "geometry" => loads::<config::Geometry>(path),
        "tap" => loads::<TapProcess>(path),
        "demo" => loads::<config::Demo>(path),
        "4-gateway-overhead" => loads::<Scenario>(path),
        name if name.starts_with("calibration") => loads::<Calibration>(path),
        _ => panic!("{}: no test loads it", path.display()),
    }
}

#[test]
fn every_shipped_file_loads_as_the_form_of_its_directory() {
    let mut read = 0;
    for (dir, load) in [
        ("", by_name as fn(&Path)),
        ("chains", loads::<Chain>),
        ("taps", loads::<TapProcess>),
        ("scenarios", loads::<Scenario>),
        ("experiments", loads::<Scenario>),
        ("demo", by_name),
        ("demo/chains", loads::<Chain>),
        ("demo/scenarios", loads::<Scenario>),
        ("demo/experiments", loads::<Scenario>),
    ] {
        for path in yaml_in(&home().join(dir)) {
            load(&path);
            read += 1;
        }
    }
    assert!(read >= 20, "only {read} shipped files were found");
}

#[test]
fn the_demonstration_and_all_that_it_names_fit_together() {
    let set = config::demo(home().join("demo/demo.yaml")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(set.chains().count(), 7);
}

#[test]
fn all_shipped_chains_can_be_opened_by_one_process() {
    let chains =
        config::chains(&yaml_in(&home().join("chains"))).unwrap_or_else(|error| panic!("{error}"));
    for chain in &chains {
        let controlled = chain.control_of.as_ref();
        let known = controlled.is_none_or(|of| chains.iter().any(|chain| chain.name == *of));
        assert!(known, "{}: controls nothing", chain.location("control_of"));
    }
}

#[test]
fn a_recipe_that_was_never_run_says_so() {
    let bifrost = config::load::<Chain>(home().join("chains/bifrost.yaml")).unwrap();
    let recipe = bifrost.recipe.as_ref().unwrap();
    assert!(!recipe.tried && recipe.explain.contains("Never run"));
}

#[test]
fn an_experiment_that_was_never_run_on_a_cluster_says_so() {
    for path in yaml_in(&home().join("experiments")) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("NEVER RUN"), "{}", path.display());
    }
}

#[test]
fn every_file_names_the_schema_that_an_editor_needs() {
    for dir in [
        "",
        "chains",
        "taps",
        "scenarios",
        "experiments",
        "demo",
        "demo/chains",
        "demo/scenarios",
        "demo/experiments",
    ] {
        for path in yaml_in(&home().join(dir)) {
            let text = fs::read_to_string(&path).unwrap();
            let named = text
                .lines()
                .next()
                .and_then(|line| line.strip_prefix("# yaml-language-server: $schema="));
            let schema = named.map(|schema| path.parent().unwrap().join(schema));
            assert!(
                schema.is_some_and(|schema| schema.is_file()),
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    let dir = home().join("schema");
    if std::env::var_os("UPDATE").is_some_and(|update| update == "1") {
        for (name, text) in config::schema::published() {
            fs::write(dir.join(name), text).unwrap();
        }
    }
    for (name, text) in config::schema::published() {
        let published = fs::read_to_string(dir.join(&name)).unwrap_or_default();
        assert!(
            published == text,
            "config/schema/{name} is out of date; run `UPDATE=1 cargo test -p config`"
        );
    }
}

/// The chain that `docs/aws.md` shows.
#[test]
fn the_chain_of_the_documentation_is_good() {
    let page = std::fs::read_to_string(home().join("../docs/aws.md")).unwrap();
    let block = page
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let chain = config::from_text::<config::Chain>("docs/aws.md", block.unwrap());
    let chain = chain.unwrap_or_else(|error| panic!("{error}")).into_inner();
    assert_eq!(chain.taps[0].region(), Some("us-east-1"));
}
