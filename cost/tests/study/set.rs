//! What if: one value in the place of another.

use crate::rig::{plan, prices};
use config::plan::Purchase;

#[test]
fn parts_of_the_plan_and_prices_are_set() {
    let (mut plan, mut prices) = (plan(), prices());
    for text in [
        "hardware.purchase=spot",
        "traffic.rate = 3.5",
        "ec2.g5.2xlarge.spot=0.6",
        "models.default=nova-pro",
        "rates=[1, 2]",
    ] {
        cost::apply(&mut plan, &mut prices, text).unwrap();
    }
    assert_eq!(plan.hardware.purchase, Purchase::Spot);
    assert_eq!(plan.rates, [1.0, 2.0]);
    assert_eq!(plan.models.default, "nova-pro");
    assert!((plan.traffic.rate - 3.5).abs() < 1e-12);
    assert!((prices.get("ec2.g5.2xlarge.spot").unwrap().value - 0.6).abs() < 1e-12);
}

#[test]
fn what_cannot_be_set_is_said_with_what_is_near() {
    let (plan, prices) = (plan(), prices());
    for (text, wanted) in [
        ("traffic.rate", "write it as KEY=VALUE"),
        ("traffic.rats=3", "`traffic.rate`"),
        ("ec2.g5.2xlarge.sport=3", "`ec2.g5.2xlarge.spot`"),
        ("ec2.g5.2xlarge.spot=cheap", "no number"),
        ("ec2.g5.2xlarge.spot=-1", "no price"),
        ("traffic.rate=often", "rate"),
        ("traffic.duty=2", "duty"),
        ("hardware.purchase=stolen", "stolen"),
    ] {
        let (mut changed, mut table) = (plan.clone(), prices.clone());
        let said = cost::apply(&mut changed, &mut table, text)
            .unwrap_err()
            .to_string();
        assert!(said.contains(wanted) && said.contains(text), "{said}");
        assert_eq!((&changed, &table), (&plan, &prices));
    }
}
