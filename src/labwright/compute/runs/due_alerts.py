"""Answers alerts as the project's own rules say: at once, or when nobody did in time."""

from __future__ import annotations

import logging
import time

from labwright.compute.lab import Lab
from labwright.compute.runs.alert_rules import project_rules
from labwright.domain.alert import Alert
from labwright.domain.errors import LabwrightError
from labwright.domain.run import RunStatus
from labwright.store import runs

log = logging.getLogger(__name__)


class DueAlerts:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._unanswerable: set[str] = set()

    def answer(self) -> None:
        rules = project_rules(self._lab.paths.config)
        for alert, choice in rules.due_defaults(self._lab.db.reader(), time.time()):
            if alert.id not in self._unanswerable and (choice != "rerun" or self._may_begin_again(alert)):
                self._carry_out(alert.id, choice)

    def _may_begin_again(self, alert: Alert) -> bool:
        """Once, by itself: what is a rerun already would go round for ever, and what somebody stopped is to stay so."""
        if alert.run_id is None:
            return False
        run = runs.get(self._lab.db.reader(), alert.run_id)
        return run.parent_run_id is None and run.status is not RunStatus.STOPPED

    def _carry_out(self, alert_id: str, choice: str) -> None:
        try:
            self._lab.answer_alert(alert_id, choice)
        except LabwrightError:
            self._unanswerable.add(alert_id)  # said once; a person still can
            log.exception("the rule's own answer %r to %s could not be carried out", choice, alert_id)
