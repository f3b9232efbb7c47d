//! How chains of one run differ, as a table of words.

use super::probes::Table;
use super::words::{ABSENT, marked, maybe, range};
use crate::model::{Contrast, Difference, Report};

/// The table of all runs; empty where no two chains were driven alike.
pub(super) fn tables(report: &Report) -> Vec<Table> {
    let many = report.runs.len() > 1;
    let of = |contrast: &Contrast| {
        let run = match many {
            true => format!("{}: ", contrast.run),
            false => String::new(),
        };
        let name = format!("{run}{} − {}, {}", contrast.b, contrast.a, contrast.label);
        marked(&name, contrast.simulated)
    };
    let rows = report.contrasts.iter().flat_map(|contrast| {
        let name = of(contrast);
        match &contrast.refused {
            Some(why) => vec![refused(&name, why)],
            None => {
                let differences = contrast.differences.iter();
                differences.map(|one| row(&name, contrast, one)).collect()
            }
        }
    });
    let table = Table {
        title: "Differences between chains",
        head: &[
            "chains, drive",
            "figure",
            "the one",
            "the other",
            "difference (95 %)",
            "more than noise",
            "blocks",
        ],
        rows: rows.collect(),
        note: "Paired: each block holds calls of both chains, and the interval resamples blocks. More than noise: it lies on one side of 0; whether it is large enough to matter is for the reader, or for the decision. Calls that failed or were not sent rank as the slowest. Chains whose calls had other token counts are not compared.",
    };
    match table.rows.is_empty() {
        true => Vec::new(),
        false => vec![table],
    }
}

fn refused(name: &str, why: &str) -> Vec<String> {
    let absent = || ABSENT.to_owned();
    let cells = [name.to_owned(), why.to_owned()];
    cells
        .into_iter()
        .chain(std::iter::repeat_with(absent).take(5))
        .collect()
}

fn row(name: &str, contrast: &Contrast, one: &Difference) -> Vec<String> {
    let figure = format!("{} p{:.0}", one.figure, one.quantile * 100.0);
    if let Some(why) = &one.refused {
        return refused(name, &format!("{figure}: {why}"));
    }
    let noise = match one.interval {
        None => ABSENT,
        Some(_) if one.significant() => "yes",
        Some(_) => "no",
    };
    let few = if one.few { " *" } else { "" };
    vec![
        name.to_owned(),
        format!("{figure}{few}"),
        maybe(one.a),
        maybe(one.b),
        format!("{} ({})", maybe(one.difference), range(one.interval)),
        noise.to_owned(),
        contrast.blocks.to_string(),
    ]
}
