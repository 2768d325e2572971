"""Call Slurm commands. Each has a timeout, because all of them hang while the controller is down."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from labwright.domain.errors import LabwrightError
from labwright.processes import NO_SUCH_PROGRAM

TIMEOUT_SECONDS = 15.0  # Slurm's own patience with its controller is 10
TRY_AGAIN_SECONDS = 5.0
IDS_AT_ONCE = 1000  # on one command line
_REAP_SECONDS = 1.0
_KEPT = frozenset({"PATH", "HOME", "USER", "LOGNAME", "LANG", "SHELL", "LD_LIBRARY_PATH", "KRB5CCNAME"})
_KEPT_BEGINNINGS = ("LC_", "SBATCH_")
_OF_SLURM = frozenset({"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_CONF_SERVER"})
_DROPPED = frozenset({"SBATCH_EXPORT", "SBATCH_GET_USER_ENV", "SBATCH_ARRAY_INX", "SBATCH_JOB_NAME", "SBATCH_WAIT"})
_FOR_NOW = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection (?:refused|reset)|Transport endpoint"
    r"|Zero Bytes were transmitted|Resource temporarily unavailable|temporarily unable|Protocol authentication error"
    r"|Communication connection failure|in standby mode|Invalid authentication credential|Munge"
    r"|Max(?:Submit)?Jobs?\w*Limit|MaxSubmit|Configuration update|Slurm backup controller",  # room may come
    re.IGNORECASE,
)

_ASKED = re.compile(r"timed out|Zero Bytes|reset", re.IGNORECASE)


class SlurmSilent(LabwrightError):
    """Slurm does not answer, or accepts nothing now. A later try may succeed."""

    code = "slurm_silent"

    def __init__(self, message: str, *, in_doubt: bool = False, is_hanging: bool = False) -> None:
        super().__init__(message)
        self.in_doubt = in_doubt  # Slurm may have executed the command anyway
        self.is_hanging = is_hanging  # there was no reply before the timeout


class SlurmRefused(LabwrightError):
    """Slurm refused, and would refuse again."""

    code = "slurm_refused"


@dataclass(frozen=True, slots=True)
class Said:
    out: str
    err: str

    @property
    def words(self) -> str:
        return " ".join(f"{self.out}\n{self.err}".split())


@dataclass(frozen=True, slots=True)
class SlurmCommands:
    """Slurm's commands, called with the server's environment minus secrets."""

    environment: Mapping[str, str]

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> SlurmCommands:
        return cls(client_environment(environ))

    def is_installed(self, program: str) -> bool:
        return shutil.which(program, path=self.environment.get("PATH", os.defpath)) is not None

    def call(self, *argv: str, stdin: str = "", timeout: float = TIMEOUT_SECONDS) -> str:
        """Return what the command printed. Raises `SlurmSilent` if a retry makes sense, else `SlurmRefused`."""
        return self.ask(*argv, stdin=stdin, timeout=timeout).out

    def ask(self, *argv: str, stdin: str = "", timeout: float = TIMEOUT_SECONDS) -> Said:
        """Return stdout and stderr."""
        try:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(self.environment),
                cwd="/",
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except NO_SUCH_PROGRAM as error:
            raise SlurmSilent(f"{argv[0]} is not installed here.") from error
        try:
            out, err = child.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            _abandon(child)
            raise SlurmSilent(f"{argv[0]} did not answer in {timeout:g} s.", in_doubt=True, is_hanging=True) from error
        if child.returncode:
            raise _refusal(argv[0], err.strip() or out.strip() or f"exit code {child.returncode}")
        return Said(out, err)


def client_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for Slurm's commands: no secrets and none of an allocation, as sbatch passes all on."""
    kept = {name: value for name, value in environ.items() if _may_pass(name)}
    return {**kept, "SLURM_BITSTR_LEN": "0"}  # else squeue cuts lists of tasks after 64 characters


def _may_pass(name: str) -> bool:
    if name in _DROPPED:
        return False
    return name in _KEPT or name in _OF_SLURM or name.startswith(_KEPT_BEGINNINGS)


def _refusal(program: str, words: str) -> LabwrightError:
    said = " ".join(line.removeprefix(f"{program}: ").removeprefix("error: ") for line in words.splitlines())
    if _FOR_NOW.search(words):
        return SlurmSilent(said, in_doubt=_ASKED.search(words) is not None)
    return SlurmRefused(said)


def _abandon(child: subprocess.Popen[str]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended just now
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe:
            pipe.close()
    try:
        child.wait(timeout=_REAP_SECONDS)
    except subprocess.TimeoutExpired:
        return  # stuck inside the kernel: it cannot be killed
