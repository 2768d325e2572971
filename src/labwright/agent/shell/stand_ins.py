"""Programs in whose place others stand in an agent's shell: those that are not to be had there, and `ps`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from labwright.files import write_whole

NOT_HERE = (
    *("sbatch", "srun", "salloc", "sattach", "sbcast", "scontrol", "scancel", "squeue", "sinfo", "sacct", "munge"),
    *("qsub", "bsub", "condor_submit", "nvidia-smi"),
)
_SAYING = """\
#!/bin/sh
echo "$(basename "$0"): there are no GPUs and no scheduler in this shell." >&2
echo 'Look with: curl -sS -H @"$LABWRIGHT_HEADER" "$LABWRIGHT_URL/cluster"; start runs with POST /runs.' >&2
exit 126
"""
_RUN = "/run"  # empty in there
_REAL_PS = f"{_RUN}/ps"
_PS = f"""\
#!/bin/bash
# ps looks itself up in /proc by its own number. In here that is not the machine's, so it needs one that is there too.
for _ in {{1..32}}; do
    ([ -e "/proc/$BASHPID" ] || exit 99; exec {_REAL_PS} "$@")
    code=$?
    [ $code = 99 ] || exit $code
done
# Number 1 always is; but in such a namespace all users are nobody.
exec unshare --user --pid --fork {_REAL_PS} "$@"
"""


def stand_ins(folder: Path, path: str) -> dict[str, str]:
    """What stands in the place of which file; they are kept in `folder`."""
    refusal = _script(folder / "not-here", _SAYING)
    return {**dict.fromkeys(_found(NOT_HERE, path), refusal), **_listing(folder, path)}


def _listing(folder: Path, path: str) -> dict[str, str]:
    found = [file for file in _found(["ps"], path) if os.path.basename(file) == "ps"]  # not BusyBox, which is many more
    if not found or not os.path.isdir(_RUN) or os.path.islink(_RUN):
        return {}
    return {**dict.fromkeys(found, _script(folder / "ps", _PS)), _REAL_PS: found[0]}


def _found(names: Sequence[str], path: str) -> Iterator[str]:
    """Wherever on the PATH they lie; not those in places that are empty in there."""
    for folder in path.split(os.pathsep):
        for name in names:
            if (found := shutil.which(name, path=folder)) and not found.startswith(("/tmp/", f"{_RUN}/")):  # noqa: S108
                yield os.path.realpath(found)


def _script(path: Path, text: str) -> str:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_whole(path, text.encode())
    path.chmod(0o755)
    return str(path)
