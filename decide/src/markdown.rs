//! The decision as Markdown.

use std::fmt::{Result, Write as _};

use crate::key::Key;
use crate::language::Words;
use crate::model::{Answer, Chart, Decision, Point, Statement, Turn};
use crate::number;
use crate::show::{
    basis, bill_marks, cell, headline, interval, marks, verdict_and_stand_ins, yes_no,
};

/// `decision` as Markdown, in its language.
#[must_use]
pub fn markdown(decision: &Decision) -> String {
    let mut out = Out {
        text: String::new(),
        words: Words::of(decision.language),
    };
    // Writing to a String cannot fail.
    let _ = out.all(decision);
    out.text
}

struct Out {
    text: String,
    words: Words,
}

/// A cell of a table: a bar would end it.
fn safe(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// A text with what marks it.
fn marked(text: &str, marks: &[String]) -> String {
    match marks.is_empty() {
        true => text.to_owned(),
        false => format!("{text} **{}**", marks.join(", ")),
    }
}

impl Out {
    fn get(&self, key: Key) -> String {
        self.words.get(key).to_owned()
    }

    fn head(&mut self, key: Key) -> Result {
        let name = self.get(key);
        writeln!(self.text, "\n## {name}\n")
    }

    fn table(&mut self, heads: &[String], rows: &[Vec<String>]) -> Result {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| safe(cell)).collect();
            format!("| {} |", cells.join(" | "))
        };
        writeln!(self.text, "{}", line(heads))?;
        writeln!(self.text, "|{}", "---|".repeat(heads.len()))?;
        for row in rows {
            writeln!(self.text, "{}", line(row))?;
        }
        writeln!(self.text)
    }

    fn heads(&self, keys: &[Key]) -> Vec<String> {
        keys.iter().map(|key| self.get(*key)).collect()
    }

    fn all(&mut self, decision: &Decision) -> Result {
        let title = self.get(Key::Title);
        let mark = match decision.simulated {
            true => format!(" ({})", self.get(Key::Simulated)),
            false => String::new(),
        };
        writeln!(self.text, "# hopscope: {title}{mark}")?;
        self.summary(decision)?;
        self.head(Key::TenQuestions)?;
        for answer in &decision.answers {
            self.answer(answer)?;
        }
        self.metrics(decision)?;
        self.claims(decision)?;
        self.cost(decision)?;
        self.guide(decision)?;
        let stated = &decision.statements;
        for (key, all) in [
            (Key::SectionImport, &stated.import_limits),
            (Key::SectionGateways, &stated.gateways),
            (Key::SectionAgents, &stated.agent_runtimes),
            (Key::SectionObservability, &stated.observability),
            (Key::SectionMigration, &stated.migration),
        ] {
            self.statements(key, all)?;
        }
        for chart in decision
            .charts
            .iter()
            .filter(|chart| !chart.series.is_empty())
        {
            self.chart(chart)?;
        }
        self.changes(decision)?;
        self.runs(decision)
    }

    fn summary(&mut self, decision: &Decision) -> Result {
        self.head(Key::SectionSummary)?;
        writeln!(self.text, "{}\n", decision.summary.rests_on)?;
        if decision.simulated {
            writeln!(self.text, "{}\n", self.words.get(Key::SimulatedNote))?;
        }
        for (key, points) in [
            (Key::SummaryManaged, &decision.summary.managed),
            (Key::SummaryOwn, &decision.summary.own),
            (Key::SummaryOpen, &decision.summary.open),
        ] {
            writeln!(self.text, "**{}**\n", self.words.get(key))?;
            self.points(points)?;
        }
        writeln!(self.text, "{}", decision.guide.said)
    }

    fn points(&mut self, points: &[Point]) -> Result {
        if points.is_empty() {
            writeln!(self.text, "- {}", self.words.get(Key::SummaryNothing))?;
        }
        for one in points {
            let mark = match one.simulated {
                true => format!(" **{}**", self.words.get(Key::Simulated)),
                false => String::new(),
            };
            writeln!(self.text, "- {}. {}{mark}", one.question, one.text)?;
        }
        writeln!(self.text)
    }

    fn answer(&mut self, one: &Answer) -> Result {
        writeln!(self.text, "### {}. {}\n", one.number, one.question)?;
        let verdict = verdict_and_stand_ins(&self.words, one.verdict, one.were_stand_ins_real);
        writeln!(self.text, "**{verdict}**\n")?;
        for text in &one.said {
            writeln!(self.text, "{text}\n")?;
        }
        let evidence: Vec<String> = one
            .evidence
            .iter()
            .map(|seen| {
                let run = seen
                    .run
                    .as_ref()
                    .map_or_else(String::new, |run| format!(" [{run}]"));
                let mark = match seen.simulated {
                    true => format!(" **{}**", self.words.get(Key::Simulated)),
                    false => String::new(),
                };
                format!("{}{run}{mark}", seen.text)
            })
            .collect();
        self.list(Key::Evidence, &evidence)?;
        self.list(Key::Thresholds, &one.thresholds)?;
        self.list(Key::WouldChange, &one.would_change)
    }

    fn list(&mut self, key: Key, all: &[String]) -> Result {
        if all.is_empty() {
            return Ok(());
        }
        writeln!(self.text, "{}:\n", self.words.get(key))?;
        for one in all {
            writeln!(self.text, "- {one}")?;
        }
        writeln!(self.text)
    }

    fn metrics(&mut self, decision: &Decision) -> Result {
        self.head(Key::SectionTable)?;
        let mut heads = self.heads(&[Key::HeadCategory, Key::HeadMetric]);
        heads.extend(crate::configurations().map(str::to_owned));
        let rows: Vec<Vec<String>> = decision
            .table
            .iter()
            .map(|row| {
                let cells = row.cells.iter().map(|one| cell(&self.words, one));
                [row.category.clone(), row.metric.clone()]
                    .into_iter()
                    .chain(cells)
                    .collect()
            })
            .collect();
        self.table(&heads, &rows)
    }

    fn claims(&mut self, decision: &Decision) -> Result {
        if decision.claims.is_empty() {
            return Ok(());
        }
        self.head(Key::HeadClaimed)?;
        let heads = self.heads(&[
            Key::HeadChain,
            Key::HeadClaimed,
            Key::HeadCovers,
            Key::HeadMeasured,
        ]);
        let rows: Vec<Vec<String>> = decision
            .claims
            .iter()
            .map(|one| {
                let measured = cell(&self.words, &one.measured);
                vec![
                    one.chain.clone(),
                    one.claimed.clone(),
                    one.covers.clone(),
                    measured,
                ]
            })
            .collect();
        self.table(&heads, &rows)
    }

    fn cost(&mut self, decision: &Decision) -> Result {
        self.head(Key::SectionCost)?;
        if decision.places.is_empty() {
            writeln!(self.text, "{}\n", self.words.get(Key::NoCrossings))?;
        } else {
            let heads = self.heads(&[
                Key::HeadConfiguration,
                Key::HeadRate,
                Key::HeadInterval,
                Key::HeadCheaperAbove,
            ]);
            let rows: Vec<Vec<String>> = decision
                .places
                .iter()
                .map(|one| {
                    let high = one
                        .high
                        .map_or_else(|| self.get(Key::NoUpperEnd), number::rate);
                    vec![
                        marked(
                            &format!("{} / {}", one.a, one.b),
                            &bill_marks(&self.words, one.simulated, one.guessed),
                        ),
                        number::rate(one.rate),
                        format!("{} … {high}", number::rate(one.low)),
                        one.cheaper_above.clone(),
                    ]
                })
                .collect();
            self.table(&heads, &rows)?;
        }
        let end = |words: &Words, end: Option<f64>| {
            end.map_or_else(|| words.get(Key::NoUpperEnd).to_owned(), number::money)
        };
        let heads = self.heads(&[
            Key::HeadInput,
            Key::HeadConfiguration,
            Key::HeadAtLow,
            Key::HeadNow,
            Key::HeadAtHigh,
        ]);
        let rows: Vec<Vec<String>> = decision
            .moves
            .iter()
            .map(|one| {
                vec![
                    one.input.clone(),
                    marked(
                        &one.of,
                        &bill_marks(&self.words, one.simulated, one.guessed),
                    ),
                    end(&self.words, one.at_low),
                    number::money(one.base),
                    end(&self.words, one.at_high),
                ]
            })
            .collect();
        writeln!(self.text, "{}:\n", self.words.get(Key::Tornado))?;
        self.table(&heads, &rows)
    }

    fn guide(&mut self, decision: &Decision) -> Result {
        self.head(Key::SectionGuide)?;
        let guide = &decision.guide;
        if let Some(workload) = &guide.workload {
            writeln!(self.text, "{workload}\n")?;
        }
        for step in &guide.steps {
            let found = match step.turn {
                Some(Turn::Yes) => format!(" → **{}**", self.words.get(Key::Yes)),
                Some(Turn::No) => format!(" → **{}**", self.words.get(Key::No)),
                Some(Turn::Unknown) => format!(" → **{}**", self.words.get(Key::Unknown)),
                None => String::new(),
            };
            let why = step
                .why
                .as_ref()
                .map_or_else(String::new, |why| format!(": {why}"));
            let (yes, no) = (self.words.get(Key::Yes), self.words.get(Key::No));
            let line = format!(
                "- `{}`: {} ({yes} → `{}`, {no} → `{}`){found}{why}",
                step.id, step.asked, step.yes, step.no
            );
            writeln!(self.text, "{line}")?;
        }
        writeln!(self.text, "\n**{}**\n", guide.said)?;
        Ok(())
    }

    fn statements(&mut self, key: Key, all: &[Statement]) -> Result {
        if all.is_empty() {
            return Ok(());
        }
        self.head(key)?;
        writeln!(self.text, "{}\n", self.words.get(Key::StatedNote))?;
        let heads = self.heads(&[
            Key::HeadTopic,
            Key::HeadConfiguration,
            Key::HeadStatement,
            Key::HeadSource,
        ]);
        let rows: Vec<Vec<String>> = all
            .iter()
            .map(|one| {
                let source = format!(
                    "{}: {}, {}",
                    basis(&self.words, &one.basis),
                    one.source,
                    one.date
                );
                vec![
                    one.topic.clone(),
                    one.of.join(", "),
                    one.text.clone(),
                    source,
                ]
            })
            .collect();
        self.table(&heads, &rows)
    }

    fn chart(&mut self, chart: &Chart) -> Result {
        writeln!(self.text, "\n## {}\n", chart.title)?;
        let mut heads = vec![
            self.get(Key::Series),
            chart.x.label.clone(),
            chart.y.label.clone(),
        ];
        heads.extend(self.heads(&[Key::Low, Key::High]));
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number::digits);
        let mut rows = Vec::new();
        for series in &chart.series {
            for point in &series.points {
                let place = chart.x.names.get(point.x as usize).cloned();
                rows.push(vec![
                    series.name.clone(),
                    place.unwrap_or_else(|| number::digits(point.x)),
                    number(point.y),
                    number(point.low),
                    number(point.high),
                ]);
            }
        }
        self.table(&heads, &rows)
    }

    fn changes(&mut self, decision: &Decision) -> Result {
        if decision.changes.is_empty() {
            return Ok(());
        }
        self.head(Key::SectionChanges)?;
        let heads = self.heads(&[
            Key::HeadChain,
            Key::HeadDriven,
            Key::HeadFigure,
            Key::HeadBefore,
            Key::HeadNow,
            Key::HeadNoise,
        ]);
        let side = |figure| {
            let range = interval(figure).map_or_else(String::new, |range| format!(" ({range})"));
            let text = format!("{}{range}", headline(figure));
            marked(&text, &marks(&self.words, figure))
        };
        let rows: Vec<Vec<String>> = decision
            .changes
            .iter()
            .map(|one| {
                let noise = yes_no(&self.words, one.more_than_noise).to_owned();
                vec![
                    one.chain.clone(),
                    one.label.clone(),
                    one.figure.clone(),
                    side(&one.before),
                    side(&one.now),
                    noise,
                ]
            })
            .collect();
        self.table(&heads, &rows)
    }

    fn runs(&mut self, decision: &Decision) -> Result {
        self.head(Key::SectionRuns)?;
        let heads = self.heads(&[
            Key::HeadRun,
            Key::HeadStarted,
            Key::HeadScenario,
            Key::HeadValid,
        ]);
        let rows: Vec<Vec<String>> = decision
            .runs
            .iter()
            .map(|one| {
                let mark = match one.simulated {
                    true => format!(" ({})", self.words.get(Key::Simulated)),
                    false => String::new(),
                };
                let valid = yes_no(&self.words, Some(one.valid));
                let broken = one.broken.join("; ");
                vec![
                    format!("{}{mark}", one.name),
                    one.started.clone(),
                    one.scenario
                        .map_or_else(|| "–".to_owned(), |number| number.to_string()),
                    format!("{valid} {broken}").trim().to_owned(),
                ]
            })
            .collect();
        self.table(&heads, &rows)?;
        if !decision.losses.is_empty() {
            self.head(Key::SectionLosses)?;
            for loss in &decision.losses {
                writeln!(self.text, "- {loss}")?;
            }
        }
        Ok(())
    }
}
