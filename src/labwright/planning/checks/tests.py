"""Every test passes, told by a runner that the tests cannot answer for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labwright.planning.checks.assertions import tests_in
from labwright.planning.checks.subject import Found, Module, Subject

_SHOWN = 400


def check_tests(subject: Subject) -> Iterator[Found]:
    ran = subject.child.run_tests()
    if ran is None:
        words = "The tests did not come to their end."
        hint = "Does one of them end its process, or take longer than a minute?"
        yield Found(code="tests_no_answer", place="tests", message=words, hint=hint)
        return
    for module in subject.below("tests"):
        yield from _outcomes(module, ran.get(module.path.removeprefix("tests/"), {"whole": False, "tests": {}}))


def _outcomes(module: Module, told: dict[str, Any]) -> Iterator[Found]:
    outcomes: dict[str, str] = told["tests"]
    if not told["whole"] or "(import)" in outcomes:
        words = f"{module.path}: {outcomes.get('(import)', 'its process ended before its tests did')}."
        yield Found(code="tests_no_answer", place=module.path, message=words, hint="It must import and run to its end.")
        return
    for test in tests_in(module):
        outcome = outcomes.get(test.name, "it was not run")
        if outcome != "passed":
            words = f"{test.name}: {outcome[-_SHOWN:]}"
            hint = "The body or the test is wrong; see which."
            yield Found(code="test_failed", place=module.at(test), message=words, hint=hint)
