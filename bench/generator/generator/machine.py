"""The machine: its CPUs, and how quiet it was."""

import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

TICK = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Placement:
    """Commands that put the engine and a tool on CPUs of their own; empty where nothing is pinned."""

    engine: tuple[str, ...]
    tool: tuple[str, ...]
    words: str


def place() -> Placement:
    """The engine has the first CPU and every tool all others, where there are two and taskset."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2 or shutil.which("taskset") is None:
        return Placement((), (), "nothing pinned: engine and tools share the CPUs")
    others = ",".join(map(str, cpus[1:]))
    words = f"engine pinned to CPU {cpus[0]}, every tool alike to CPU {others}"
    return Placement(
        ("taskset", "-c", str(cpus[0])), ("taskset", "-c", others), words
    )


def describe() -> str:
    """CPUs and kernel, in words."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} × {names[0] if names else 'unknown'}, kernel {platform.release()}"


def busy() -> float:
    """CPU seconds that all processes of the machine have used."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()
    user, nice, system, _, _, irq, softirq = map(int, words[1:8])
    return (user + nice + system + irq + softirq) * TICK


def spent(pid: int) -> float:
    """CPU seconds of a process, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK
