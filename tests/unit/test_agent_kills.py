"""A turn interrupted by a kill continues where it was, and does nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.agent.conversation import sessions
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.session import PieceKind, SessionStatus
from tests.support.chatting import Silent, Talk, call, script, talking
from tests.support.lab import lab_in
from tests.support.waiting import wait_until


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


_VICTIM = """
import sys
from pathlib import Path
from labwright.agent.conversation import sessions
from labwright.domain.actor import PERSON
from labwright.domain.session import PieceKind
from tests.support.chatting import Silent, Talk, call, script, talking
from tests.support.lab import lab_in
from tests.support.waiting import wait_until

class Model:
    name = "victim"
    def __init__(self):
        self.first = True
    async def stream(self, request):
        source = script([call("create_run", command="echo hello", name="once")]) if self.first else Silent()
        self.first = False
        async for piece in source.stream(request):
            yield piece

with lab_in(Path(sys.argv[1])) as lab:
    talk = Talk(lab)
    with talking(lab, Model()):
        sessions.say(lab, talk.id, "Start one", None, PERSON)
        wait_until(lambda: talk.pieces(PieceKind.TEXT), "the words")
        print(talk.id, flush=True)
        wait_until(lambda: False, "the kill", 60)
"""


def test_server_killed_mid_turn_keeps_the_conversation_and_finishes_the_turn(tmp_path: Path) -> None:
    project = tmp_path / "project"
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", _VICTIM, str(project)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, text=True) as victim:
        assert victim.stdout is not None
        session_id = victim.stdout.readline().strip()
        os.kill(victim.pid, signal.SIGKILL)
    with lab_in(project) as lab:
        talk = Talk(lab, session_id)
        assert talk.session.status is SessionStatus.WORKING
        before = talk.pieces()
        model = script(["One run was started."])
        with talking(lab, model):
            talk.wait_until_idle()
        after = talk.pieces()
        assert after[: len(before)] == before
        assert [piece.kind for piece in after[len(before) :]] == ["notice", "text", "message", "end"]
        assert [message.role for message in model.asked[0].messages] == ["user", "assistant", "tool"]
        assert len(lab.db.reader().execute("SELECT id FROM runs").fetchall()) == 1


def test_interrupted_call_is_made_once(lab: Lab) -> None:
    """The run was created, and the server was killed before the result was written."""
    with talking(lab, Silent()):
        talk = Talk(lab)
        sessions.say(lab, talk.id, "Start one", None, PERSON)
        wait_until(lambda: talk.pieces(PieceKind.TEXT), "the words")
    made = call("create_run", command="echo hello", name="once")
    with talking(lab, script([made], ["Started."])):
        talk.wait_until_idle()
    with lab.db.transaction() as tx:  # as if the last three pieces had never been written
        result = talk.pieces(PieceKind.RESULT)[-1]
        tx.execute("DELETE FROM pieces WHERE seq >= :seq", seq=result.seq)
        session = talk.session.evolve(status=SessionStatus.WORKING, last_seq=result.seq - 1)
        tx.execute("UPDATE sessions SET record = :record", record=json.dumps(session.to_dict()))
    with talking(lab, script(["Started."])):
        talk.wait_until_idle()
    assert len(lab.db.reader().execute("SELECT id FROM runs").fetchall()) == 1
    assert talk.last(PieceKind.END)["why"] == "done"
