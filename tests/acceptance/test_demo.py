"""`make demo`, as somebody without root's rights sees it in a terminal."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

_DEMO = Path(__file__).parents[2] / "scripts" / "demo"
# To root no folder is read-only; without these it is as for anybody.
_NO_ROOT_RIGHTS = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--"] if os.getuid() == 0 else []
_CTRL_C = b"\x03"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_goes_from_a_goal_to_a_report_and_leaves_nothing_behind(tmp_path: Path) -> None:
    keyboard, terminal = pty.openpty()
    shown = tmp_path / "shown"
    with shown.open("wb") as screen:
        demo = subprocess.Popen(
            [*_NO_ROOT_RIGHTS, "script", "-qefc", str(_DEMO), "/dev/null"],
            stdin=terminal,
            stdout=screen,
            stderr=screen,
            env={**os.environ, "TMPDIR": str(tmp_path), "DEMO_YES": "1", "NO_COLOR": "1"},
        )
    try:
        wait_until(lambda: b"Ctrl-C ends the server" in shown.read_bytes() or demo.poll() is not None, "the end", 200)
        assert re.search(r"rehearsal +passed", shown.read_text()), shown.read_text()[-3000:]
        assert "DEMO_YES=1 answered" in shown.read_text()
        os.write(keyboard, _CTRL_C)
        assert demo.wait(60) == 0, shown.read_text()[-3000:]
    finally:
        if demo.poll() is None:
            demo.send_signal(signal.SIGTERM)
        os.close(keyboard)
        os.close(terminal)
    assert [path.name for path in tmp_path.iterdir()] == ["shown"]
