"""Reads a profile_export_aiperf.json with AIPerf's own model and prints what it understood as JSON.

    aiperf_export.py FILE

Beyond the model, which allows further fields: each metric must be one of AIPerf's, in the unit that AIPerf
writes it in, and have no field that AIPerf does not know.
"""

import json
import pathlib
import sys

from aiperf.common.models.export_models import JsonExportData, JsonMetricResult
from aiperf.metrics.metric_registry import MetricRegistry

content = json.loads(pathlib.Path(sys.argv[1]).read_text())
export = JsonExportData.model_validate(content)
for tag, metric in content.items():
    if not isinstance(metric, dict) or "unit" not in metric:
        continue
    known = MetricRegistry.get_class(tag)
    unit = str(known.display_unit or known.unit)
    if metric["unit"] != unit:
        sys.exit(f"{tag} is in {metric['unit']}, AIPerf writes {unit}")
    unknown = set(metric) - set(JsonMetricResult.model_fields)
    if unknown:
        sys.exit(f"{tag} has {sorted(unknown)}, which AIPerf does not know")
print(export.model_dump_json(exclude_none=True))
