"""Whether the best beats the baseline by more than seeds alone make a difference, in words that claim no more."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from labwright.domain.search.results import ConfigurationResult, differ
from labwright.planning.results.words import amount, spread

_MANY = 3  # from so many on, the best of them owes something to the choosing


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    kind: str  # no_baseline | no_value | same | unknown | no_noise | within_noise | beyond_noise
    text: str
    gain: float | None = None  # positive is better, whichever way the metric goes

    @property
    def is_made(self) -> bool:
        return self.kind not in ("no_baseline", "no_value")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compared(
    best: ConfigurationResult | None, baseline: ConfigurationResult | None, goal: str, metric: str, configurations: int
) -> Comparison:
    if baseline is None:
        return Comparison(kind="no_baseline", text="The plan names no baseline, so there is nothing to compare with.")
    if best is None or best.mean is None or baseline.mean is None:
        who = "The baseline" if baseline.mean is None else "No configuration"
        return Comparison(kind="no_value", text=f"{who} has no finished run with {metric}: nothing can be compared.")
    if best.label == baseline.label:
        return Comparison(
            kind="same", gain=0.0, text="The baseline itself is the best: nothing that was tried beats it."
        )
    gain = best.mean - baseline.mean if goal == "max" else baseline.mean - best.mean
    kind, words = _judged(best, baseline)
    return Comparison(
        kind=kind, gain=gain, text=f"{_head(best, baseline, gain)} {words}{_chosen(kind, configurations)}"
    )


def _head(best: ConfigurationResult, baseline: ConfigurationResult, gain: float) -> str:
    assert best.mean is not None
    assert baseline.mean is not None
    share = f" ({abs(gain / baseline.mean):.1%} of the baseline)" if baseline.mean else ""
    return f"The best has {spread(best)}, the baseline {spread(baseline)}: {amount(gain)} better{share}."


def _judged(best: ConfigurationResult, baseline: ConfigurationResult) -> tuple[str, str]:
    if best.n < 2 or baseline.n < 2:
        which = "each" if best.n < 2 and baseline.n < 2 else "the best" if best.n < 2 else "the baseline"
        return "unknown", (
            f"With one run of {which} no noise can be told: the difference may be luck. More seeds would say."
        )
    if not best.std and not baseline.std:
        return "no_noise", "Every seed gave the same number, so the seeds tell nothing of the noise."
    if differ(best, baseline):
        return "beyond_noise", "That is more than the noise between seeds explains (Welch's t test, 95 %)."
    return "within_noise", "That may be the noise between seeds (Welch's t test, 95 %): no difference can be claimed."


def _chosen(kind: str, configurations: int) -> str:
    if kind != "beyond_noise" or configurations < _MANY:
        return ""
    return (
        f" It was chosen among {configurations} by this very number, which favours luck: "
        "with fresh seeds the lead may be smaller."
    )
