"""A warm process that forks a supervisor per line on its standard input: a launch costs a fork, not a start.

A line is JSON: the run folder, and variables that must not be in a file. The process belongs to one server and
ends with it; the supervisors it made live on by themselves.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback

from labwright.processes import boot_id
from labwright.sidecar.supervisor import Supervisor


def serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, whose end closes our input
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps ended supervisors
    boot_id()  # read once, for all the forks
    gc.freeze()
    for line in sys.stdin:
        if os.fork() == 0:
            _become_supervisor(**json.loads(line))


def _become_supervisor(run_dir: str, variables: dict[str, str]) -> None:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        Supervisor(run_dir, variables).supervise()
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here; its last words must reach the log
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
