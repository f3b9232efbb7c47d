"""Reads a file with the llm-d benchmark report's own package and prints what it understood as JSON.

    llmd_report.py report FILE            a report: held against the schema
    llmd_report.py aiperf FILE            another tool's result, turned into a report
    llmd_report.py vllm-benchmark FILE

What the package refuses ends the script with its message.
"""

import json
import sys

from llmd_benchmark_report import import_benchmark_report
from llmd_benchmark_report.native_to_br0_2 import import_aiperf, import_vllm_benchmark

READ = {"report": import_benchmark_report, "aiperf": import_aiperf, "vllm-benchmark": import_vllm_benchmark}

kind, path = sys.argv[1:]
understood = json.dumps(READ[kind](path).dump())
# `Infinity` and `NaN`, which Python writes, are no JSON.
print(json.dumps(json.loads(understood, parse_constant=str)))
