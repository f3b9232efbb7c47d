//! Does the model fit the machines, and is there anything for a router to choose?

use super::{Evidence, Finding, Inputs, Severity, evidence};
use crate::fit::{Setting, Verdict, kv_bytes_per_token, weight_bytes};
use config::plan::Parallelism;

pub(super) fn check(inputs: &Inputs<'_>) -> Vec<Finding> {
    let Some(setting) = Setting::of(inputs.plan, inputs.geometry) else {
        return unknown(inputs);
    };
    let stated = inputs.plan.hardware.parallelism;
    let best = setting.arrangements().first().copied();
    let verdict = setting.verdict(stated);
    let mut found = Vec::new();
    found.extend(fit(inputs, &setting, &verdict, best));
    if verdict.fits() && setting.replicas(stated) == 0 {
        found.push(across(inputs, &setting, best));
    }
    found.extend(router(inputs, &setting, &verdict, best));
    found.extend(pipeline(inputs, &setting, &verdict));
    found.extend(context(inputs, &setting));
    found
}

/// A table that lacks the row: nothing can be said about the fit, and that is said.
fn unknown(inputs: &Inputs<'_>) -> Vec<Finding> {
    let plan = inputs.plan;
    let mut found = Vec::new();
    let mut add = |at, table: &str, name: &str, known: Vec<&str>| {
        found.push(Finding {
            id: "fit",
            severity: Severity::Error,
            at,
            what: format!("the geometry table has no `{name}` among its {table}: whether the model fits is not known"),
            evidence: vec![evidence(format!("known: {}", known.join(", ")), "the geometry table")],
            remedy: format!("add `{name}` with its source to the {table} of the geometry table, or name one that it has"),
        });
    };
    let names = |keys: Vec<&String>| {
        keys.into_iter()
            .map(|key| key.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    let instances = names(inputs.geometry.instances.keys().collect());
    let models = names(inputs.geometry.models.keys().collect());
    if !inputs
        .geometry
        .instances
        .contains_key(&plan.hardware.instance)
    {
        add(
            "hardware.instance",
            "instances",
            &plan.hardware.instance,
            instances.iter().map(String::as_str).collect(),
        );
    }
    let model = &plan.models.self_hosted.geometry;
    if !inputs.geometry.models.contains_key(model) {
        add(
            "models.self_hosted.geometry",
            "models",
            model,
            models.iter().map(String::as_str).collect(),
        );
    }
    found
}

/// A cut in words: `4 GPUs (tensor 1 × pipeline 4)`.
fn words(cut: Parallelism) -> String {
    let gpus = u64::from(cut.tensor) * u64::from(cut.pipeline);
    let noun = if gpus == 1 { "GPU" } else { "GPUs" };
    format!(
        "{gpus} {noun} (tensor {} × pipeline {})",
        cut.tensor, cut.pipeline
    )
}

fn gib(mib: f64) -> String {
    format!("{:.1} GiB", mib / 1024.0)
}

/// The machines in words: `4 × g5.2xlarge`.
fn machines(inputs: &Inputs<'_>) -> String {
    let hardware = &inputs.plan.hardware;
    format!("{} × {}", hardware.count, hardware.instance)
}

fn served(inputs: &Inputs<'_>) -> String {
    let model = &inputs.plan.models.self_hosted;
    format!("{} in {}", model.geometry, model.quantisation.as_str())
}

/// The sizes on which every verdict rests.
fn sizes(inputs: &Inputs<'_>, setting: &Setting<'_>) -> Vec<Evidence> {
    let weights = weight_bytes(setting.model, setting.served.quantisation);
    let kv = kv_bytes_per_token(setting.model, setting.served.kv_cache) / 1024.0;
    vec![
        evidence(
            format!(
                "{}: {:.1} GB of weights ({}), {kv:.0} KiB of KV cache a token",
                served(inputs),
                weights / 1e9,
                gib(weights / 1_048_576.0)
            ),
            setting.model.source.clone(),
        ),
        evidence(
            format!(
                "{}: {} × {} with {} MiB each, of which {} may be used less {} for work",
                inputs.plan.hardware.instance,
                setting.instance.gpus,
                setting.instance.gpu,
                setting.instance.gpu_memory_mib,
                inputs.plan.hardware.utilisation,
                gib(setting.working_mib),
            ),
            setting.instance.source.clone(),
        ),
    ]
}

/// What would work on these machines.
fn instead(inputs: &Inputs<'_>, best: Option<(Parallelism, u32)>) -> String {
    match best {
        Some((cut, replicas)) => format!(
            "on {} use {}, which fits and makes {replicas} replica{}; or a larger GPU, or a smaller model",
            machines(inputs),
            words(cut),
            if replicas == 1 { "" } else { "s" },
        ),
        None => format!(
            "no cut fits on {}: use larger or more GPUs, fewer bits a weight, or a smaller model",
            machines(inputs)
        ),
    }
}

fn fit(
    inputs: &Inputs<'_>,
    setting: &Setting<'_>,
    verdict: &Verdict,
    best: Option<(Parallelism, u32)>,
) -> Option<Finding> {
    let cut = words(inputs.plan.hardware.parallelism);
    let gpu = &setting.instance.gpu;
    let (at, what) = match verdict {
        Verdict::Fits(_) => return None,
        Verdict::Indivisible(why) => (
            "hardware.parallelism",
            format!("{} cannot be cut over {cut}: {why}", served(inputs)),
        ),
        Verdict::WeightsTooLarge(memory) => (
            "hardware.parallelism",
            format!(
                "{} does not fit {cut} of type {gpu}: the fullest GPU would need {} for weights and {} for work, and may use {}",
                served(inputs),
                gib(memory.weights_mib),
                gib(memory.working_mib),
                gib(memory.budget_mib),
            ),
        ),
        Verdict::ContextTooLong(memory) => (
            "models.self_hosted.context_tokens",
            format!(
                "{} on {cut} of type {gpu} leaves room for {:.0} tokens of KV cache, less than the context of {}: the engine would not start",
                served(inputs),
                memory.kv_tokens.unwrap_or(0.0),
                setting.served.context_tokens,
            ),
        ),
    };
    let mut rests = sizes(inputs, setting);
    rests.push(evidence(
        format!(
            "{} for activations and CUDA graphs is an assumption",
            gib(setting.working_mib)
        ),
        "`working_mib` of the geometry table",
    ));
    Some(Finding {
        id: "fit",
        severity: Severity::Error,
        at,
        what,
        evidence: rests,
        remedy: instead(inputs, best),
    })
}

/// Layers shared between machines.
fn across(inputs: &Inputs<'_>, setting: &Setting<'_>, best: Option<(Parallelism, u32)>) -> Finding {
    let cut = inputs.plan.hardware.parallelism;
    let wanted = u64::from(cut.tensor) * u64::from(cut.pipeline);
    let too_few = wanted > u64::from(setting.gpus());
    let what = if too_few {
        format!(
            "one replica wants {} and {} have {}",
            words(cut),
            machines(inputs),
            setting.gpus()
        )
    } else {
        format!(
            "tensor {} shares each layer between machines of {} GPU{}: over {} Gbit/s every layer would wait for the network twice",
            cut.tensor,
            setting.instance.gpus,
            if setting.instance.gpus == 1 { "" } else { "s" },
            setting.instance.network_gbps,
        )
    };
    Finding {
        id: "fit-network",
        severity: Severity::Error,
        at: "hardware.parallelism",
        what,
        evidence: sizes(inputs, setting),
        remedy: instead(inputs, best),
    }
}

/// A router needs at least two replicas to choose from.
fn router(
    inputs: &Inputs<'_>,
    setting: &Setting<'_>,
    verdict: &Verdict,
    best: Option<(Parallelism, u32)>,
) -> Option<Finding> {
    let stated = inputs.plan.hardware.parallelism;
    let as_stated = verdict
        .fits()
        .then(|| (stated, setting.replicas(stated)))
        .filter(|(_, count)| *count > 0);
    let (cut, replicas) = as_stated.or(best)?;
    if replicas >= 2 {
        return None;
    }
    let could = best.filter(|(_, most)| *most >= 2);
    Some(Finding {
        id: "replicas",
        severity: Severity::Error,
        at: "hardware.count",
        what: format!(
            "{} hold one replica of {} over {}: a router has nothing to choose, and b1 and b2 cannot differ from a1 and a2",
            machines(inputs), served(inputs), words(cut),
        ),
        evidence: sizes(inputs, setting),
        remedy: match could {
            Some((other, most)) => format!("use {} for {most} replicas", words(other)),
            None => "use at least twice as many machines, larger ones, or a smaller model; or leave b1 and b2 out".to_owned(),
        },
    })
}

/// Stages on several machines: one lost machine is a lost replica, and single calls are slow.
fn pipeline(inputs: &Inputs<'_>, setting: &Setting<'_>, verdict: &Verdict) -> Option<Finding> {
    let cut = inputs.plan.hardware.parallelism;
    let spans = u64::from(cut.tensor) * u64::from(cut.pipeline) > u64::from(setting.instance.gpus);
    let fits = verdict.fits() && setting.replicas(cut) > 0;
    (fits && spans && cut.pipeline > 1).then(|| Finding {
        id: "pipeline",
        severity: Severity::Warning,
        at: "hardware.parallelism.pipeline",
        what: format!(
            "one replica spans several machines in {} stages: a lone call passes them one after the other, and a lost machine is a lost replica",
            cut.pipeline
        ),
        evidence: vec![evidence(
            format!("{}: {} GPU(s), {} Gbit/s sustained", inputs.plan.hardware.instance, setting.instance.gpus, setting.instance.network_gbps),
            setting.instance.source.clone(),
        )],
        remedy: "prefer a machine that holds a whole replica, and compare the price with `--set hardware.instance=…`".to_owned(),
    })
}

/// A context beyond what the model was made for.
fn context(inputs: &Inputs<'_>, setting: &Setting<'_>) -> Option<Finding> {
    let wanted = setting.served.context_tokens;
    (wanted > setting.model.context_max).then(|| Finding {
        id: "context",
        severity: Severity::Error,
        at: "models.self_hosted.context_tokens",
        what: format!(
            "a context of {wanted} tokens is beyond the {} for which {} was made",
            setting.model.context_max, inputs.plan.models.self_hosted.geometry
        ),
        evidence: vec![evidence(
            format!("context_max {}", setting.model.context_max),
            setting.model.source.clone(),
        )],
        remedy: "lower `context_tokens`".to_owned(),
    })
}
