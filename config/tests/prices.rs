//! The price table: what is shipped, and what is refused.

use config::{PriceBook, PriceFile};
use std::fs;
use std::path::{Path, PathBuf};

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("prices")
}

#[test]
fn the_program_holds_the_table_of_the_repository() {
    let book = PriceBook::load(shipped()).unwrap();
    assert_eq!(book, PriceBook::shipped().unwrap());
    assert_eq!(book.region(), "us-east-1");
    // AWS' list price of the plan's machine, 2026-07-20.
    assert!((book.get("ec2.g5.2xlarge.on-demand").unwrap().value - 1.212).abs() < 1e-9);
}

#[test]
fn a_price_that_is_set_counts_as_assumed() {
    let mut book = PriceBook::shipped().unwrap();
    book.set("ec2.g5.2xlarge.spot", 0.5).unwrap();
    let price = book.get("ec2.g5.2xlarge.spot").unwrap();
    assert_eq!(price.bounds(), (0.5, 0.5));
    assert_eq!(price.basis.as_str(), "assumed");
    assert!(book.set("ec2.g5.2xlarge.spot", f64::NAN).is_err());
    assert!(
        book.set("ec2.x.spot", 1.0)
            .unwrap_err()
            .contains("ec2.x.spot")
    );
}

const GOOD: &str = "region: us-east-1
prices:
  a.b: {value: 2, unit: hour, date: 2026-01-01, source: s, basis: listed}
";

#[test]
fn a_wrong_price_is_named_with_its_line() {
    let says = |from: &str, to: &str| {
        let text = GOOD.replacen(from, to, 1);
        config::from_text::<PriceFile>("p.yaml", &text)
            .unwrap_err()
            .to_string()
    };
    for (from, to, wanted) in [
        (
            "source: s",
            "source: \"\"",
            "p.yaml:3:57: nobody could check a price",
        ),
        (
            "value: 2",
            "value: 2, low: 1",
            "has one of `low` and `high`",
        ),
        (
            "value: 2",
            "value: 2, low: 3, high: 4",
            "2 is not between `low` 3 and `high` 4",
        ),
        ("a.b", "A.b", "`A.b` is no id of a price"),
        ("a.b", "ab", "`ab` is no id of a price"),
        ("2026-01-01", "2026-02-30", "no day"),
        ("us-east-1", "\"\"", "p.yaml:1:9: `region` is empty"),
    ] {
        let said = says(from, to);
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn files_that_do_not_fit_together_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let none = PriceBook::load(dir.path()).unwrap_err().to_string();
    assert!(none.contains("holds no `.yaml` file of prices"), "{none}");
    let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    put("1.yaml", GOOD);
    put("2.yaml", &GOOD.replace("us-east-1", "eu-west-1"));
    let said = PriceBook::load(dir.path()).unwrap_err().to_string();
    assert!(
        said.contains("2.yaml:3:3") || said.contains("2.yaml:3:8"),
        "{said}"
    );
    assert!(
        said.contains("`a.b` has a price at") && said.contains("1.yaml:3:"),
        "{said}"
    );
    assert!(said.contains("`eu-west-1` is not `us-east-1`"), "{said}");
    let gone = PriceBook::load(dir.path().join("no"))
        .unwrap_err()
        .to_string();
    assert!(gone.contains("give a directory of price files"), "{gone}");
}
