"""The script reports the metric that decides."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from labwright.planning.checks.subject import Found, Subject
from labwright.planning.ir.model import WORKFLOW_FILE


def check_metric(subject: Subject) -> Iterator[Found]:
    metric, script = subject.ir.workflow.grid.metric.name, subject.ir.experiment.script
    entry = subject.scan.entry_point(script)
    reported = [found.name for found in entry.metrics] if entry else []
    if entry and not any(fnmatchcase(metric, name) for name in reported):
        words = f"{script} does not report {metric}."
        hint = f"It reports: {', '.join(reported) or 'nothing that could be read'}."
        yield Found(code="metric_not_produced", place=WORKFLOW_FILE, message=words, hint=hint)
