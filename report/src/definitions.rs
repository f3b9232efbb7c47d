//! What each word of the report means. `docs/metrics.md` says the same at length.

/// One word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// The word.
    pub name: &'static str,
    /// What it is, from which instant to which.
    pub meaning: &'static str,
}

const fn define(name: &'static str, meaning: &'static str) -> Definition {
    Definition { name, meaning }
}

/// Every word of the report, in the order in which it is shown.
pub const DEFINITIONS: [Definition; 41] = [
    define(
        "request",
        "outer tap began to write the last request byte → inner tap read it (first attempt)",
    ),
    define(
        "first token",
        "inner tap began to write the event that ends the first text → outer tap read that text position",
    ),
    define(
        "token",
        "the same for each later text position: a distribution of delays, never summed; each call weighs the same",
    ),
    define("last token", "the same at the last text position"),
    define(
        "finish, terminal, end",
        "the same for the finish reason, [DONE], the last byte",
    ),
    define(
        "recovery",
        "first attempt → serving attempt at the inner tap; calls with several attempts are out of the headline legs",
    ),
    define(
        "outside the attempts",
        "with several attempts: outer duration less the union of the inner exchanges",
    ),
    define("added TTFT", "request + recovery + first token"),
    define(
        "added E2E (text), (end)",
        "request + recovery + last token, or + end",
    ),
    define(
        "bounds",
        "median of the lower and of the upper ends of each value's interval, by the same weights and losses as p50: a read dates its bytes only so far",
    ),
    define(
        "interval",
        "95 % of the median, by resampling blocks, calls without an end ranked at the top as in the median itself; none with fewer than two blocks. “Open”: its upper end falls on such calls",
    ),
    define(
        "floor",
        "median of the same leg of the relay probe in the same blocks: two loopback hops and a wake-up. Beside the leg, never subtracted",
    ),
    define(
        "TTFT",
        "at the client: request handed to the socket → first event with text. vLLM's benchmark takes the first event with a choice instead",
    ),
    define(
        "TPOT",
        "(last text − first text) ÷ (completion tokens − 1), by the server's count",
    ),
    define(
        "E2E",
        "at the client: request handed to the socket → last byte",
    ),
    define(
        "turn",
        "of an agent: model call taken up → its last byte, or the result of the last tool that it called",
    ),
    define(
        "task",
        "of an agent: first turn taken up → end of the last one; one with a failed or missing part is a lower bound, here and in added E2E of a task",
    ),
    define(
        "model time, tool time of a task",
        "sums over its model calls (taken up → last byte) and its tool calls; what is left of the task is the driver's own",
    ),
    define(
        "tool call",
        "call handed to the MCP client → result there: the transport and the client are in it",
    ),
    define(
        "goodput",
        "calls a second that were answered in full and each met the objective's bounds on TTFT (from the intended send) and TPOT",
    ),
    define(
        "tokens/s",
        "completion tokens by the server's count ÷ the measured time, over all callers. Where answers came more slowly than calls were due, the time is as long as they took, here and for calls answered a second",
    ),
    define(
        "cached prompt tokens",
        "cached ÷ all prompt tokens, as the server's usage has them, over the calls where it states both; how many these are is said where not all do",
    ),
    define(
        "KV cache, prompt cache",
        "cached ÷ all prompt tokens: by what counters of all replicas gained from just before a cell to just after it, by the usage of the requests at the inner tap, and by the usage that the client is given. An answer from a gateway's cache is in the last one's calls and in none of the others",
    ),
    define(
        "cache of answers, semantic cache",
        "answers from the gateway's cache ÷ what is named beside: by its own counters, and by the taps' evidence (no exchange at the inner tap, and a header or a response id seen before)",
    ),
    define(
        "change an hour, interval",
        "of memory and descriptors: Theil–Sen slope of medians of stretches, with 95 % by the ranks of the slopes; judged from an hour of steady load on, the first tenth left out",
    ),
    define(
        "merge ratio",
        "content events at the inner tap ÷ content events at the outer tap; 1: passed one for one",
    ),
    define(
        "perturbation",
        "(E2E tapped − E2E untapped) − (the taps' own delay + floor): what inserting the taps changed beyond what they account for. Not given unless the servers count the same prompt and completion tokens for both",
    ),
    define(
        "cold start",
        "event → end of the first answer in full. At least: less the time between the answered call and the one due before it",
    ),
    define(
        "update turnaround",
        "event → end of the first answer in full by the new version (due behind the command's end, or by its new name), with no failure for the settle time from then on",
    ),
    define(
        "error window",
        "first failed call due → first call due from which on none fails for the settle time",
    ),
    define(
        "degraded window",
        "end of the error window (without failures: first slow call) → latency of before",
    ),
    define(
        "time to steady, scale-out delay, queue drain",
        "event (trigger, step in load, end of the burst) → first call due from which on, for the settle time, none fails and the rolling median of TTFT is back within its factor of the one before",
    ),
    define(
        "queue drain (calls in flight)",
        "end of the burst → as few calls in flight as at the most before it",
    ),
    define(
        "let through",
        "of a probe of a limit: calls answered with 2xx and no error of a limit, decided within one window of the first send; their usage, for tokens and money",
    ),
    define(
        "beyond",
        "let through less the limit; the last call of a limit of tokens or money may reach over it by itself, calls beyond were sent later still",
    ),
    define(
        "advantage",
        "of a tenant that looks for another's prompts: share of (known, fresh) twos of calls in which the known one has the smaller TTFT (AUC)",
    ),
    define(
        "missed, blocked",
        "prompts that must be blocked and were not, and that must pass and did not; a prompt counts once, whatever its repetitions",
    ),
    define(
        "sent n of m scheduled",
        "calls that were due and not sent, since as many as may be were in flight: they rank at the top of TTFT, E2E and TPOT, and are in no leg",
    ),
    define(
        "rises, falls",
        "of a figure over a course: by the sign of Kendall's S (pairs of phases that rise less those that fall), where p is below 0.05",
    ),
    define(
        "capacity",
        "calls a second at which the objective holds: a monotone fit of the share of due calls that meet it, over open-loop rates, and a fresh run that held",
    ),
    define(
        "saturated",
        "driven beyond the capacity found: what is measured is queueing, not overhead",
    ),
];
