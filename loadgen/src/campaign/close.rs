//! The end of a run: the taps' records, the tables, the verdict, the manifest.

use super::Campaign;
use crate::judge::{Evidence, verdict};
use crate::progress::Phase;
use crate::usage::shared;
use crate::{LoadError, tables, taps};
use config::ChainKind;
use record::manifest::{ChainInfo, FORMAT, Manifest, ScenarioInfo, Shard, TapHealth, Workload};
use record::verdict::Verdict;
use std::collections::HashSet;

impl Campaign<'_> {
    pub(super) fn close(&mut self) -> Result<(), LoadError> {
        self.stage.recorder.at(|c| c.phase = Phase::Gather);
        std::thread::sleep(taps::SETTLE);
        let healths = taps::gather(self.run, &self.plan.taps, self.began)?;
        self.mark_queues();
        self.stage.recorder.settle();
        self.scraper.finish()?;
        let cells: HashSet<u32> = self.cells.iter().map(|cell| cell.id).collect();
        tables::write(self.run, &cells)?;
        let evidence = Evidence {
            limits: &self.plan.scenario.limits,
            cells: &self.cells,
            taps: &healths,
            calibration: self.plan.calibration.as_ref(),
            legged: &self.legged(|_| true),
            gateways: &self.legged(|kind| kind == ChainKind::Gateway),
            tapped: self.tapped(),
            cpus: record::host::describe().cpus,
            stopped: self.stage.stop.requested(),
            late: self.slots.as_ref().map(|slots| slots.late),
        };
        // What an earlier process began and this one made anew is in the record too.
        let (mut calls, mut paired) = (self.run.stream_calls()?, self.run.pair()?);
        let counted = calls.by_ref().filter(|call| cells.contains(&call.cell));
        let found = verdict(&evidence, counted, paired.by_ref());
        for loss in calls.losses().iter().chain(paired.losses()) {
            tracing::warn!(%loss, "a part of the run's record is left out");
        }
        self.write_manifest(Some(found), &healths)?;
        self.stage.recorder.at(|c| {
            c.phase = Phase::Done;
            c.done = c.total;
        });
        Ok(())
    }

    pub(super) fn write_manifest(
        &self,
        verdict: Option<Verdict>,
        taps: &[TapHealth],
    ) -> Result<(), LoadError> {
        let plan = self.plan;
        let workload = &plan.scenario.workload;
        let scrape = self.scraper.account();
        let manifest = Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            run: plan.name.clone(),
            started: self.started.clone(),
            host: record::host::describe(),
            shared_cpu: self.shared_cpu(),
            simulated: plan.chains.iter().any(|c| c.chain.simulated),
            config: plan.texts(),
            scenario: Some(ScenarioInfo {
                number: plan.scenario.number,
                name: plan.scenario.name.clone(),
            }),
            chains: plan.chains.iter().map(|c| self.chain_info(c)).collect(),
            workload: Workload {
                input_tokens: workload.input_tokens,
                output_tokens: workload.output_tokens,
                tokenizer: self.stage.vocabulary.name().to_owned(),
                stream: workload.stream,
                trace: self.trace.as_ref().map(|trace| trace.info.clone()),
            },
            cells: self.cells.clone(),
            under_way: self.under_way.clone(),
            shard: self.shard(),
            resumed: self.resumed.clone(),
            seed: Some(plan.seed),
            boot: record::host::boot(),
            calibration: plan.calibration.clone(),
            verdict,
            taps: taps.to_vec(),
            tool_filter: self.tool_filter.clone(),
            token_probes: self.token_probes.clone(),
            experiments: self.experiments.clone(),
            scraped: scrape.scraped,
            scrape_cpu: scrape.cpu,
        };
        Ok(self.run.write_manifest(&manifest)?)
    }

    /// Whether the taps are part of what is measured. An experiment is told by the client alone; where
    /// their processes are named all the same, they are checked.
    fn tapped(&self) -> bool {
        self.plan.scenario.experiment.is_none() || !self.plan.taps.is_empty()
    }

    fn shard(&self) -> Option<Shard> {
        let (shard, slots) = self.plan.shard.as_ref().zip(self.slots.as_ref())?;
        Some(Shard {
            index: shard.index,
            of: shard.of.get(),
            wall_offset: slots.offset,
            late: slots.late,
        })
    }

    /// Whether load, taps, components and engine may run on the same CPUs. Told only of processes that
    /// are named: with one that is not, they count as shared.
    fn shared_cpu(&self) -> bool {
        let plan = self.plan;
        let own = vec![std::process::id()];
        let taps: Vec<u32> = plan.taps.iter().filter_map(|t| t.pid).collect();
        let components = self.components.iter().flat_map(|c| c.tree()).collect();
        shared(&[own, taps, components, plan.engine_pids.clone()])
    }

    fn chain_info(&self, planned: &crate::PlannedChain) -> ChainInfo {
        let chain = &planned.chain;
        let gateway = chain.gateway.as_ref().map(|g| match &g.version {
            Some(version) => format!("{} {version}", g.name),
            None => format!("{}, version not stated", g.name),
        });
        ChainInfo {
            name: chain.name.clone(),
            kind: chain.kind.as_str().to_owned(),
            simulated: chain.simulated,
            gateway,
            replicas: chain.replicas,
            capacity: self.capacities.get(&chain.name).cloned(),
            injected: planned.injected.clone(),
        }
    }
}
