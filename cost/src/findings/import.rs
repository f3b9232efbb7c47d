//! Does the import take the model, is it the same one that is self-hosted, and what do its windows bill?

use super::{Finding, Inputs, Severity, dollars, evidence, gpu_month, price_evidence};
use crate::fit::{bits_per_weight, weight_bytes};
use crate::model::HOURS;
use config::plan::{Quantisation, Warm};

const CMU_MINUTE: &str = "import.cmu-minute";
const MINUTES_PER_MONTH: f64 = HOURS * 60.0;
/// From here on it is worth saying that a copy costs so many times what the machines do.
const DEAR: f64 = 2.0;
/// The share of windows without a call from which on cold starts are part of the result.
const PAUSES: f64 = 0.001;

pub(super) fn check(inputs: &Inputs<'_>) -> Vec<Finding> {
    [
        accepted,
        units,
        same_model,
        same_precision,
        pauses,
        always,
        dear,
    ]
    .iter()
    .filter_map(|check: &fn(&Inputs<'_>) -> Option<Finding>| check(inputs))
    .collect()
}

/// Region and size.
fn accepted(inputs: &Inputs<'_>) -> Option<Finding> {
    let (plan, limits) = (inputs.plan, &inputs.geometry.import);
    let name = &plan.models.imported;
    let finding = |at, what, remedy: &str| {
        Some(Finding {
            id: "import",
            severity: Severity::Error,
            at,
            what,
            evidence: vec![evidence(
                format!(
                    "Regions {}; weights below {} GB",
                    limits.regions.join(", "),
                    limits.weights_gb_max
                ),
                limits.source.clone(),
            )],
            remedy: remedy.to_owned(),
        })
    };
    if !limits.regions.contains(&plan.region) {
        let what = format!("Custom Model Import is not offered in {}", plan.region);
        return finding(
            "region",
            what,
            "import in a Region that offers it, or leave baseline-plus out",
        );
    }
    let Some(model) = inputs.geometry.models.get(name) else {
        let what = format!(
            "the geometry table has no `{name}` among its models: whether it can be imported is not known"
        );
        return finding(
            "models.imported",
            what,
            "add it with its source, or name one that the table has",
        );
    };
    let gigabytes = weight_bytes(model, Quantisation::Bf16) / 1e9;
    if gigabytes >= limits.weights_gb_max {
        let what = format!("`{name}` has {gigabytes:.0} GB of weights, too many to be imported");
        return finding("models.imported", what, "import a smaller model");
    }
    None
}

/// The plan's units against those that AWS states.
fn units(inputs: &Inputs<'_>) -> Option<Finding> {
    let name = &inputs.plan.models.imported;
    let model = inputs.geometry.models.get(name)?;
    let (stated, known) = (inputs.plan.import.cmus_per_copy, model.cmus_per_copy?);
    (stated != known).then(|| Finding {
        id: "import-units",
        severity: Severity::Warning,
        at: "import.cmus_per_copy",
        what: format!("the plan counts {stated} Custom Model Units a copy of `{name}`, and AWS states {known}"),
        evidence: vec![evidence(format!("{known} units a copy"), model.source.clone())],
        remedy: format!("write {known}, or what GetImportedModel tells of your import (customModelUnitsPerModelCopy)"),
    })
}

/// Scenario 2 compares the same model.
fn same_model(inputs: &Inputs<'_>) -> Option<Finding> {
    let models = &inputs.plan.models;
    (models.imported != models.self_hosted.geometry).then(|| Finding {
        id: "import-model",
        severity: Severity::Warning,
        at: "models.imported",
        what: format!(
            "`{}` is imported and `{}` self-hosted: scenario 2 would compare two models",
            models.imported, models.self_hosted.geometry
        ),
        evidence: Vec::new(),
        remedy: "serve one model both ways".to_owned(),
    })
}

fn same_precision(inputs: &Inputs<'_>) -> Option<Finding> {
    let own = inputs.plan.models.self_hosted.quantisation;
    let limits = &inputs.geometry.import;
    (bits_per_weight(own) < limits.bits).then(|| Finding {
        id: "import-precision",
        severity: Severity::Warning,
        at: "models.self_hosted.quantisation",
        what: format!(
            "the import serves {} bits a weight and the engine {}: not the same artefact, so quality, speed and cost differ for that reason alone",
            limits.bits, own.as_str(),
        ),
        evidence: vec![evidence("no source says that quantised checkpoints import", limits.source.clone())],
        remedy: "self-host bf16 too for scenario 2, or say with every figure of baseline-plus which precision it has".to_owned(),
    })
}

/// Calls so rare that copies end between them.
fn pauses(inputs: &Inputs<'_>) -> Option<Finding> {
    if inputs.plan.import.warm == Warm::Always {
        return None;
    }
    let lowest = inputs.plan.rates.iter().copied().reduce(f64::min)?;
    let window = f64::from(inputs.geometry.import.window_seconds);
    let empty = (-lowest * window).exp();
    (empty > PAUSES).then(|| Finding {
        id: "import-pauses",
        severity: Severity::Warning,
        at: "import.warm",
        what: format!("at {lowest} calls a second {:.1} % of windows of {window} s have no call: copies end, and the next call meets a cold start", empty * 100.0),
        evidence: vec![evidence(
            format!("independent calls leave a window empty with the chance e^(-{lowest} × {window})"),
            inputs.geometry.import.source.clone(),
        )],
        remedy: "measure the cold start (config/experiments/cold-start-import.yaml), or keep a copy up (`warm: always`) and pay every window".to_owned(),
    })
}

/// Copies that are kept up while nobody calls.
fn always(inputs: &Inputs<'_>) -> Option<Finding> {
    let (import, duty) = (&inputs.plan.import, inputs.plan.traffic.duty);
    if import.warm == Warm::Windows || duty >= 1.0 {
        return None;
    }
    let month = month(inputs)?;
    Some(Finding {
        id: "import-idle",
        severity: Severity::Warning,
        at: "import.warm",
        what: format!("copies that stay up bill {} a month while there is no traffic, of {}", dollars(month * (1.0 - duty)), dollars(month)),
        evidence: price_evidence(inputs, CMU_MINUTE).into_iter().collect(),
        remedy: "let copies end (`warm: windows`) and accept cold starts, or raise the share of the month with traffic".to_owned(),
    })
}

/// What a copy bills when it is up all month, beside the machines.
fn dear(inputs: &Inputs<'_>) -> Option<Finding> {
    let (month, machines) = (month(inputs)?, gpu_month(inputs)?);
    let hardware = &inputs.plan.hardware;
    (machines > 0.0 && month >= DEAR * machines).then(|| Finding {
        id: "import-cost",
        severity: Severity::Note,
        at: "import",
        what: format!(
            "{} cop{} of `{}` that {} up all month bill{} {}: {:.1} × the {} of {} × {}",
            inputs.plan.import.copies,
            if inputs.plan.import.copies == 1 { "y" } else { "ies" },
            inputs.plan.models.imported,
            if inputs.plan.import.copies == 1 { "is" } else { "are" },
            if inputs.plan.import.copies == 1 { "s" } else { "" },
            dollars(month),
            month / machines,
            dollars(machines),
            hardware.count,
            hardware.instance,
        ),
        evidence: price_evidence(inputs, CMU_MINUTE)
            .into_iter()
            .chain([evidence(
                format!("{} × {} units × price × {MINUTES_PER_MONTH} minutes", inputs.plan.import.copies, inputs.plan.import.cmus_per_copy),
                "one call in each window of five minutes is enough to bill it",
            )])
            .collect(),
        remedy: "compare at equal quality and speed: how many calls a copy serves must be measured (scenario 2)".to_owned(),
    })
}

/// All copies up all month; `None` where the table lacks the price.
fn month(inputs: &Inputs<'_>) -> Option<f64> {
    let price = inputs.prices.get(CMU_MINUTE)?;
    let import = &inputs.plan.import;
    Some(
        price.value
            * f64::from(import.copies)
            * f64::from(import.cmus_per_copy)
            * MINUTES_PER_MONTH,
    )
}
