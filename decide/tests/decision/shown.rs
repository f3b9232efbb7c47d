//! The forms of a decision: page, Markdown, JSON, in each language.

use std::collections::BTreeSet;
use std::path::Path;

use decide::{Decision, Language, markdown, page};
use report::{Passing, SampledCall};

use crate::rig::{MS, Rig, arm, callers, contrast, row, run};

/// Everything that a page can show.
fn full() -> Rig {
    let mut rig = Rig::new()
        .run("two", 2)
        .run("three", 3)
        .run("four", 4)
        .serve(50.0, true);
    for chain in ["baseline", "baseline-plus", "a1", "a2", "b1", "b2"] {
        for n in [1, 50] {
            rig = rig
                .arm(arm("two", chain, callers(n)))
                .arm(arm("three", chain, callers(n)));
        }
    }
    for chain in ["a1", "a2", "b1", "b2"] {
        let mut one = arm("four", chain, callers(10));
        one.legs = vec![
            row("request", 1.0, 2.0),
            row("last token", 2.0, 3.0),
            row("added TTFT", 3.0, 4.0),
        ];
        one.claimed = Some(2.0 * MS);
        one.sample = Some(SampledCall {
            key: "1-1".to_owned(),
            outer: vec![
                Passing {
                    since: 2.0 * MS,
                    bytes: 10,
                },
                Passing {
                    since: 9.0 * MS,
                    bytes: 90,
                },
            ],
            inner: vec![Passing {
                since: MS,
                bytes: 10,
            }],
        });
        one.simulated = chain == "b2";
        rig = rig.arm(one);
    }
    rig.report.simulated = true;
    rig.against = Some(rig.report.clone());
    rig.report.losses.push("something | was lost".to_owned());
    rig.contrast(contrast("four", ("a1", "a2"), "added TTFT", 0.0, (-MS, MS)))
        .workload(|workload| workload.rate = 20.0)
}

