"""Blocks, their errors against the truth, and the tables for people."""

from dataclasses import asdict, dataclass
from statistics import median

from .engine import Truth, quantile
from .tools import Load, Said, Tool

# Of a 99th percentile: at fewer calls it is the largest value.
LEAST_FOR_P99 = 100
QUANTILES = {"p50": 0.5, "p99": 0.99}
MEASURES = ("TTFT", "TPOT", "E2E")


@dataclass
class Block:
    """One tool at one number of streams, once. Errors: what the tool says less the truth, ns."""

    tool: str
    streams: int
    round: int
    calls: int
    true_calls: int
    errors: dict[str, float | None]
    truth: dict[str, float]
    connections: int
    cpu_seconds: float
    engine_cpu_seconds: float
    others_cpu_seconds: float
    wall_seconds: float


def block(tool: Tool, load: Load, number: int, said: Said, truth: Truth, **used: float) -> Block:
    """Compares what a tool says with what the engine did."""
    if not truth.ttft:
        raise RuntimeError(f"{tool.name} made no call of the length that was asked for")
    end = truth.to_end if tool.ends_with_last_byte else truth.to_last_text
    pairs = zip(MEASURES, (said.ttft, said.tpot, said.e2e), (truth.ttft, truth.tpot, end), strict=True)
    errors, true = {}, {}
    for measure, told, really in pairs:
        for name, q in QUANTILES.items():
            key = f"{measure} {name}"
            true[key] = quantile(really, q)
            enough = name == "p50" or len(really) >= LEAST_FOR_P99
            value = told[name]
            errors[key] = value - true[key] if enough and value is not None else None
    return Block(
        tool.name, load.streams, number, said.calls, len(truth.ttft), errors, true,
        truth.connections, **used,
    )  # fmt: skip


def complaints(blocks: list[Block], disturbed: int, rounds: int) -> list[str]:
    """Why the run is not a result; none where it is one."""
    found = []
    if rounds < 3:
        found.append(f"{rounds} rounds tell no spread")
    if disturbed:
        found.append(f"other processes took over 5 % of a CPU in {disturbed} blocks")
    for one in blocks:
        if one.calls != one.true_calls:
            found.append(
                f"{one.tool} at {one.streams} streams tells of {one.calls} calls, the engine of {one.true_calls}"
            )
    return found


def spread(values: list[float | None], digits: int) -> str:
    """Median and range over the rounds."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return "–"
    text = f"{median(known):.{digits}f}"
    if len(known) > 1:
        text += f" [{min(known):.{digits}f}, {max(known):.{digits}f}]"
    return text


def table(blocks: list[Block], tools: list[str], levels: list[int]) -> str:
    """Markdown: a table for each number of streams."""
    heads = [f"{measure} {name}" for measure in MEASURES for name in QUANTILES]
    lines = []
    for level in levels:
        lines += [
            f"### {level} stream{'' if level == 1 else 's'}", "",
            f"| tool | {' | '.join(heads)} | connections | CPU s | CPU ms a call | wall s |",
            "|---" * (len(heads) + 5) + "|",
        ]  # fmt: skip
        at = [one for one in blocks if one.streams == level]
        for tool in tools:
            mine = [one for one in at if one.tool == tool]
            if not mine:
                lines.append(f"| {tool} |" + " – |" * (len(heads) + 4))
                continue
            errors = [
                spread([v / 1e3 if (v := one.errors[head]) is not None else None for one in mine], 0)
                for head in heads
            ]
            cells = [
                tool, *errors,
                spread([one.connections for one in mine], 0),
                spread([one.cpu_seconds for one in mine], 1),
                spread([one.cpu_seconds * 1e3 / one.true_calls for one in mine], 2),
                spread([one.wall_seconds for one in mine], 1),
            ]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
        if at:
            true = [spread([one.truth[head] / 1e6 for one in at], 2) for head in heads]
            lines.append(f"| *truth, ms* | {' | '.join(true)} | | | | |")
        lines.append("")
    return "\n".join(lines)


def plain(blocks: list[Block]) -> list[dict]:
    """For JSON."""
    return [asdict(one) for one in blocks]
