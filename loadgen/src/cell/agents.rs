//! Agents: tasks of several turns, each of which asks with the whole conversation so far. With tools, a
//! turn that calls one is over when its result is there.

use super::{Counts, Driver, Ran, begin, end};
use crate::LoadError;
use crate::agent::{self, Hands, Kit, Place, Round, Step, Talk};
use crate::api::Session;
use crate::client::{Ask, Client, Cut, Told};
use crate::prompt::{Recipe, Tools};
use crate::recorder::{Flight, Reporter};
use config::scenario::{Agent, AgentEndpoint};
use record::client::CallOutcome;
use record::clock::now;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

impl Driver<'_, '_> {
    /// Tasks of several turns: each asks with the whole conversation so far.
    pub(super) fn agents(&self, agent: &Agent) -> Result<Ran, LoadError> {
        let recipe = self.recipe();
        recipe.check()?;
        let stage = self.stage;
        let kit = agent.tools.as_ref();
        let api = self.order.target.api;
        let kit = kit.map(|tools| Kit::prepare(tools, &stage.scenario.timeouts, stage.lanes, api));
        let kit = kit.transpose()?;
        let client = match &agent.endpoint {
            None => self.client.clone(),
            Some(endpoint) => Arc::new(Client::new(
                Arc::new(self.order.target.agent(endpoint)?),
                stage.lanes.count(),
                self.cut.clone(),
            )),
        };
        let tasks = Arc::new(AtomicU64::new(0));
        let from = now();
        for number in 0..u64::from(agent.concurrency) {
            let lane = stage.lanes.of(number);
            let worker = Worker {
                lane,
                cell: self.order.id,
                turns: agent.turns,
                recipe: recipe.clone(),
                kit: kit.clone(),
                endpoint: agent.endpoint.clone(),
                client: client.clone(),
                counts: self.counts.clone(),
                cut: self.cut.clone(),
                reporter: stage.recorder.reporter(),
                flight: stage.recorder.flight.clone(),
            };
            let (tasks, of) = (tasks.clone(), u64::from(agent.tasks));
            self.counts.in_flight.fetch_add(1, Ordering::AcqRel);
            stage.lanes.spawn(lane, async move {
                worker.run(&tasks, of).await;
                worker.counts.in_flight.fetch_sub(1, Ordering::AcqRel);
            });
        }
        while self.counts.in_flight.load(Ordering::Acquire) > 0 {
            if stage.stop.requested() {
                self.cut.now();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut ran = self.ran(Some(from), now());
        ran.scheduled = Some(u64::from(agent.tasks) * u64::from(agent.turns));
        Ok(ran)
    }
}

/// One agent: a task after the other.
struct Worker {
    lane: usize,
    cell: u32,
    turns: u32,
    recipe: Recipe,
    kit: Option<Arc<Kit>>,
    endpoint: Option<AgentEndpoint>,
    client: Arc<Client>,
    counts: Arc<Counts>,
    cut: Cut,
    reporter: Reporter,
    flight: Arc<Flight>,
}

impl Worker {
    async fn run(&self, tasks: &AtomicU64, of: u64) {
        let hands = match &self.kit {
            Some(kit) => Some(kit.hands().await),
            None => None,
        };
        loop {
            let task = tasks.fetch_add(1, Ordering::AcqRel);
            if task >= of || self.cut.is_done() {
                break;
            }
            let mut talk = Talk::default();
            let agentcore = self.endpoint.as_ref().and_then(|e| e.agentcore.as_ref());
            let mut session = agentcore.map(|_| Session::new());
            for turn in 0..self.turns {
                if self.cut.is_done() {
                    break;
                }
                let at = (task, turn);
                let round = self.turn(at, &talk, hands.as_ref(), session.as_mut()).await;
                talk.add(round);
            }
        }
    }

    async fn turn(
        &self,
        (task, turn): (u64, u32),
        talk: &Talk,
        hands: Option<&Hands>,
        session: Option<&mut Session>,
    ) -> Round {
        let seq = task * u64::from(self.turns) + u64::from(turn);
        let step = self.kit.as_ref().and_then(|kit| kit.step(turn));
        let (question, tokens) = self.question(seq, step);
        let place = Place {
            cell: self.cell,
            seq,
            task: u32::try_from(task).unwrap_or(u32::MAX),
            turn: u16::try_from(turn).unwrap_or(u16::MAX),
        };
        let messages = talk.messages(self.recipe.systems.of(task), &question);
        let tools = self.kit.as_ref().map(|kit| Tools {
            offer: &kit.offer,
            call: step.map(|step| step.tool.as_str()),
        });
        let sampling = self.recipe.sampling(seq);
        let body = match &self.endpoint {
            None => self.recipe.body.offering(&messages, sampling, tools),
            Some(endpoint) => agent::body_for(endpoint, &question),
        };
        let told = self.ask(place, tokens, body, session).await;
        let well = told.call.outcome == CallOutcome::Complete;
        let (answer, calls) = (told.text.clone(), told.tools.clone());
        self.reporter.told(told);
        let mut round = Round {
            question,
            answer,
            ..Round::default()
        };
        let uses = match (step, hands, well) {
            (Some(step), Some(hands), true) => {
                let (uses, results) = hands.work(&self.cut, place, step, &calls).await;
                (round.calls, round.results) = (calls, results);
                uses
            }
            (None, Some(_), true) => Hands::unasked(place, &calls),
            _ => Vec::new(),
        };
        uses.into_iter().for_each(|one| self.reporter.used(one));
        round
    }

    /// What the user says, and the tokens that are new with it.
    fn question(&self, seq: u64, step: Option<&Step>) -> (String, u32) {
        let words = self.recipe.text(seq);
        let tokens = self.recipe.asked();
        match step.and_then(|step| step.say.as_ref()) {
            None => (words, tokens),
            Some(say) => {
                let question = format!("{say}\n\n{words}");
                let more = self
                    .recipe
                    .vocabulary
                    .count(&question)
                    .saturating_sub(self.recipe.tokens);
                (question, tokens + more)
            }
        }
    }

    async fn ask(
        &self,
        place: Place,
        tokens: u32,
        body: bytes::Bytes,
        session: Option<&mut Session>,
    ) -> Told {
        let ask = Ask {
            cell: place.cell,
            seq: place.seq,
            task: Some((place.task, place.turn)),
            warmup: false,
            intended: now(),
            prompt_tokens: tokens,
            body,
            collect: self.endpoint.is_none(),
            session: session.as_ref().map(|session| session.next()),
        };
        begin(&self.counts, &self.flight, &ask);
        let told = self.client.call(self.lane, ask).await;
        if let Some(session) = session {
            session.ended(&told.call);
        }
        end(&self.counts, &self.flight);
        told
    }
}
