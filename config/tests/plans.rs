//! Plans and geometry tables that contradict themselves are refused with their place.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails loudly")]

use config::{Form, Geometry, Plan};

fn refused<T: Form>(file: &str, from: &str, to: &str) -> String {
    let good = std::fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert!(good.contains(from), "{from}");
    match config::from_text::<T>(file, &good.replacen(from, to, 1)) {
        Ok(_) => panic!("accepted: {to}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn plans_that_contradict_themselves_are_refused_with_their_place() {
    for (from, to, told) in [
        (
            "rates: [1, 5,",
            "rates: [1, 1,",
            "plan-sound.yaml:21:12: 1 does not rise above 1",
        ),
        (
            "rates: [1,",
            "rates: [0,",
            "`rates[0]` is 0; write a number from 0.0001",
        ),
        (
            "region: us-east-1",
            "region: \" \"",
            "plan-sound.yaml:4:9: `region` is empty",
        ),
        (
            "fixed: plan",
            "fixed: plan\nguardrails: [pii, pii]",
            "`pii` is listed twice",
        ),
        (
            "  a1: &estimate",
            "  baseline: &estimate",
            "`baseline` has no capacity of its own",
        ),
        (
            "rate: 1.2, low: 0.6",
            "rate: 1.2, low: 1.3",
            "1.2 is not between `low` 1.3 and `high` 1.6",
        ),
        (
            "context_tokens: 8192",
            "context_tokens: 1000",
            "a call of `traffic` has 1500 tokens and does not fit into 1000",
        ),
        (
            "output_tokens: 1000",
            "output_tokens: 1000\n  prompt_cache_share: 0.8\n  cache_write_share: 0.3",
            "makes 1.1 of a prompt",
        ),
        ("quantisation: bf16", "quantisation: awq", "`awq-int4`"),
        ("purchase: on-demand", "purchase: reserved", "`reserved-1y`"),
        ("tensor: 1,", "tensor: 0,", "write a number from 1 to 64"),
        (
            "warm: windows",
            "warm: never",
            "use one of `always`, `windows`",
        ),
        (
            "  output_tokens: 1000",
            "  output_tokens: 1000\n  duty: 2",
            "write a number from 0.0001 to 1",
        ),
        ("region: us-east-1\n", "", "lacks the key `region`"),
    ] {
        let error = refused::<Plan>("plan-sound.yaml", from, to);
        assert!(error.contains(told), "{to}\n{error}\nexpected: {told}");
        assert!(error.starts_with("plan-sound.yaml:"), "{error}");
    }
}

#[test]
fn geometry_tables_that_contradict_themselves_are_refused_with_their_place() {
    for (from, to, told) in [
        (
            "gpus: 4, gpu: A10G, gpu_memory_mib: 22888, link: pcie",
            "gpus: 4, gpu: A10G, gpu_memory_mib: 22888, link: none",
            "geometry.yaml:10:66: 4 GPUs and link `none` contradict each other",
        ),
        (
            "kv_heads: 8",
            "kv_heads: 7",
            "32 heads do not divide into groups of 7",
        ),
        (
            "parameters_billion: 8.03",
            "parameters_billion: 0.8",
            "fewer than those of the embeddings",
        ),
        (
            "gone_since: 2026-03-01",
            "gone_since: 2026-02-01",
            "2026-02-01 is before `until` 2026-03-01",
        ),
        (
            "until: 2026-10-14",
            "until: 2026-02-30",
            "`2026-02-30` is no day",
        ),
    ] {
        let error = refused::<Geometry>("geometry.yaml", from, to);
        assert!(error.contains(told), "{to}\n{error}\nexpected: {told}");
        assert!(error.starts_with("geometry.yaml:"), "{error}");
    }
}

/// A key with dots in it is found: the longest key that the text begins with.
#[test]
fn findings_point_at_rows_whose_names_have_dots() {
    let error = refused::<Geometry>("geometry.yaml", "kv_heads: 8", "kv_heads: 7");
    assert!(error.starts_with("geometry.yaml:31:15:"), "{error}");
}

#[test]
fn the_tables_of_the_program_are_those_of_the_files() {
    let home = env!("CARGO_MANIFEST_DIR");
    let plan = config::load::<Plan>(format!("{home}/plan.yaml")).unwrap();
    assert_eq!(*Plan::shipped().unwrap(), *plan);
    let geometry = config::load::<Geometry>(format!("{home}/geometry.yaml")).unwrap();
    assert_eq!(*Geometry::shipped().unwrap(), *geometry);
}
