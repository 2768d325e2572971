"""List the files of a folder with git. The repository's config and hooks are not trusted: nothing in them runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from labwright.processes import NO_SUCH_PROGRAM

_TIMEOUT_SECONDS = 20.0
_OVERRIDES = {"core.fsmonitor": "false", "core.hooksPath": "/dev/null", "protocol.allow": "never"}
_EDITED_IN_PLACE = ("config", "info/exclude")


class GitError(Exception):
    """Git could not list this folder."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository of a folder, if any, and the files whose change may change git's output."""

    top: str | None
    guards: tuple[str, ...]


@dataclass(slots=True)
class GitOutput:
    """Paths are relative to the folder. `ignored` holds folders only."""

    tracked: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    ignored: set[str] = field(default_factory=set)
    excludes_file: str | None = None
    commit: str | None = None
    modified: bool = False
    folder_is_ignored: bool = False


def find_repository(folder: str) -> Repository:
    """Find the repository without starting git. A missing `.git` is a guard too, as one may appear."""
    guards: list[str] = []
    for parent in (Path(folder), *Path(folder).parents):
        guards += [str(parent / ".git")] if not (parent / ".git").is_dir() else []
        guards += [str(parent / ".gitignore")]
        if (parent / ".git").exists():
            config = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")) / "git"
            of_user = (os.path.expanduser("~/.gitconfig"), str(config / "config"), str(config / "ignore"))
            return Repository(str(parent), (*guards, *_git_files(parent / ".git"), *of_user))
    return Repository(None, tuple(guard for guard in guards if guard.endswith(".git")))


def _git_files(dot_git: Path) -> Iterator[str]:
    git_dir = _pointed_at(dot_git, b"gitdir:") if dot_git.is_file() else dot_git
    common = _pointed_at(git_dir / "commondir", b"") if (git_dir / "commondir").is_file() else git_dir
    # Git replaces HEAD, index and packed-refs by rename, which changes the folder's timestamp.
    yield from {str(git_dir), str(common)}
    yield from (str(common / name) for name in _EDITED_IN_PLACE)
    if (common / "reftable").is_dir():
        yield str(common / "reftable")
    head = _first_line(git_dir / "HEAD")
    if head.startswith(b"ref:"):
        yield str(common / os.fsdecode(head.removeprefix(b"ref:").strip()))


def _pointed_at(file: Path, prefix: bytes) -> Path:
    return file.parent / os.fsdecode(_first_line(file).removeprefix(prefix).strip())


def _first_line(file: Path) -> bytes:
    return file.read_bytes().partition(b"\n")[0] if file.is_file() else b""


def list_files(folder: str, top: str) -> GitOutput:
    """Run git three times: for the config, the index and the status."""
    env, answer = _environment(top), GitOutput()
    fields = _git(folder, env, "config", "--list", "-z", "--show-scope").split("\0")
    for scope, pair in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = pair.partition("\n")
        if key == "core.excludesfile":
            answer.excludes_file = os.path.expanduser(value)
        elif key.startswith("filter.") and scope not in ("system", "global"):
            _disable_filter(env, key)
    _read_index(answer, _git(folder, env, "ls-files", "-z", "-s"))
    # "matching" lists an ignored folder itself, so that its content is neither listed nor watched.
    options = ("--untracked-files=all", "--ignored=matching", "--no-renames", "--ignore-submodules=dirty")
    command = ("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", *options, "--", ".")
    below = folder.removeprefix(top).strip("/")
    _read_status(answer, _git(folder, env, *command), f"{below}/" if below else "")
    return answer


def tracked_files(folder: str) -> list[str]:
    """Return the tracked files, or none if the folder is in no repository or git fails."""
    top, answer = find_repository(folder).top, GitOutput()
    if top is None:
        return []
    try:
        _read_index(answer, _git(folder, _environment(top), "ls-files", "-z", "-s"))
    except GitError:
        return []
    return answer.tracked


def _environment(top: str) -> dict[str, str]:
    # An inherited GIT_DIR or GIT_INDEX_FILE would point git at another repository.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # The work tree is where we found the repository, whatever its core.worktree says.
    env |= {"GIT_WORK_TREE": top, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    for key, value in _OVERRIDES.items():
        _override(env, key, value)
    return env


def _override(env: dict[str, str], key: str, value: str) -> None:
    count = int(env.get("GIT_CONFIG_COUNT", "0"))
    env |= {f"GIT_CONFIG_KEY_{count}": key, f"GIT_CONFIG_VALUE_{count}": value}
    env["GIT_CONFIG_COUNT"] = str(count + 1)


def _disable_filter(env: dict[str, str], key: str) -> None:
    """Disable a filter of the repository's own config, because it is a command. Filters of the user (LFS) stay."""
    name, _, field_name = key.rpartition(".")
    if field_name in ("clean", "process"):
        _override(env, key, "")
        _override(env, f"{name}.required", "false")


def _read_index(answer: GitOutput, output: str) -> None:
    tracked: set[str] = set()  # a path in conflict is listed once per stage
    for record in output.split("\0")[:-1]:
        facts, _, path = record.partition("\t")
        if facts.startswith("160000"):
            answer.nested.append(path)
        else:
            tracked.add(path)
    answer.tracked = sorted(tracked)


def _read_status(answer: GitOutput, output: str, prefix: str) -> None:
    for record in output.split("\0")[:-1]:
        kind, _, rest = record.partition(" ")
        if kind in ("1", "u"):
            answer.modified = True
        elif rest.startswith("branch.oid ") and not rest.endswith("(initial)"):
            answer.commit = rest.removeprefix("branch.oid ")
        elif kind in ("?", "!"):
            _read_path(answer, kind, rest, prefix)


def _read_path(answer: GitOutput, kind: str, path: str, prefix: str) -> None:
    if kind == "!" and path.endswith("/") and prefix.startswith(path):
        answer.folder_is_ignored = True
    elif not path.startswith(prefix):
        raise GitError("git's work tree is another folder")
    elif not path.endswith("/"):
        answer.untracked += [path.removeprefix(prefix)] if kind == "?" else []
    elif kind == "?":
        answer.nested.append(path.removeprefix(prefix).rstrip("/"))
    else:
        answer.ignored.add(path.removeprefix(prefix).rstrip("/"))


def _git(folder: str, env: dict[str, str], *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        message = error.stderr.decode("utf-8", "backslashreplace").strip().partition("\n")[0]
        raise GitError(message or f"git {arguments[0]} ended with {error.returncode}") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {arguments[0]} took longer than {_TIMEOUT_SECONDS:.0f} s") from error
    except NO_SUCH_PROGRAM as error:
        raise GitError("git is not installed") from error
    return os.fsdecode(done.stdout)
