"""What a step is given: a digest, to know whether it was done before, and the values, only if it was not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from labwright.workflow.graph import Output, Step, outputs_in
from labwright.workflow.outcomes import Outcome
from labwright.workflow.values import Sealed, decode, digest_of, encode, text_of


@dataclass(frozen=True)
class Given:
    digest: str
    load: Callable[[], Any]  # a fresh copy each time


class Sources:
    """Looks up outputs of steps that have finished; opened, or sealed for who only hands them on."""

    def __init__(self, outcomes: Mapping[str, Outcome], sealed: bool = False) -> None:
        self._outcomes = outcomes
        self._opened: Callable[[Any], Any] = Sealed if sealed else decode
        self._digests: dict[Output, str] = {}

    def value(self, output: Output) -> Any:
        return self._opened(self._outcomes[output.step].encoded(output.name))

    def given(self, value: Any) -> Given:
        if isinstance(value, Output):
            return Given(self._digest(value), lambda: self.value(value))
        if outputs_in(value):
            parts = [self.given(item) for item in value]
            return Given(digest_of("+".join(part.digest for part in parts)), lambda: [part.load() for part in parts])
        encoded = encode(value)
        return Given(digest_of(text_of(encoded)), lambda: self._opened(encoded))

    def combinations(self, step: Step) -> Iterator[dict[str, Given]]:
        """The inputs of each job of a step: one, or of a fan-out one for each combination."""
        same = {name: self.given(value) for name, value in step.inputs.items()}
        if step.over is None:
            yield same
            return
        axes = [[self.given(item) for item in self._items(value)] for value in step.over.values()]
        for point in itertools.product(*axes):
            yield {**same, **dict(zip(step.over, point))}  # noqa: B905 - Python 3.8 has no strict

    def _items(self, value: Any) -> list[Any]:
        return list(self.value(value)) if isinstance(value, Output) else list(value)

    def _digest(self, output: Output) -> str:
        if output not in self._digests:
            self._digests[output] = self._outcomes[output.step].digest(output.name)
        return self._digests[output]


def key_of(step: str, code: str, given: Mapping[str, Given]) -> str:
    """Two jobs with one key do the same work: same step, same code and environment, same inputs."""
    return digest_of(text_of([step, code, {name: part.digest for name, part in given.items()}]))
