"""The load generators: how each is asked for the same load, and what it says of it."""

import json
import os
import signal
import subprocess
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from .engine import Script

# Longest that one tool may take for one block, seconds.
LIMIT = 600.0
PROMPT_TOKENS = 64


@dataclass
class Said:
    """What a tool reports of its calls: p50 and p99, nanoseconds; absent where it says nothing."""

    calls: int
    ttft: dict[str, float | None]
    tpot: dict[str, float | None]
    e2e: dict[str, float | None]


@dataclass(frozen=True)
class Load:
    """So many streams at once, until so many calls have ended."""

    streams: int
    calls: int


class Tool(ABC):
    """One load generator."""

    name: str
    # Its E2E ends with the last byte; otherwise with the last text.
    ends_with_last_byte = True

    @abstractmethod
    def command(self, address: str, script: Script, load: Load, folder: Path) -> list[str]:
        """The words that drive `address`, files in `folder`."""

    @abstractmethod
    def said(self, folder: Path) -> Said:
        """Reads its report."""

    def environment(self) -> dict[str, str]:
        """What is added to the environment."""
        return {}

    def run(self, prefix: tuple[str, ...], words: list[str], folder: Path) -> float:
        """Runs it to its end. CPU seconds of its process and of all that it waited for."""
        environment = {**os.environ, **self.environment()}
        with open(folder / "tool.log", "wb") as out:
            child = subprocess.Popen(
                [*prefix, *words], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                cwd=folder, env=environment, start_new_session=True,
            )  # fmt: skip
        limit = threading.Timer(LIMIT, os.killpg, (child.pid, signal.SIGKILL))
        limit.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
        finally:
            limit.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        # hopscope: 1 is a run that it does not call valid, which it cannot be without taps.
        if child.returncode not in ((0, 1) if self.name == "hopscope" else (0,)):
            raise RuntimeError(f"{self.name} ended with {child.returncode}; see {folder}/tool.log")
        return usage.ru_utime + usage.ru_stime


class Hopscope(Tool):
    """`hopscope load`, read from the JSON form of its report."""

    name = "hopscope"

    def __init__(self, program: str):
        self.program = program

    def command(self, address, script, load, folder):
        chain = {
            "name": "engine", "kind": "service", "simulated": True, "entry": f"http://{address}",
            "model": "m", "gateway": {"name": "stand-in"},
            "taps": [{"name": "outer", "position": "outer", "listen": address,
                      "upstream": {"addresses": ["127.0.0.1:9"]}}],
        }  # fmt: skip
        scenario = {
            "name": "generator", "number": 1, "question": "How far is the generator off?",
            "workload": {"input_tokens": PROMPT_TOKENS, "output_tokens": script.tokens},
            "closed_loop": {"concurrency": [load.streams], "cell": {"calls": load.calls}},
            "blocks": 1, "warmup": {"duration": "1us"}, "seed": 1,
            # As the others do it: every percentile that can be read is printed.
            "limits": {"samples_beyond_min": 1},
        }  # fmt: skip
        # JSON is YAML.
        (folder / "chain.yaml").write_text(json.dumps(chain))
        (folder / "scenario.yaml").write_text(json.dumps(scenario))
        return [
            self.program, "load", "--quiet", "--scenario", "scenario.yaml",
            "--chain", "chain.yaml", "--out", "run",
        ]  # fmt: skip

    def said(self, folder):
        subprocess.run(
            [self.program, "report", "run", "--json", "report.json"],
            cwd=folder, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        (arm,) = json.loads((folder / "report.json").read_text())["arms"]

        def row(name):
            readings = {q: arm[name][q] for q in ("p50", "p99")}
            return {
                q: reading["value"]["value"] if "value" in reading else None
                for q, reading in readings.items()
            }

        return Said(arm["e2e"]["calls"], row("ttft"), row("tpot"), row("e2e"))


class Aiperf(Tool):
    """AIPerf, read from its JSON export."""

    name = "aiperf"
    ends_with_last_byte = False

    def __init__(self, program: Path, hub: Path):
        self.program, self.hub = program, hub

    def environment(self):
        return offline(self.hub)

    def command(self, address, script, load, folder):
        return [
            str(self.program), "profile", "--model", "m", "--url", f"http://{address}",
            "--endpoint-type", "chat", "--streaming", "--tokenizer", TOKENIZER,
            "--concurrency", str(load.streams), "--request-count", str(load.calls),
            "--isl", str(PROMPT_TOKENS), "--osl", str(script.tokens),
            "--extra-inputs", "ignore_eos:true", "--use-server-token-count",
            "--no-server-metrics", "--no-gpu-telemetry", "--random-seed", "1",
            "--ui", "none", "--artifact-dir", "out",
        ]  # fmt: skip

    def said(self, folder):
        (path,) = (folder / "out").rglob("profile_export_aiperf.json")
        told = json.loads(path.read_text())

        def row(name):
            scale = {"ms": 1e6, "sec": 1e9, "s": 1e9, "us": 1e3, "ns": 1.0}[told[name]["unit"]]
            return {q: scaled(told[name].get(q), scale) for q in ("p50", "p99")}

        return Said(
            round(told["request_count"]["avg"]),
            row("time_to_first_token"), row("inter_token_latency"), row("request_latency"),
        )  # fmt: skip


class Guidellm(Tool):
    """GuideLLM, read from its JSON output."""

    name = "guidellm"

    def __init__(self, program: Path, hub: Path):
        self.program, self.hub = program, hub

    def environment(self):
        return offline(self.hub)

    def command(self, address, script, load, folder):
        return [
            str(self.program), "run",
            "--backend", f"kind=openai_http,target=http://{address},model=m",
            "--profile", f"kind=concurrent,streams={load.streams}",
            "--constraint", f"kind=max_requests,count={load.calls}",
            "--tokenizer", f"kind=hf_auto,model={snapshot(self.hub)}",
            "--data", f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={script.tokens}",
            "--output", "kind=json,path=out.json", "--disable-console",
        ]  # fmt: skip

    def said(self, folder):
        told = json.loads((folder / "out.json").read_text())["benchmarks"][0]["metrics"]

        def row(name, scale):
            percentiles = told[name]["successful"]["percentiles"]
            return {q: scaled(percentiles.get(q), scale) for q in ("p50", "p99")}

        return Said(
            told["request_totals"]["successful"],
            row("time_to_first_token_ms", 1e6), row("inter_token_latency_ms", 1e6),
            row("request_latency", 1e9),
        )  # fmt: skip


def scaled(value: float | None, scale: float) -> float | None:
    """In nanoseconds; absent stays absent."""
    return None if value is None else value * scale


# A tokenizer that is made here: nothing is fetched from a hub.
TOKENIZER = "local/tiny"


def snapshot(hub: Path) -> Path:
    """Where the hub's cache holds that tokenizer."""
    return hub / "hub/models--local--tiny/snapshots/made"


def offline(hub: Path) -> dict[str, str]:
    """What keeps a tool from looking for anything on the network."""
    return {
        "HF_HOME": str(hub), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
        "DO_NOT_TRACK": "1",
    }  # fmt: skip
