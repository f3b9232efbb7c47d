//! The metrics of a tap process. Base unit is the second; histograms are classic and native at
//! once, with buckets that still tell microseconds apart.

use super::labels::{CallLabels, LegLabels, OutcomeLabels, TapLabels};
use crate::meter::Tally;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, NativeHistogramConfig};
use prometheus_client::registry::{Registry, Unit};
use record::exchange::Exchange;
use record::leg::Legs;
use record::pairing::{Call, PairingCounts};
use record::span::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Legs: 1 µs to 17 s, half a decade apart and finer where gateways live.
const LEG_BUCKETS: [f64; 27] = [
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 3e-5, 5e-5, 7.5e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4, 7.5e-4, 1e-3,
    2e-3, 3e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 5.0, 17.0,
];
/// Whole latencies: 1 ms to 10 min.
const LATENCY_BUCKETS: [f64; 20] = [
    1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0,
    60.0, 300.0, 600.0,
];

/// Makes histograms with these classic buckets and native ones beside them.
#[derive(Debug, Clone)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        let native = NativeHistogramConfig::new(1.1)
            .zero_threshold(1e-7)
            .max_buckets(160);
        Histogram::new_classic_and_native(self.0.iter().copied(), native)
    }
}

type Histograms<L> = Family<L, Histogram, Buckets>;

/// Everything that `/metrics` shows.
pub struct Metrics {
    registry: Registry,
    exchanges: Family<OutcomeLabels, Counter>,
    ttft: Histograms<TapLabels>,
    duration: Histograms<TapLabels>,
    own_delay: Histograms<TapLabels>,
    events: Family<TapLabels, Counter>,
    joined: Family<TapLabels, Counter>,
    client_blocked: Family<TapLabels, Counter<f64, AtomicU64>>,
    resent: Family<TapLabels, Counter>,
    legs: Histograms<LegLabels>,
    negative: Family<LegLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    pressured: Family<TapLabels, Counter>,
    waiting: Gauge,
    conflicts: Gauge,
    inner_only: Gauge,
    lateness_p99: Gauge<f64, AtomicU64>,
    lateness_max: Gauge<f64, AtomicU64>,
    clock_steps: Gauge,
}

/// Counters that the taps keep themselves.
#[derive(Debug)]
struct TallyCollector(Arc<Tally>);

