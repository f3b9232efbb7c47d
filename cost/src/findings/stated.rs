//! Do the plan's own figures agree with the price table?

use super::{
    Evidence, Finding, Inputs, Severity, dollars, evidence, gpu_month, instance_price,
    price_evidence,
};
use crate::model::HOURS;

/// The share of a figure by which it may differ: rounding, and months of 720 to 744 hours.
const TOLERANCE: f64 = 0.05;

/// The control plane's price.
const EKS: &str = "eks.cluster.hour";

pub(super) fn check(inputs: &Inputs<'_>) -> Vec<Finding> {
    let stated = &inputs.plan.stated;
    let hardware = &inputs.plan.hardware;
    let gpu = instance_price(inputs.plan);
    let eks = inputs.prices.get(EKS).map(|price| price.value * HOURS);
    let mut found = Vec::new();
    if let Some(figure) = stated.gpu_month_usd {
        let what = format!(
            "{} × {} {}",
            hardware.count,
            hardware.instance,
            hardware.purchase.as_str()
        );
        let how = format!("{} × the price × {HOURS} h", hardware.count);
        found.extend(compare(
            inputs,
            &Stated {
                at: "stated.gpu_month_usd",
                what,
                figure,
                id: &gpu,
                listed: gpu_month(inputs),
                how,
            },
        ));
    }
    if let Some(figure) = stated.eks_month_usd {
        let how = format!("the price × {HOURS} h");
        found.extend(compare(
            inputs,
            &Stated {
                at: "stated.eks_month_usd",
                what: "the EKS control plane".to_owned(),
                figure,
                id: EKS,
                listed: eks,
                how,
            },
        ));
    }
    found
}

/// One figure of the plan and the table's.
struct Stated<'a> {
    at: &'static str,
    what: String,
    figure: f64,
    id: &'a str,
    listed: Option<f64>,
    how: String,
}

fn compare(inputs: &Inputs<'_>, one: &Stated<'_>) -> Option<Finding> {
    let Some(listed) = one.listed else {
        return Some(Finding {
            id: "stated",
            severity: Severity::Warning,
            at: one.at,
            what: format!(
                "the plan's {} a month for {} cannot be checked: the price table has no `{}`",
                dollars(one.figure),
                one.what,
                one.id
            ),
            evidence: Vec::new(),
            remedy: "add the price with its source".to_owned(),
        });
    };
    if (one.figure - listed).abs() <= TOLERANCE * listed {
        return None;
    }
    let price: Option<Evidence> = price_evidence(inputs, one.id);
    let percent = (one.figure / listed - 1.0) * 100.0;
    let more = if percent > 0.0 { "more" } else { "less" };
    Some(Finding {
        id: "stated",
        severity: Severity::Warning,
        at: one.at,
        what: format!(
            "the plan states {} a month for {}, and the price table gives {}: {:.0} % {more}",
            dollars(one.figure), one.what, dollars(listed), percent.abs(),
        ),
        evidence: price.into_iter().chain([evidence(format!("{} = {}", one.how, dollars(listed)), one.id)]).collect(),
        remedy: "count with the table's price, and state what else the figure holds (storage, network, headroom) as items of their own".to_owned(),
    })
}
