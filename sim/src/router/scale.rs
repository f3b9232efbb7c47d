//! Which replicas are there: a rule without a clock of its own, looked at with every request.

use super::ScaleOptions;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replica {
    Down,
    /// Ready at, ns.
    Starting(u64),
    /// Without a request since, ns; `None` while it has some.
    Ready(Option<u64>),
}

/// The state of every replica.
pub(super) struct Scaler {
    options: ScaleOptions,
    replicas: Vec<Replica>,
    least: usize,
    /// The last launch: when it was decided, when its replica gets requests, ns.
    last: Option<(u64, u64)>,
}

impl Scaler {
    pub(super) fn new(options: ScaleOptions, count: usize) -> Self {
        let least = match options.min_replicas {
            0 => count,
            least => least.min(count),
        };
        let mut replicas = vec![Replica::Down; count];
        replicas[..least].fill(Replica::Ready(None));
        Self {
            options,
            replicas,
            least,
            last: None,
        }
    }

    /// A request comes at `at` ns, beside those in flight.
    pub(super) fn arrival(&mut self, at: u64, load: &[u64]) {
        self.look(at, load);
        let there = self.ready().len() + self.starting();
        let in_flight = load.iter().sum::<u64>() + 1;
        if in_flight <= self.options.scale_above * there as u64 {
            return;
        }
        let down = self.replicas.iter_mut().find(|it| **it == Replica::Down);
        if let Some(replica) = down {
            let it = &self.options;
            let takes = it.launch_ms + it.pull_ms + it.load_ms;
            let ready = at + takes * 1_000_000;
            *replica = Replica::Starting(ready);
            self.last = Some((at, ready));
        }
    }

    /// Applies what time has done since.
    pub(super) fn look(&mut self, at: u64, load: &[u64]) {
        for (replica, load) in self.replicas.iter_mut().zip(load) {
            *replica = match (*replica, *load) {
                (Replica::Starting(ready_at), _) if ready_at <= at => Replica::Ready(Some(at)),
                (Replica::Ready(_), 1..) => Replica::Ready(None),
                (Replica::Ready(None), 0) => Replica::Ready(Some(at)),
                (same, _) => same,
            };
        }
        let idle = self.options.idle_ms * 1_000_000;
        let mut spare = self.ready().len().saturating_sub(self.least);
        for replica in self.replicas.iter_mut().rev() {
            let idles = matches!(replica, Replica::Ready(Some(since)) if *since + idle <= at);
            if spare > 0 && idles {
                *replica = Replica::Down;
                spare -= 1;
            }
        }
    }

    /// The replicas that get requests.
    pub(super) fn ready(&self) -> Vec<usize> {
        let replicas = self.replicas.iter().enumerate();
        replicas
            .filter(|(_, replica)| matches!(replica, Replica::Ready(_)))
            .map(|(number, _)| number)
            .collect()
    }

    /// The last launch: when it was decided, when its replica gets requests, ns.
    pub(super) fn last_launch(&self) -> Option<(u64, u64)> {
        self.last
    }

    /// How many are on their way.
    pub(super) fn starting(&self) -> usize {
        let starting = |replica: &&Replica| matches!(replica, Replica::Starting(_));
        self.replicas.iter().filter(starting).count()
    }
}

#[cfg(test)]
mod tests {
    use super::{ScaleOptions, Scaler};

    #[test]
    fn replicas_come_after_their_times_and_go_when_idle() {
        let options = ScaleOptions {
            min_replicas: 1,
            scale_above: 2,
            launch_ms: 1,
            pull_ms: 2,
            load_ms: 3,
            idle_ms: 10,
        };
        let mut scaler = Scaler::new(options, 3);
        scaler.arrival(0, &[1, 0, 0]);
        assert_eq!((scaler.ready().len(), scaler.starting()), (1, 0));
        scaler.arrival(0, &[2, 0, 0]);
        // The one that starts counts: not every request starts another.
        scaler.arrival(0, &[3, 0, 0]);
        assert_eq!((scaler.ready().len(), scaler.starting()), (1, 1));
        assert_eq!(scaler.last_launch(), Some((0, 6_000_000)));
        scaler.look(5_999_999, &[3, 0, 0]);
        assert_eq!(scaler.ready(), [0]);
        scaler.look(6_000_000, &[3, 0, 0]);
        assert_eq!(scaler.ready(), [0, 1]);
        scaler.look(15_999_999, &[0, 0, 0]);
        assert_eq!(scaler.ready(), [0, 1]);
        scaler.look(16_000_000, &[0, 0, 0]);
        assert_eq!(scaler.ready(), [0]);
        scaler.look(900_000_000, &[0, 0, 0]);
        assert_eq!(scaler.ready(), [0]);
    }

    #[test]
    fn without_a_least_all_are_there() {
        assert_eq!(Scaler::new(ScaleOptions::default(), 2).ready(), [0, 1]);
    }
}