impl Collector for TallyCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = [
            (
                "hopscope_exchanges_begun",
                "Exchanges begun at any tap",
                read(&self.0.begun),
            ),
            (
                "hopscope_meter_lost",
                "Exchange records dropped because the meter was behind: each counts as unpaired",
                read(&self.0.lost),
            ),
            (
                "hopscope_malformed_requests",
                "Connections that sent something else than a request",
                read(&self.0.malformed),
            ),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(
                name,
                help,
                None,
                counter.metric_type(),
            )?)?;
        }
        let gauges = [
            (
                "hopscope_exchanges_active",
                "Exchanges under way",
                read(&self.0.active),
            ),
            (
                "hopscope_connections",
                "Client connections open",
                read(&self.0.connections),
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value.cast_signed());
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

impl Metrics {
    pub(crate) fn new(tally: Arc<Tally>) -> Self {
        let leg = || Family::new_with_constructor(Buckets(&LEG_BUCKETS));
        let latency = || Family::new_with_constructor(Buckets(&LATENCY_BUCKETS));
        let mut metrics = Self {
            registry: Registry::default(),
            exchanges: Family::default(),
            ttft: latency(),
            duration: latency(),
            own_delay: leg(),
            events: Family::default(),
            joined: Family::default(),
            client_blocked: Family::default(),
            resent: Family::default(),
            legs: Family::new_with_constructor(Buckets(&LEG_BUCKETS)),
            negative: Family::default(),
            calls: Family::default(),
            pressured: Family::default(),
            waiting: Gauge::default(),
            conflicts: Gauge::default(),
            inner_only: Gauge::default(),
            lateness_p99: Gauge::default(),
            lateness_max: Gauge::default(),
            clock_steps: Gauge::default(),
        };
        metrics.register(tally);
        metrics
    }

    fn register(&mut self, tally: Arc<Tally>) {
        let r = &mut self.registry;
        let s = || Unit::Seconds;
        r.register(
            "hopscope_exchanges",
            "Finished exchanges by tap and outcome",
            self.exchanges.clone(),
        );
        r.register_with_unit(
            "hopscope_ttft",
            "At a tap: last request byte out to first text in",
            s(),
            self.ttft.clone(),
        );
        r.register_with_unit(
            "hopscope_exchange_duration",
            "At a tap: last request byte out to last response byte in",
            s(),
            self.duration.clone(),
        );
        r.register_with_unit(
            "hopscope_tap_delay",
            "The tap's own delay on the first text: read returned to write done",
            s(),
            self.own_delay.clone(),
        );
        r.register(
            "hopscope_text_events",
            "Streamed events with text",
            self.events.clone(),
        );
        r.register("hopscope_joined_events", "Events that shared a read with an earlier one, so that the tap itself joined their writes", self.joined.clone());
        r.register_with_unit(
            "hopscope_client_blocked",
            "Time in which clients blocked the tap's writes",
            s(),
            self.client_blocked.clone(),
        );
        r.register(
            "hopscope_resent_requests",
            "Requests sent again because a pooled connection was closed: out of every leg",
            self.resent.clone(),
        );
        r.register_with_unit("hopscope_leg", "Latency that the component between two taps adds, by leg; negative values count in hopscope_leg_negative_total", s(), self.legs.clone());
        r.register(
            "hopscope_leg_negative",
            "Legs below zero: kept out of the histogram, never clamped",
            self.negative.clone(),
        );
        r.register(
            "hopscope_calls",
            "Calls by what became of them",
            self.calls.clone(),
        );
        r.register(
            "hopscope_pressured_positions",
            "Text positions left out of the legs because a peer blocked a write",
            self.pressured.clone(),
        );
        r.register(
            "hopscope_pairing_waiting",
            "Exchanges waiting for their counterpart",
            self.waiting.clone(),
        );
        r.register(
            "hopscope_pairing_conflicts",
            "Pairs dropped because what came back contradicts them",
            self.conflicts.clone(),
        );
        r.register(
            "hopscope_pairing_inner_only",
            "Inner exchanges that no call explains",
            self.inner_only.clone(),
        );
        r.register_with_unit(
            "hopscope_lateness_p99",
            "How late the tap's threads wake, 99th percentile since start",
            s(),
            self.lateness_p99.clone(),
        );
        r.register_with_unit(
            "hopscope_lateness_max",
            "How late the tap's threads wake, largest since start",
            s(),
            self.lateness_max.clone(),
        );
        r.register(
            "hopscope_clock_steps",
            "Steps of the wall clock seen since start",
            self.clock_steps.clone(),
        );
        r.register_collector(Box::new(TallyCollector(tally)));
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Takes in one exchange.
    pub(crate) fn exchange(&self, e: &Exchange) {
        let labels = TapLabels {
            chain: e.chain.to_string(),
            tap: e.tap.to_string(),
        };
        let outcome = OutcomeLabels {
            chain: e.chain.to_string(),
            tap: e.tap.to_string(),
            outcome: e.outcome.name(),
        };
        self.exchanges.get_or_create(&outcome).inc();
        self.events
            .get_or_create(&labels)
            .inc_by(u64::from(e.stream.counts.text_events));
        self.joined
            .get_or_create(&labels)
            .inc_by(u64::from(e.pressure.joined_events));
        self.client_blocked
            .get_or_create(&labels)
            .inc_by(e.pressure.client_blocked as f64 / 1e9);
        if e.connection.resent {
            self.resent.get_or_create(&labels).inc();
        }
        let Some(from) = e.request_out() else { return };
        let since = |at: u64| at.saturating_sub(from.begin) as f64 / 1e9;
        if let Some(first) = e.stream.marks.first_text {
            self.ttft
                .get_or_create(&labels)
                .observe(since(first.arrival.latest()));
            if let Some(left) = first.departure {
                self.own_delay
                    .get_or_create(&labels)
                    .observe(left.end.saturating_sub(first.arrival.at) as f64 / 1e9);
            }
        }
        if let Some(end) = e.marks.end {
            self.duration
                .get_or_create(&labels)
                .observe(since(end.arrival.latest()));
        }
    }

    /// Takes in one settled call.
    pub(crate) fn call(&self, call: &Call, legs: Option<&Legs>) {
        let chain = call.outer.chain.to_string();
        self.calls
            .get_or_create(&CallLabels {
                chain: chain.clone(),
                class: call.class.name(),
            })
            .inc();
        let Some(legs) = legs else { return };
        let class = call.outer.connection.upstream_class.name();
        let single = [
            ("head", legs.head),
            ("request", legs.request),
            ("recovery", legs.recovery),
            ("first-token", legs.first_token),
            ("finish", legs.finish),
            ("terminal", legs.terminal),
            ("end", legs.end),
            ("added-ttft", legs.added_ttft),
            ("added-e2e", legs.added_text.or(legs.added_end)),
        ];
        for (leg, span) in single {
            self.leg(&chain, leg, class, span.as_slice());
        }
        self.leg(&chain, "token", class, &legs.tokens.delays);
        if legs.tokens.pressured > 0 {
            let labels = TapLabels {
                chain,
                tap: call.outer.tap.to_string(),
            };
            self.pressured
                .get_or_create(&labels)
                .inc_by(u64::from(legs.tokens.pressured));
        }
    }

    fn leg(&self, chain: &str, leg: &'static str, class: &'static str, spans: &[Span]) {
        if spans.is_empty() {
            return;
        }
        let labels = LegLabels {
            chain: chain.to_owned(),
            leg,
            class,
        };
        let histogram = self.legs.get_or_create(&labels);
        let negative = spans.iter().filter(|s| s.value < 0).count();
        for span in spans.iter().filter(|s| s.value >= 0) {
            histogram.observe(span.value as f64 / 1e9);
        }
        drop(histogram);
        if negative > 0 {
            self.negative.get_or_create(&labels).inc_by(negative as u64);
        }
    }

    /// Takes in the state of pairing.
    pub(crate) fn pairing(&self, counts: &PairingCounts, waiting: usize) {
        let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.waiting.set(gauge(waiting as u64));
        self.conflicts.set(gauge(counts.conflicts));
        self.inner_only.set(gauge(counts.inner_only));
    }

    /// Takes in the lateness of the tap's threads.
    pub(crate) fn lateness(&self, summary: Option<(f64, f64, f64)>, steps: u64) {
        if let Some((_, p99, max)) = summary {
            self.lateness_p99.set(p99 / 1e9);
            self.lateness_max.set(max / 1e9);
        }
        self.clock_steps
            .set(i64::try_from(steps).unwrap_or(i64::MAX));
    }
}
