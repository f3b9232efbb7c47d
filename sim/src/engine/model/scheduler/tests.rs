//! What holds whatever comes: random jobs, arrivals and departures under a seed.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

fn small() -> ModelOptions {
    ModelOptions {
        max_num_seqs: 4,
        max_num_batched_tokens: 40,
        kv_blocks: 12,
        ..ModelOptions::default()
    }
}

fn job(prompt: u64, output: u64, salt: u64) -> Job {
    let blocks = (prompt + output) / BLOCK_TOKENS;
    Job {
        prompt,
        output,
        hashes: (0..blocks).map(|block| block * 1000 + salt).collect(),
    }
}

/// Blocks with users, as the pool has it and as the sequences have it.
fn assert_blocks_add_up(scheduler: &Scheduler) {
    let mut used: Vec<BlockId> = scheduler
        .sequences
        .values()
        .flat_map(|sequence| sequence.blocks.iter().copied())
        .collect();
    used.sort_unstable();
    used.dedup();
    let pool = &scheduler.pool;
    assert_eq!(pool.total() - pool.free(), used.len() as u64);
    assert!(scheduler.running() <= scheduler.options.max_num_seqs);
    let tokens: u64 = scheduler.step.iter().map(|(_, tokens)| tokens).sum();
    assert!(tokens <= scheduler.options.max_num_batched_tokens);
    for (id, _) in &scheduler.step {
        assert!(scheduler.running.contains(id));
    }
}

/// Runs a random history and gives its tokens and counts.
fn history(seed: u64) -> (Vec<Token>, Tally) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut scheduler = Scheduler::new(small());
    let (mut open, mut given) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        if random.random_bool(0.3) {
            let (prompt, output) = (random.random_range(0..150), random.random_range(0..60));
            open.extend(scheduler.arrive(job(prompt, output, random.random_range(0..3))));
        }
        scheduler.begin();
        assert_blocks_add_up(&scheduler);
        if random.random_bool(0.05) && !open.is_empty() {
            scheduler.leave(open.swap_remove(random.random_range(0..open.len())));
        }
        given.extend(scheduler.end());
        assert_blocks_add_up(&scheduler);
    }
    let mut steps = 0;
    while scheduler.begin().is_some() {
        given.extend(scheduler.end());
        steps += 1;
        assert!(steps < 100_000, "requests that never end");
    }
    assert_eq!((scheduler.running(), scheduler.waiting()), (0, 0));
    assert_eq!(scheduler.pool.free(), scheduler.pool.total());
    for id in open {
        let mut numbers = given.iter().filter(|token| token.sequence == id);
        let count = numbers.clone().count() as u64;
        assert!(numbers.clone().zip(1..).all(|(t, n)| t.number == n));
        assert_eq!(numbers.find(|token| token.last).unwrap().number, count);
    }
    (given, scheduler.tally)
}

#[test]
fn no_block_leaks_nothing_is_overcommitted_and_every_request_ends() {
    let mut preemptions = 0;
    for seed in 0..60 {
        let (given, tally) = history(seed);
        assert_eq!((given, tally), history(seed), "seed {seed}");
        assert!(tally.found <= tally.queried);
        preemptions += tally.preemptions;
    }
    assert!(preemptions > 0, "the histories were too easy");
}

#[test]
fn a_repeated_prompt_is_prefilled_once() {
    let mut scheduler = Scheduler::new(small());
    let mut tokens_until_first = |prompt, salt| {
        scheduler.arrive(job(prompt, 1, salt)).unwrap();
        let mut duration = 0;
        loop {
            duration += scheduler.begin().unwrap().duration;
            if let Some(token) = scheduler.end().pop() {
                return (duration, token.cached);
            }
        }
    };
    let (step, token) = (29_000_000, 1_429_000);
    assert_eq!(tokens_until_first(64, 1), (2 * step + 64 * token, 0));
    // The last block is computed again: its last token gives the answer.
    assert_eq!(tokens_until_first(64, 1), (step + 16 * token, 48));
    assert_eq!(tokens_until_first(64, 2), (2 * step + 64 * token, 0));
}

#[test]
fn a_step_costs_what_the_options_say() {
    let mut scheduler = Scheduler::new(small());
    scheduler.arrive(job(10, 5, 0));
    let first = scheduler.begin().unwrap();
    assert_eq!(first.duration, 29_000_000 + 10 * 1_429_000);
    assert_eq!(first.admitted, [1]);
    scheduler.end();
    assert_eq!(
        scheduler.begin().unwrap().duration,
        29_000_000 + 550_000 + 11 * 182
    );
    assert!(scheduler.arrive(job(12 * 16, 1, 0)).is_none());
}
