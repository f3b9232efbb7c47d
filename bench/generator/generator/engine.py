"""The engine stand-in, with its truth log, for one block."""

import json
import math
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from . import machine

# Of a row of `tokens`: choice, field, tool, end of the text, read, write begun, write ended.
WRITE_BEGIN = 5


@dataclass(frozen=True)
class Script:
    """What the engine is asked to do. The truth is what it did."""

    ttft_ms: float
    gap_ms: float
    tokens: int


@dataclass
class Truth:
    """What the engine did in one block: per call, in nanoseconds."""

    ttft: list[int]
    tpot: list[float]
    to_last_text: list[int]
    to_end: list[int]
    connections: int


class Engine:
    """`hopscope sim engine` as a process; stopped when the block is over."""

    def __init__(self, hopscope: str, script: Script, folder: Path, prefix: tuple[str, ...]):
        self.log = folder / "truth.jsonl"
        self.script = script
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        command = [
            *prefix, hopscope, "sim", "engine", "--listen", self.address, "--model", "m",
            "--truth", str(self.log), "--ttft-us", str(round(script.ttft_ms * 1e3)),
            "--ttft-sigma", "0.1", "--gap-us", str(round(script.gap_ms * 1e3)),
            "--gap-jitter", "0.1", "--tokens", str(script.tokens),
        ]  # fmt: skip
        with open(folder / "engine.log", "wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> None:
        host, port = self.address.split(":")
        limit = time.monotonic() + 20
        while True:
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"the engine does not start; see {self.log.parent}/engine.log")
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                time.sleep(0.05)

    def cpu(self) -> float:
        """CPU seconds so far."""
        return machine.spent(self.process.pid)

    def stop(self) -> None:
        """Ends it, so that the log is whole."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def truth(self) -> Truth:
        """Reads the log of the stopped engine. Calls of another length are the tools' own trials."""
        lines = self.log.read_text().splitlines()
        footer = json.loads(lines[-1]).get("closed")
        if footer is None or footer["dropped"]:
            raise RuntimeError(f"{self.log} is not whole: {lines[-1][:100]}")
        truth = Truth([], [], [], [], 0)
        connections = set()
        for line in lines[1:-1]:
            call = json.loads(line)
            tokens = call["tokens"]
            if call["outcome"] != "complete" or len(tokens) != self.script.tokens:
                continue
            marks = {mark["mark"]: mark for mark in call["marks"]}
            read = marks["request_body"]["read_at"]
            first, last = tokens[0][WRITE_BEGIN], tokens[-1][WRITE_BEGIN]
            truth.ttft.append(first - read)
            truth.tpot.append((last - first) / (len(tokens) - 1))
            truth.to_last_text.append(last - read)
            truth.to_end.append(marks["end"]["write_begin"] - read)
            connections.add(call["connection"])
        truth.connections = len(connections)
        return truth


def quantile(values: list, q: float) -> float:
    """Linear between order statistics, as all three tools do (R's type 7)."""
    values = sorted(values)
    rank = q * (len(values) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (rank - below)
