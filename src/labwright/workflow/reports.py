"""What a check found: a code to rely on, a place, a sentence, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    code: str
    place: str  # `step`, `step.inputs.name`, `results.name`, or the workflow itself
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.message} [{self.code}]" + (f" {self.hint}" if self.hint else "")


@dataclass(frozen=True)
class Report:
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings

    @property
    def codes(self) -> list[str]:
        return [finding.code for finding in self.findings]

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "no findings"

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, "findings": [asdict(finding) for finding in self.findings]}
