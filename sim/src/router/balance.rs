//! The choice of a replica, without a clock and without connections.

use std::collections::{BTreeMap, HashMap};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Policy;

/// Blocks of a prompt that are compared: `maxPrefixBlocksToMatch` in llm-d's configurations.
const MOST_BLOCKS: usize = 256;
/// Blocks remembered of one replica: `lruCapacityPerServer` in llm-d's configurations.
const REMEMBERED: usize = 31_250;
/// Weights of the prefix-cache and queue scorers in llm-d's guide.
const PREFIX_WEIGHT: f64 = 3.0;
const LOAD_WEIGHT: f64 = 2.0;

/// Chooses.
pub(super) struct Balancer {
    policy: Policy,
    turn: usize,
    random: StdRng,
    sent: Vec<Sent>,
}

impl Balancer {
    pub(super) fn new(policy: Policy, replicas: usize, seed: u64) -> Self {
        Self {
            policy,
            turn: 0,
            random: StdRng::seed_from_u64(seed),
            sent: (0..replicas).map(|_| Sent::default()).collect(),
        }
    }

    /// One of the `ready` replicas for a prompt with these blocks; `None` where none is ready.
    pub(super) fn pick(&mut self, ready: &[usize], load: &[u64], hashes: &[u64]) -> Option<usize> {
        if ready.is_empty() {
            return None;
        }
        let hashes = &hashes[..hashes.len().min(MOST_BLOCKS)];
        let place = match self.policy {
            Policy::RoundRobin => {
                self.turn += 1;
                (self.turn - 1) % ready.len()
            }
            Policy::Random => self.random.random_range(0..ready.len()),
            Policy::Prefix => self.best(ready, load, hashes),
        };
        let replica = ready.get(place).copied()?;
        if let (Policy::Prefix, Some(sent)) = (self.policy, self.sent.get_mut(replica)) {
            sent.remember(hashes);
        }
        Some(replica)
    }

    /// The place in `ready` with the highest score.
    fn best(&mut self, ready: &[usize], load: &[u64], hashes: &[u64]) -> usize {
        let loads: Vec<u64> = ready.iter().map(|replica| load[*replica]).collect();
        let least = loads.iter().copied().min().unwrap_or(0);
        let most = loads.iter().copied().max().unwrap_or(0);
        let score = |replica: usize| {
            let known = self.sent[replica].known(hashes) as f64 / hashes.len().max(1) as f64;
            let free = match most - least {
                0 => 1.0,
                range => (most - load[replica]) as f64 / range as f64,
            };
            PREFIX_WEIGHT * known + LOAD_WEIGHT * free
        };
        let scores: Vec<f64> = ready.iter().map(|replica| score(*replica)).collect();
        let highest = scores.iter().copied().fold(0.0, f64::max);
        let best: Vec<usize> = (0..scores.len())
            .filter(|place| scores[*place] >= highest)
            .collect();
        best[self.random.random_range(0..best.len())]
    }
}

/// The blocks most recently sent to one replica.
#[derive(Default)]
struct Sent {
    used: HashMap<u64, u64>,
    order: BTreeMap<u64, u64>,
    uses: u64,
}

impl Sent {
    /// With how many blocks of `hashes`, from the first on, the replica is known to have begun.
    fn known(&self, hashes: &[u64]) -> usize {
        let known = hashes
            .iter()
            .take_while(|hash| self.used.contains_key(*hash));
        known.count()
    }

    fn remember(&mut self, hashes: &[u64]) {
        // From the last on, so that beginnings are forgotten last.
        for hash in hashes.iter().rev() {
            self.uses += 1;
            if let Some(before) = self.used.insert(*hash, self.uses) {
                self.order.remove(&before);
            }
            self.order.insert(self.uses, *hash);
        }
        while self.used.len() > REMEMBERED
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Balancer, Policy, REMEMBERED};

    #[test]
    fn round_robin_takes_turns_and_nothing_is_chosen_of_nothing() {
        let mut balancer = Balancer::new(Policy::RoundRobin, 3, 0);
        let picks: Vec<_> = (0..4)
            .map(|_| balancer.pick(&[0, 2], &[0; 3], &[]))
            .collect();
        assert_eq!(picks, [Some(0), Some(2), Some(0), Some(2)]);
        assert_eq!(balancer.pick(&[], &[0; 3], &[]), None);
    }

    #[test]
    fn a_known_prefix_draws_and_load_pushes_away() {
        let mut balancer = Balancer::new(Policy::Prefix, 2, 0);
        let all = [0, 1];
        let first = balancer.pick(&all, &[0, 0], &[1, 2, 3]).unwrap();
        let mut load = [0, 0];
        load[first] = 5;
        // The whole prompt is known there: that outweighs its load.
        assert_eq!(balancer.pick(&all, &load, &[1, 2, 3]), Some(first));
        // Only a third is known: load decides.
        assert_eq!(balancer.pick(&all, &load, &[1, 8, 9]), Some(1 - first));
        // At equal load the longer prefix wins.
        assert_eq!(balancer.pick(&all, &[1, 1], &[1, 2, 7]), Some(first));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut balancer = Balancer::new(Policy::Prefix, 1, 0);
        for number in 0..2 * REMEMBERED as u64 {
            balancer.pick(&[0], &[0], &[number]);
        }
        assert_eq!(balancer.sent[0].used.len(), REMEMBERED);
        assert_eq!(balancer.sent[0].order.len(), REMEMBERED);
    }
}
