"""Call Slurm commands. Each has a timeout, because all of them hang while the controller is down."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from labwright.domain.errors import LabwrightError
from labwright.processes import NO_SUCH_PROGRAM

TIMEOUT_SECONDS = 15.0  # Slurm's own patience with its controller is 10
TRY_AGAIN_SECONDS = 5.0
IDS_AT_ONCE = 1000  # on one command line
_REAP_SECONDS = 1.0
_KEPT = frozenset({"PATH", "HOME", "USER", "LOGNAME", "LANG", "SHELL", "LD_LIBRARY_PATH", "KRB5CCNAME"})
_KEPT_PREFIXES = ("LC_", "SBATCH_")
_OF_SLURM = frozenset({"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_CONF_SERVER"})
_DROPPED = frozenset({"SBATCH_EXPORT", "SBATCH_GET_USER_ENV", "SBATCH_ARRAY_INX", "SBATCH_JOB_NAME", "SBATCH_WAIT"})
_TEMPORARY = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection (?:refused|reset)|Transport endpoint"
    r"|Zero Bytes were transmitted|Resource temporarily unavailable|temporarily unable|Protocol authentication error"
    r"|Communication connection failure|in standby mode|Invalid authentication credential|Munge"
    r"|Max(?:Submit)?Jobs?\w*Limit|MaxSubmit|Configuration update|Slurm backup controller",
    re.IGNORECASE,
)
_MAY_HAVE_RUN = re.compile(r"timed out|Zero Bytes|reset", re.IGNORECASE)


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
class CommandOutput:
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        return " ".join(f"{self.stdout}\n{self.stderr}".split())


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
        return self.run(*argv, stdin=stdin, timeout=timeout).stdout

    def run(self, *argv: str, stdin: str = "", timeout: float = TIMEOUT_SECONDS) -> CommandOutput:
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
            raise _error(argv[0], err.strip() or out.strip() or f"exit code {child.returncode}")
        return CommandOutput(out, err)


def client_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for Slurm's commands: no secrets and no allocation, because sbatch passes them on."""
    passed = (name for name in environ if name in _KEPT or name in _OF_SLURM or name.startswith(_KEPT_PREFIXES))
    kept = {name: environ[name] for name in passed if name not in _DROPPED}
    return {**kept, "SLURM_BITSTR_LEN": "0"}  # otherwise squeue cuts lists of tasks after 64 characters


def _error(program: str, output: str) -> LabwrightError:
    message = " ".join(line.removeprefix(f"{program}: ").removeprefix("error: ") for line in output.splitlines())
    if _TEMPORARY.search(output):
        return SlurmSilent(message, in_doubt=_MAY_HAVE_RUN.search(output) is not None)
    return SlurmRefused(message)


def _abandon(child: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):  # it ended just now
        os.killpg(child.pid, signal.SIGKILL)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe:
            pipe.close()
    with suppress(subprocess.TimeoutExpired):  # stuck inside the kernel: it cannot be killed
        child.wait(timeout=_REAP_SECONDS)
