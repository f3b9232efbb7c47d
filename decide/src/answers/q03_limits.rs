//! What are Custom Model Import's limits? Stated ones, beside what was measured.

use cost::Configuration;
use report::VariantSeen;

use super::Draft;
use crate::key::Key;
use crate::model::{Answer, Cell, Verdict};
use crate::number;
use crate::statements::statement;
use crate::table::experiment;
use crate::view::View;

pub(super) fn answer(view: &View<'_>) -> Answer {
    let mut draft = Draft::new(3, Key::Question3, &[2]);
    draft.said.push(view.get(Key::LimitsAreStated));
    for fact in &view.given.facts.import_limits {
        let one = statement(view, fact);
        let text = format!("{}: {} ({}, {})", one.topic, one.text, one.source, one.date);
        draft.see(text, None, None, false);
    }
    for of in [
        Configuration::BaselinePlus,
        Configuration::A1,
        Configuration::A2,
    ] {
        if let Some(Cell::Value(figure)) = experiment(view, of, "update turnaround")
            && figure.valid
        {
            let values = [
                ("chain", of.id().to_owned()),
                ("time", number::time(figure.value)),
            ];
            // Beside the answer, which rests on what is stated: a stand-in's is only named so.
            let mut text = view.say(Key::TurnaroundSeen, &values);
            if figure.simulated {
                text = format!("{text} ({})", view.get(Key::Simulated));
            }
            draft.see(text, None, figure.run.as_deref(), false);
        }
    }
    let variants = &view.given.report.variants;
    let measured = variants
        .iter()
        .filter(|v| matches!(v.seen, VariantSeen::Measured { .. }));
    if !variants.is_empty() {
        draft.said.push(view.say(
            Key::VariantsSeen,
            &[
                ("measured", measured.count().to_string()),
                ("all", variants.len().to_string()),
            ],
        ));
    }
    draft.would_change.push(view.get(Key::ChangeFacts));
    let none = view.given.facts.import_limits.is_empty();
    draft.settle(view, (!none).then_some(Verdict::Depends))
}
