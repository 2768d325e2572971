"""Ids are safe in a path, a shell and a URL, and nothing else is accepted as an id."""

from __future__ import annotations

import re

import pytest

from labwright.domain.ids import ALERT, RUN, SWEEP, is_id, new_id


@pytest.mark.parametrize("kind", [RUN, SWEEP, ALERT])
def test_new_id_is_valid_only_for_its_kind(kind: str) -> None:
    made = new_id(kind)
    assert re.fullmatch(r"[a-z]+-[0-9a-z]{10}", made)
    assert [other for other in (RUN, SWEEP, ALERT) if is_id(made, other)] == [kind]


def test_ids_do_not_repeat() -> None:
    assert len({new_id(RUN) for _ in range(20_000)}) == 20_000


@pytest.mark.parametrize(
    "text",
    ["", "run-", "run-..", "run-../../etc", "run-01234567890", "run-012345678O", "RUN-0123456789"],
)
def test_invalid_id_is_not_accepted(text: str) -> None:
    assert not is_id(text, RUN)
