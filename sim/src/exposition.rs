//! Prometheus' text format, as far as stand-ins need it.

use std::fmt::{Display, Write};

/// A page under construction.
#[derive(Default)]
pub(crate) struct Exposition {
    text: String,
    labels: String,
}

impl Exposition {
    /// A page whose samples all carry these labels.
    pub(crate) fn with_labels(labels: &[(&str, &str)]) -> Self {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                format!("{name}=\"{}\"", value.replace('\n', "\\n"))
            })
            .collect();
        Self {
            text: String::new(),
            labels: labels.join(","),
        }
    }

    /// A counter; `name` ends in `_total`.
    pub(crate) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.single(name, ("counter", help), value);
    }

    /// A gauge.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.single(name, ("gauge", help), value);
    }

    fn single(&mut self, name: &str, (kind, help): (&str, &str), value: impl Display) {
        self.opening(name, kind, help);
        self.sample(name, "", value);
    }

    /// A histogram in seconds.
    pub(crate) fn histogram(&mut self, name: &str, help: &str, histogram: &Seconds) {
        self.opening(name, "histogram", help);
        let mut below = 0;
        let bounds = histogram.bounds.iter().map(f64::to_string);
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&histogram.counts) {
            below += count;
            self.sample(&format!("{name}_bucket"), &format!("le=\"{bound}\""), below);
        }
        self.sample(&format!("{name}_sum"), "", histogram.sum);
        self.sample(&format!("{name}_count"), "", below);
    }

    fn opening(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, extra: &str, value: impl Display) {
        let both = [self.labels.as_str(), extra];
        let labels: Vec<&str> = both.into_iter().filter(|part| !part.is_empty()).collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// Durations by bucket.
#[derive(Debug, Clone)]
pub(crate) struct Seconds {
    bounds: &'static [f64],
    /// One more than bounds.
    counts: Vec<u64>,
    sum: f64,
}

impl Seconds {
    /// Empty buckets with these upper bounds, s, in rising order.
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    /// Counts one duration, ns.
    pub(crate) fn observe(&mut self, nanoseconds: u64) {
        let seconds = nanoseconds as f64 / 1e9;
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum += seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::{Exposition, Seconds};

    #[test]
    fn buckets_are_cumulative_and_labels_escaped() {
        let mut seconds = Seconds::new(&[0.5, 1.0]);
        for nanoseconds in [500_000_000, 600_000_000, 3_000_000_000] {
            seconds.observe(nanoseconds);
        }
        let mut page = Exposition::with_labels(&[("model", "a\"b")]);
        page.histogram("t", "Help.", &seconds);
        page.counter("c_total", "Help.", 3);
        assert_eq!(
            page.finish(),
            "# HELP t Help.\n# TYPE t histogram\nt_bucket{model=\"a\\\"b\",le=\"0.5\"} 1\n\
             t_bucket{model=\"a\\\"b\",le=\"1\"} 2\nt_bucket{model=\"a\\\"b\",le=\"+Inf\"} 3\n\
             t_sum{model=\"a\\\"b\"} 4.1\nt_count{model=\"a\\\"b\"} 3\n\
             # HELP c_total Help.\n# TYPE c_total counter\nc_total{model=\"a\\\"b\"} 3\n"
        );
    }
}
