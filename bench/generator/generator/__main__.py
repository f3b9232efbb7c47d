"""python3 -m generator: see run.sh beside this package."""

import argparse
import json
import random
import sys
import time
from pathlib import Path

from . import machine
from .engine import Engine, Script
from .outcome import Block, block, complaints, plain, table
from .tools import Aiperf, Guidellm, Hopscope, Load, Tool

# A larger share of a CPU, taken by others, and the block is run again.
OTHERS = 0.05


def arguments() -> argparse.Namespace:
    parse = argparse.ArgumentParser(description="Load generators against one engine's truth.")
    parse.add_argument("--streams", default="1,100,500,1000", help="numbers of streams")
    parse.add_argument("--rounds", type=int, default=5, help="blocks of each tool at each number")
    parse.add_argument("--calls", type=int, default=5, help="calls a stream, at least 25 and at most 4000 in all")
    parse.add_argument("--ttft", type=float, default=250, help="engine: median time to the first token, ms")
    parse.add_argument("--gap", type=float, default=40, help="engine: time between tokens, ms")
    parse.add_argument("--tokens", type=int, default=24, help="engine: tokens of an answer, 2 or more")
    parse.add_argument("--guidellm-most", type=int, default=100, help="most streams that guidellm is asked for")
    parse.add_argument("--retries", type=int, default=3, help="times that a disturbed block is run again")
    parse.add_argument("--seed", type=int, default=1, help="of the order")
    parse.add_argument("--hopscope", required=True, help="the hopscope program")
    parse.add_argument("--aiperf", type=Path, help="the aiperf program")
    parse.add_argument("--guidellm", type=Path, help="the guidellm program")
    parse.add_argument("--hub", type=Path, help="HF_HOME with the tokenizer")
    parse.add_argument("--work", type=Path, required=True, help="folder for files of the run")
    parse.add_argument("--out", type=Path, required=True, help="where the outcome goes as JSON")
    parse.add_argument("--note", action="append", default=[], help="a fact to keep with the outcome")
    return parse.parse_args()


def measure(tool: Tool, load: Load, number: int, script: Script, place: machine.Placement,
            hopscope: str, folder: Path) -> Block:  # fmt: skip
    """One block: a fresh engine, the tool, what both say."""
    folder.mkdir(parents=True)
    engine = Engine(hopscope, script, folder, place.engine)
    try:
        words = tool.command(engine.address, script, load, folder)
        began, before, served, own = time.monotonic(), machine.busy(), engine.cpu(), time.process_time()
        cpu = tool.run(place.tool, words, folder)
        wall, all_busy = time.monotonic() - began, machine.busy() - before
        engine_cpu, own = engine.cpu() - served, time.process_time() - own
    finally:
        engine.stop()
    used = {
        "cpu_seconds": cpu,
        "engine_cpu_seconds": engine_cpu,
        "others_cpu_seconds": max(0.0, all_busy - cpu - engine_cpu - own),
        "wall_seconds": wall,
    }
    return block(tool, load, number, tool.said(folder), engine.truth(), **used)


def main() -> int:
    args = arguments()
    levels = [int(word) for word in args.streams.split(",")]
    if min(levels) < 1 or args.rounds < 1 or args.calls < 1 or args.tokens < 2:
        print("generator: --streams, --rounds and --calls start at 1, --tokens at 2", file=sys.stderr)
        return 2
    script = Script(args.ttft, args.gap, args.tokens)
    place = machine.place()
    tools: list[Tool] = [Hopscope(args.hopscope)]
    if args.aiperf:
        tools.append(Aiperf(args.aiperf, args.hub))
    if args.guidellm:
        tools.append(Guidellm(args.guidellm, args.hub))
    order = random.Random(args.seed)
    blocks: list[Block] = []
    disturbed = 0
    for level in levels:
        load = Load(level, max(25, min(args.calls * level, 4000)))
        able = [tool for tool in tools if tool.name != "guidellm" or level <= args.guidellm_most]
        for number in range(args.rounds):
            for tool in order.sample(able, len(able)):
                for attempt in range(args.retries + 1):
                    folder = args.work / f"{level}-{number}-{tool.name}-{attempt}"
                    one = measure(tool, load, number, script, place, args.hopscope, folder)
                    quiet = one.others_cpu_seconds <= OTHERS * one.wall_seconds
                    print(
                        f"{tool.name} at {level}, round {number + 1}: {one.wall_seconds:.1f} s"
                        + ("" if quiet else f", others took {one.others_cpu_seconds:.2f} s of CPU"),
                        file=sys.stderr,
                    )
                    if quiet:
                        break
                disturbed += not quiet
                blocks.append(one)
    why = complaints(blocks, disturbed, args.rounds)
    verdict = "Verdict: valid." if not why else f"**Verdict: NOT A RESULT: {'; '.join(why)}.**"
    print(f"""{verdict}

Error of each load generator: what it reports less what the engine stand-in did, µs; median [least, largest] of {args.rounds} rounds, in random order.
*Simulated*: the engine was asked for {args.ttft:g} ms to the first token, {args.gap:g} ms between tokens, {args.tokens} tokens; what it did is its own stamps. {place.words}.
{machine.describe()}. {'; '.join(args.note)}.
""")
    print(table(blocks, [tool.name for tool in tools], levels))
    outcome = {
        "verdict": why, "notes": args.note, "machine": machine.describe(), "placement": place.words,
        "script": vars(script), "rounds": args.rounds, "blocks": plain(blocks),
    }  # fmt: skip
    args.out.write_text(json.dumps(outcome, indent=1) + "\n")
    return 1 if why else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, OSError, KeyError, ValueError) as error:
        print(f"generator: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
