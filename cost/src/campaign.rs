//! How long a matrix of runs takes and what it costs: an estimate from the scenarios' own figures, before anything
//! was driven.
//!
//! Counted are warm-up, cells, agents' tasks and tenants, block by block, and the search for a capacity as if every
//! rate up to its last were served. Not counted are probes, traces, experiments of operation, and the time between
//! cells. Cells at a share of a capacity that nobody knows yet count by their time alone.

use config::plan::Benchmark;
use config::scenario::{CellLength, Tenants};
use config::{Chain, ChainKind, Scenario};

/// What one scenario does on one chain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Seconds.
    pub seconds: f64,
    /// Calls, if all that are wanted are made.
    pub calls: f64,
    /// Tokens of their prompts.
    pub input_tokens: f64,
    /// Tokens of their answers.
    pub output_tokens: f64,
}

impl std::ops::AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.calls += other.calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
    }
}

/// One scenario on one chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The scenario's name.
    pub scenario: String,
    /// The chain's name.
    pub chain: String,
    /// What it does.
    pub load: Load,
}

/// Every scenario on every chain of a matrix, in its order.
#[must_use]
pub fn runs(matrix: &config::MatrixSet, benchmark: &Benchmark) -> Vec<Run> {
    let mut all = Vec::new();
    for (scenario, chains) in &matrix.runs {
        let drive = Drive::new(scenario, benchmark);
        for chain in chains {
            all.push(Run {
                scenario: scenario.name.clone(),
                chain: chain.name.clone(),
                load: drive.of(chain),
            });
        }
    }
    all
}

/// A scenario and how fast calls are thought to be.
struct Drive<'a> {
    scenario: &'a Scenario,
    ttft: f64,
    per_token: f64,
}

impl<'a> Drive<'a> {
    fn new(scenario: &'a Scenario, benchmark: &Benchmark) -> Self {
        Self {
            scenario,
            ttft: benchmark.ttft_seconds,
            per_token: 1.0 / benchmark.tokens_per_second,
        }
    }

    fn of(&self, chain: &Chain) -> Load {
        let kind = chain.kind;
        let mut load = Load::default();
        if kind.is_control() && !self.scenario.controls.contains(&kind) {
            return load;
        }
        for _ in 0..self.scenario.blocks {
            load += self.block(kind);
        }
        if !kind.is_control() {
            load += self.search();
        }
        load
    }

    /// Seconds of one call.
    fn call(&self) -> f64 {
        self.ttft + f64::from(self.scenario.workload.output_tokens) * self.per_token
    }

    /// Tokens of one prompt.
    fn prompt(&self) -> f64 {
        let work = &self.scenario.workload;
        let system = work.system.as_ref().map_or(0, |system| system.tokens);
        f64::from(work.input_tokens) + f64::from(system)
    }

    fn calls(&self, seconds: f64, calls: f64) -> Load {
        Load {
            seconds,
            calls,
            input_tokens: calls * self.prompt(),
            output_tokens: calls * f64::from(self.scenario.workload.output_tokens),
        }
    }

    /// Load at a rate for so long, and the warm-up before it.
    fn at_rate(&self, rate: f64, length: &CellLength) -> Load {
        let mut load = Load::default();
        for part in [&self.scenario.warmup, length] {
            let seconds = seconds(part, rate);
            load += self.calls(seconds, rate * seconds);
        }
        load
    }

    fn block(&self, kind: ChainKind) -> Load {
        let scenario = self.scenario;
        let mut load = Load::default();
        if let Some(open) = &scenario.open_loop {
            for rate in open.common_rate.iter().chain(&open.rates) {
                load += self.at_rate(*rate, &open.cell);
            }
            for _ in &open.shares {
                let lasts =
                    |length: &CellLength| length.duration.map_or(0.0, |d| d.get().as_secs_f64());
                load.seconds += lasts(&scenario.warmup) + lasts(&open.cell);
            }
        }
        if let Some(closed) = &scenario.closed_loop {
            let turn = self.call() + closed.think.get().as_secs_f64();
            for callers in &closed.concurrency {
                load += self.at_rate(f64::from(*callers) / turn, &closed.cell);
            }
        }
        if let Some(profile) = &scenario.profile {
            for phase in &profile.phases {
                let seconds = phase.duration.get().as_secs_f64();
                let mean = (phase.rate + phase.to.unwrap_or(phase.rate)) / 2.0;
                load += self.calls(seconds, mean * seconds);
            }
        }
        if !kind.is_control() || kind == ChainKind::Untapped {
            load += self.agent();
        }
        if let Some(tenants) = scenario.tenants.as_ref().filter(|_| !kind.is_control()) {
            load += self.tenants(tenants);
        }
        load
    }

    /// Tasks whose prompts grow by every answer.
    fn agent(&self) -> Load {
        let Some(agent) = &self.scenario.agent else {
            return Load::default();
        };
        let (turns, tasks) = (f64::from(agent.turns), f64::from(agent.tasks));
        let answer = f64::from(self.scenario.workload.output_tokens);
        let rounds = turns * (turns + 1.0) / 2.0;
        Load {
            seconds: tasks * turns * self.call() / f64::from(agent.concurrency),
            calls: tasks * turns,
            input_tokens: tasks * (rounds * self.prompt() + (rounds - turns) * answer),
            output_tokens: tasks * turns * answer,
        }
    }

    /// Each tenant alone, all together, and all while one floods.
    fn tenants(&self, tenants: &Tenants) -> Load {
        let mut load = Load::default();
        let together: f64 = tenants.members.iter().map(|one| one.rate).sum();
        for member in &tenants.members {
            let mut rates = vec![member.rate, member.rate];
            rates.extend(tenants.flood.iter().map(|flood| {
                if flood.tenant == member.name {
                    flood.rate
                } else {
                    member.rate
                }
            }));
            for rate in rates {
                let mut own = self.at_rate(rate, &tenants.cell);
                own.input_tokens += own.calls * f64::from(member.system_tokens);
                load += Load {
                    seconds: 0.0,
                    ..own
                };
            }
        }
        let company = if tenants.flood.is_some() { 2.0 } else { 1.0 };
        let alone: f64 = tenants
            .members
            .iter()
            .map(|one| self.at_rate(one.rate, &tenants.cell).seconds)
            .sum();
        load.seconds = alone + company * self.at_rate(together, &tenants.cell).seconds;
        load
    }

    /// The search for a capacity: every rate up to the last, and as many more at the last as halving takes.
    fn search(&self) -> Load {
        let Some(search) = &self.scenario.capacity else {
            return Load::default();
        };
        let hold = search.hold.get().as_secs_f64();
        let mut load = Load::default();
        let mut rate = search.start_rate;
        while rate < search.max_rate {
            load += self.calls(hold, rate * hold);
            rate *= search.step.max(1.01);
        }
        load += self.calls(hold, search.max_rate * hold);
        let halvings = ((search.step - 1.0) / search.precision)
            .log2()
            .ceil()
            .max(0.0);
        load += self.calls(halvings * hold, halvings * search.max_rate * hold);
        load
    }
}

/// Seconds of a part whose calls come at `rate`: its duration or its calls, whichever ends it first.
fn seconds(length: &CellLength, rate: f64) -> f64 {
    let by_time = length.duration.map(|duration| duration.get().as_secs_f64());
    let by_calls = length
        .calls
        .filter(|_| rate > 0.0)
        .map(|calls| calls as f64 / rate);
    match (by_time, by_calls) {
        (Some(time), Some(calls)) => time.min(calls),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests;
