"""Start a sidecar.

    run DIR         supervise one run
    adopt DIR       watch a job whose supervisor died
    external DIR    watch a script that was started by hand
    prefork         serve many runs
    slurm TARGET    supervise one run as a Slurm job; TARGET is its folder, or the file of its job array

It is started by path with `python -I -S`, so it adds its own package to `sys.path` first.
"""

from __future__ import annotations

import os
import sys

if __package__ in (None, ""):
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    __package__ = "labwright.sidecar"

from labwright.paths import RunPaths
from labwright.sidecar.prefork import serve
from labwright.sidecar.record import load_spec
from labwright.sidecar.slurm import attempt_of, is_to_run, run_folder_of
from labwright.sidecar.supervisor import Supervisor
from labwright.sidecar.unsupervised import adopt, watch_external


def run_on_node(target: str) -> int:
    """Supervise a run on a Slurm node. Return the job's exit code, so that Slurm's accounting shows it too."""
    environ = dict(os.environ)
    paths = RunPaths(run_folder_of(target, environ))
    run = load_spec(paths)["run"]
    attempt = attempt_of(paths, run, environ)
    if not is_to_run(paths, run["id"], attempt):
        return 0
    supervisor = Supervisor(paths.dir, {}, attempt)
    supervisor.supervise()
    return supervisor.exit_code


def main(arguments: list[str]) -> None:
    verb, *rest = arguments
    if verb == "prefork":
        serve()
    elif verb == "run":
        Supervisor(rest[0], {}).supervise()
    elif verb == "adopt":
        adopt(rest[0])
    elif verb == "slurm":
        sys.exit(run_on_node(rest[0]))
    elif verb == "external":
        watch_external(rest[0])
    else:
        sys.exit(f"unknown verb {verb!r}: use run, adopt, external, prefork or slurm")


if __name__ == "__main__":
    main(sys.argv[1:])
