"""Every test passes, told by a runner that the tests cannot answer for; and a task that gives nonsense is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labwright.planning.checks.assertions import tests_in
from labwright.planning.checks.made_up_values import made_up_values
from labwright.planning.checks.subject import Found, Module, Subject
from labwright.planning.project.run_tests import FILE_SECONDS

_SHOWN = 400
_NOT_RUN: dict[str, Any] = {"whole": False, "late": "", "tests": {}, "replaced": {}}


def check_tests(subject: Subject) -> Iterator[Found]:
    made_up = made_up_values(subject.ir.workflow)
    ran = subject.child.run_tests(made_up)
    if ran is None:
        words = "The tests did not come to their end."
        hint = "Does one of them end its process, or take gigabytes of memory?"
        yield Found(code="tests_no_answer", place="tests", message=words, hint=hint)
        return
    failed = False
    for module in subject.below("tests"):
        for found in _outcomes(module, ran.get(module.path.removeprefix("tests/"), _NOT_RUN)):
            failed = True
            yield found
    if not failed:
        yield from _unnoticed(ran, made_up)


def _unnoticed(ran: dict[str, Any], made_up: dict[str, Any]) -> Iterator[Found]:
    for task, value in made_up.items():
        if set(ran[f"test_{task}.py"]["replaced"].values()) == {"passed"}:
            words = f"The tests of {task} pass as well when it always gives {str(value)[:200]}."
            hint = "Compare what it gives with what it should give, for an input that is written in the test."
            yield Found(code="tests_notice_nothing", place=f"tests/test_{task}.py", message=words, hint=hint)


def _outcomes(module: Module, told: dict[str, Any]) -> Iterator[Found]:
    outcomes: dict[str, str] = told["tests"]
    if told["late"]:
        words = f"{module.path}: {told['late']} had not ended when the file's {FILE_SECONDS:g} s were over."
        hint = "Is there a loop that does not end?"
        yield Found(code="tests_no_answer", place=module.path, message=words, hint=hint)
        return
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
