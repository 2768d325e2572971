"""The ledger records every call, and a session that has spent its limit asks before it goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from labwright.llm import ChatMessage, ChatRequest, EndPiece, ScriptedChat, TextPiece, Tier, Usage
from labwright.llm.chat import read_reply
from labwright.llm.faults import AnswerCut
from labwright.llm.ledger import BudgetReached, Ledger, MeteredChat, SpendingLimits, SpendingLog
from labwright.llm.models import Models
from labwright.paths import ProjectPaths
from labwright.settings import Settings

QUESTION = ChatRequest(system="s", messages=(ChatMessage(role="user", text="How is it going?"),))


def ended(tokens_in: int, tokens_out: int, cost: float = 0.0) -> EndPiece:
    return EndPiece(Usage(tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=cost), "scripted", "end")


def test_spending_is_summed_by_session_and_model_and_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "spending.jsonl"
    ledger = Ledger(SpendingLog(path), "ses-1", SpendingLimits())
    ledger.record(Tier.DEFAULT, "a:x", Usage(tokens_in=10, tokens_out=5, cost_usd=0.25))
    ledger.record(Tier.HEAVY, "b:y", Usage(tokens_in=1, tokens_out=1, priced=False))
    Ledger(SpendingLog(path), "ses-2", SpendingLimits()).record(Tier.CHEAP, "a:x", Usage(tokens_in=100, cost_usd=0.5))
    book = SpendingLog(path)
    assert (book.of_session("ses-1").tokens, book.of_session("ses-1").unpriced_calls) == (17, 1)
    assert (book.of_model("a:x").calls, book.of_model("a:x").cost_usd) == (2, 0.75)
    assert (book.total().tokens, book.total().calls) == (117, 3)
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("limits", "what"),
    [
        (SpendingLimits(tokens=100), "tokens"),
        (SpendingLimits(usd=1.0), "usd"),
        (SpendingLimits(tokens=100, usd=1.0), "usd"),
    ],
)
def test_limit_pauses_the_session_until_more_is_allowed(tmp_path: Path, limits: SpendingLimits, what: str) -> None:
    path = tmp_path / "spending.jsonl"
    script = ScriptedChat([["one", ended(90, 10, 1.0)], ["two"]])
    chat = MeteredChat(script, Ledger(SpendingLog(path), "ses-1", limits))
    asyncio.run(read_reply(chat, QUESTION))
    with pytest.raises(BudgetReached) as reached:
        asyncio.run(read_reply(chat, QUESTION))
    assert (reached.value.session_id, reached.value.what, len(script.asked)) == ("ses-1", what, 1)
    Ledger(SpendingLog(path), "ses-1", limits).allow(tokens=1000, usd=5.0)
    after_restart = Ledger(SpendingLog(path), "ses-1", limits)
    after_restart.check()
    assert asyncio.run(read_reply(MeteredChat(script, after_restart), QUESTION)).text == "two"
    Ledger(SpendingLog(path), "ses-2", limits).check()


def test_no_limit_means_unlimited(tmp_path: Path) -> None:
    ledger = Ledger(SpendingLog(tmp_path / "spending.jsonl"), "ses-1", SpendingLimits())
    ledger.record(Tier.DEFAULT, "m", Usage(tokens_in=10**9, cost_usd=10**6))
    ledger.check()


def test_stopped_cut_or_uncounted_reply_is_estimated(tmp_path: Path) -> None:
    path = tmp_path / "spending.jsonl"
    script = ScriptedChat([["x" * 400, "more"], ["y" * 400, AnswerCut()], ["z" * 400, ended(0, 0)]])
    chat = MeteredChat(
        script, Ledger(SpendingLog(path), "ses-1", SpendingLimits()), lambda _tier, usage: usage.tokens / 1000
    )

    async def stop_after_the_first_piece() -> None:
        async with aclosing(chat.stream(QUESTION)) as pieces:
            assert isinstance(await anext(pieces), TextPiece)

    asyncio.run(stop_after_the_first_piece())
    with pytest.raises(AnswerCut):
        asyncio.run(read_reply(chat, QUESTION))
    asyncio.run(read_reply(chat, QUESTION))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["tokens_out"], line["estimated"]) for line in lines] == [(100, True)] * 3
    assert all(line["tokens_in"] > 0 and line["cost_usd"] > 0.1 for line in lines)


WRITER = """
import sys
from pathlib import Path
from labwright.llm import Tier, Usage
from labwright.llm.ledger import Ledger, SpendingLimits, SpendingLog
ledger = Ledger(SpendingLog(Path(sys.argv[1])), "ses-1", SpendingLimits())
while True:
    ledger.record(Tier.DEFAULT, "m", Usage(tokens_in=1))
    print("written", flush=True)
"""


def test_kill_loses_no_written_call_and_damages_no_later_one(tmp_path: Path) -> None:
    path = tmp_path / "spending.jsonl"
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    told = sum(1 for _ in zip(range(20), child.stdout, strict=False))
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    kept = SpendingLog(path).of_session("ses-1").calls
    assert kept >= told
    with path.open("a") as file:
        file.write('{"session": "ses-1", "model": "m", "tok')  # a line cut short by a kill
    Ledger(SpendingLog(path), "ses-1", SpendingLimits()).record(Tier.DEFAULT, "m", Usage(tokens_in=1))
    assert SpendingLog(path).of_session("ses-1").calls == kept + 1


def test_without_a_model_rules_answer_and_nothing_is_spent(tmp_path: Path) -> None:
    models = Models(ProjectPaths(tmp_path), Settings(), {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-1"})
    reply = asyncio.run(read_reply(models.chat("ses-1", fallback=ScriptedChat(["by rules"])), QUESTION))
    assert reply.text == "by rules"
    assert models.view()["configured"] is False and models.view()["spent"]["calls"] == 0
    assert list(tmp_path.iterdir()) == []