fn ids(page: &str) -> Vec<&str> {
    page.split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

#[test]
fn every_section_is_there_and_every_link_leads_somewhere_in_every_language() {
    for rig in [full(), Rig::new()] {
        for language in Language::ALL {
            let page = page(&rig.decide_in(language));
            let all = ids(&page);
            let once: BTreeSet<&str> = all.iter().copied().collect();
            assert_eq!(all.len(), once.len(), "a name twice");
            let links = page
                .split("href=\"#")
                .skip(1)
                .filter_map(|rest| rest.split('"').next());
            for link in links {
                assert!(once.contains(link), "{link} leads nowhere in {language}");
            }
            for section in [
                "summary",
                "performance",
                "import",
                "gateways",
                "caching",
                "agents",
                "cost",
                "observability",
                "guide",
                "migration",
                "metrics",
                "runs",
            ] {
                assert!(once.contains(section), "{section}");
            }
            assert!(page.contains(&format!("<html lang=\"{language}\"")));
            for outside in ["<script", "<link", "src=\"", "url(", "@import"] {
                assert!(!page.contains(outside), "{outside}");
            }
            assert!(page.len() < 3_000_000, "{}", page.len());
        }
    }
}

/// Words of a text: what is left of tags and style.
fn text(page: &str) -> String {
    let body = page.split("</style>").nth(1).unwrap();
    body.split('<')
        .filter_map(|part| part.split_once('>'))
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn no_place_is_left_unfilled_and_no_heading_stays_english() {
    for language in Language::ALL {
        let decision = full().decide_in(language);
        for form in [text(&page(&decision)), markdown(&decision)] {
            for place in [
                "{a}",
                "{b}",
                "{rate}",
                "{chain}",
                "{command}",
                "{share}",
                "{why}",
                "{time}",
                "{verdict}",
                "{id}",
            ] {
                assert!(!form.contains(place), "{place} in {language}");
            }
            let english = [
                "Executive summary",
                "Evidence",
                "Thresholds",
                "not measured",
                "simulated",
                "Ten questions",
            ];
            for word in english {
                assert_eq!(
                    form.contains(word),
                    language == Language::En,
                    "{word} in {language}"
                );
            }
        }
    }
}

#[test]
fn what_is_a_stand_ins_is_marked_wherever_it_is_shown() {
    let decision = full().decide();
    let page = page(&decision);
    let cell = page.split("id=\"added-p50-b2\"").nth(1).unwrap();
    let cell = cell.split("</td>").next().unwrap();
    assert!(
        cell.contains("simulated") && cell.contains("3 ms"),
        "{cell}"
    );
    let real = page.split("id=\"added-p50-b1\"").nth(1).unwrap();
    assert!(!real.split("</td>").next().unwrap().contains("simulated"));
    let series: Vec<&str> = decision
        .charts
        .iter()
        .flat_map(|chart| &chart.series)
        .filter(|series| series.simulated && series.of.is_some())
        .map(|series| series.name.as_str())
        .collect();
    assert!(
        !series.is_empty() && series.iter().all(|name| name.contains("simulated")),
        "{series:?}"
    );
}

#[test]
fn crossings_of_stand_ins_or_of_expectations_say_so() {
    for (simulated, measured, mark) in [
        (true, true, "simulated"),
        (false, false, "rests on expectations"),
    ] {
        let mut rig = Rig::new().serve(50.0, measured);
        for one in rig.capacities.values_mut() {
            one.simulated = simulated;
        }
        let decision = rig.decide();
        assert!(!decision.places.is_empty() && !decision.moves.is_empty());
        assert!(
            decision
                .places
                .iter()
                .all(|one| (one.simulated, one.guessed) == (simulated, !measured))
        );
        let form = markdown(&decision);
        let rows: Vec<&str> = form
            .lines()
            .filter(|line| line.starts_with("| baseline / a1"))
            .collect();
        assert!(
            !rows.is_empty() && rows.iter().all(|row| row.contains(mark)),
            "{rows:?}"
        );
        let page = page(&decision);
        let cost = page.split("id=\"cost\"").nth(1).unwrap();
        assert!(cost.split("</section>").next().unwrap().contains(mark));
    }
    // Prices alone are no guess of a capacity.
    let real = Rig::new().serve(50.0, true).decide();
    assert!(real.places.iter().all(|one| !one.simulated && !one.guessed));
}

#[test]
fn every_chart_has_its_numbers_as_a_table_and_a_file() {
    let decision = full().decide();
    let page = page(&decision);
    let drawn = decision
        .charts
        .iter()
        .filter(|chart| !chart.series.is_empty());
    let mut count = 0;
    for chart in drawn {
        let figure = page
            .split(&format!("id=\"chart-{}\"", chart.id))
            .nth(1)
            .unwrap();
        let figure = figure.split("</figure>").next().unwrap();
        assert!(figure.contains("<svg viewBox"), "{}", chart.id);
        assert!(figure.contains("href=\"data:text/csv"), "{}", chart.id);
        let points: usize = chart.series.iter().map(|series| series.points.len()).sum();
        assert_eq!(figure.matches("<tr>").count(), points + 1, "{}", chart.id);
        assert!(
            !figure.contains("NaN") && !figure.contains("inf"),
            "{}",
            chart.id
        );
        count += 1;
    }
    assert_eq!(count, 7, "burst and soak were not driven");
}

#[test]
fn what_did_not_change_is_said_not_to_have_changed() {
    let mut rig = full();
    let old = rig.against.as_mut().unwrap();
    let slower = old
        .arms
        .iter_mut()
        .find(|arm| arm.chain == "a1" && arm.run == "two")
        .unwrap();
    slower.ttft = row("TTFT", 400.0, 800.0);
    let changes = rig.decide().changes;
    let apart: Vec<_> = changes
        .iter()
        .filter(|one| one.more_than_noise == Some(true))
        .collect();
    assert_eq!(apart.len(), 1, "{apart:?}");
    assert_eq!(
        (apart[0].chain.as_str(), apart[0].figure.as_str()),
        ("a1", "TTFT p50")
    );
    // Of another scenario nothing is compared.
    let mut other = full();
    other.against.as_mut().unwrap().runs = ["two", "three", "four"]
        .map(|name| run(name, 9, true))
        .into();
    assert!(other.decide().changes.is_empty());
}

#[test]
fn the_published_schema_is_that_of_the_type_and_holds_for_a_decision() {
    let schema = decide::schema();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/decision.json");
    let text = format!("{schema:#}\n");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == text,
        "run the test with UPDATE=1"
    );
    let required = schema["required"].as_array().unwrap();
    let made: Decision = full().decide();
    let value = serde_json::to_value(&made).unwrap();
    for field in value.as_object().unwrap().keys() {
        assert!(required.iter().any(|name| name == field), "{field}");
    }
}
