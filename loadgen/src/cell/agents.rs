//! Agents: tasks of several turns, each of which asks with the whole conversation so far.

use super::{Driver, Ran, begin};
use crate::LoadError;
use crate::client::Ask;
use crate::prompt::Message;
use config::scenario::Agent;
use record::clock::now;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

impl Driver<'_, '_> {
    /// Tasks of several turns: each asks with the whole conversation so far.
    pub(super) fn agents(&self, agent: &Agent) -> Result<Ran, LoadError> {
        let recipe = self.recipe();
        recipe.check()?;
        let tasks = Arc::new(AtomicU64::new(0));
        let from = now();
        for number in 0..u64::from(agent.concurrency) {
            let lane = self.stage.lanes.of(number);
            let (recipe, tasks, order, agent) = (
                recipe.clone(),
                tasks.clone(),
                self.order.clone(),
                agent.clone(),
            );
            let (client, counts, cut) =
                (self.client.clone(), self.counts.clone(), self.cut.clone());
            let (reporter, flight) = (
                self.stage.recorder.reporter(),
                self.stage.recorder.flight.clone(),
            );
            counts.in_flight.fetch_add(1, Ordering::AcqRel);
            self.stage.lanes.spawn(lane, async move {
                loop {
                    let task = tasks.fetch_add(1, Ordering::AcqRel);
                    if task >= u64::from(agent.tasks) {
                        break;
                    }
                    let mut said: Vec<(String, String)> = Vec::new();
                    for turn in 0..agent.turns {
                        if cut.is_done() {
                            break;
                        }
                        let seq = task * u64::from(agent.turns) + u64::from(turn);
                        let asked = recipe.text(seq);
                        let mut messages: Vec<Message<'_>> = Vec::new();
                        messages.extend(recipe.systems.of(task));
                        for (question, answer) in &said {
                            messages.push(Message::user(question.as_str()));
                            messages.push(Message::assistant(answer.as_str()));
                        }
                        messages.push(Message::user(asked.as_str()));
                        let ask = Ask {
                            cell: order.id,
                            seq,
                            task: Some((
                                u32::try_from(task).unwrap_or(u32::MAX),
                                u16::try_from(turn).unwrap_or(u16::MAX),
                            )),
                            warmup: false,
                            intended: now(),
                            prompt_tokens: recipe.asked(),
                            body: recipe.body.of(&messages, recipe.sampling(seq)),
                            collect: true,
                        };
                        begin(&counts, &flight, &ask);
                        let told = client.call(lane, ask).await;
                        counts.in_flight.fetch_sub(1, Ordering::AcqRel);
                        flight.in_flight.fetch_sub(1, Ordering::Relaxed);
                        said.push((asked, told.text.clone()));
                        reporter.told(told);
                    }
                }
                counts.in_flight.fetch_sub(1, Ordering::AcqRel);
            });
        }
        while self.counts.in_flight.load(Ordering::Acquire) > 0 {
            if self.stage.stop.requested() {
                self.cut.now();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut ran = self.ran(Some(from), now());
        ran.scheduled = Some(u64::from(agent.tasks) * u64::from(agent.turns));
        Ok(ran)
    }
}
