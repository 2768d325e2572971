"""In a git repository a snapshot has the files that git counts as the project, and git is called safely."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from labwright.compute.snapshot import SnapshotStore, git
from tests.support.snapshots import ODD_NAMES, paths, paths_in, settle, write

NAMED = ("-c", "user.name=A Person", "-c", "user.email=person@example.org", "-c", "protocol.file.allow=always")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hide the git configuration of the current user."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


@pytest.fixture
def repo(home: Path) -> Path:
    return make_repo(home / "repo", {"train.py": "1\n", "lib/model.py": "m\n", ".gitignore": "*.log\nout/\n"})


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "store", 1024 * 1024)


def run_git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *NAMED, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_repo(folder: Path, files: dict[str, str]) -> Path:
    write(folder, files)
    run_git(folder, "init", "-q", "-b", "main")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-qm", "start")
    return folder


CODE = {"train.py", "lib/model.py", ".gitignore"}


def test_tracked_changed_and_untracked_files_are_included_but_not_ignored_ones(
    repo: Path, store: SnapshotStore
) -> None:
    snapshot = store.take(repo)
    assert (snapshot.git_commit, snapshot.dirty) == (run_git(repo, "rev-parse", "HEAD"), False)
    write(repo, {"new/a.py": "n", "run.log": "l", "out/x.bin": "x", "lib/y.log": "y", ".labwright/token": "t"})
    (repo / "train.py").unlink()
    snapshot = store.take(repo)
    assert paths_in(store, snapshot.hash) == CODE - {"train.py"} | {"new/a.py"}
    assert snapshot.dirty


def test_tracked_files_count_even_if_ignored(repo: Path, store: SnapshotStore) -> None:
    write(repo, {"out/kept.txt": "1", "out/other.txt": "2"})
    run_git(repo, "add", "-f", "out/kept.txt")
    assert paths(store, repo) == CODE | {"out/kept.txt"}
    settle(store, repo)
    write(repo, {"out/kept.txt": "3"})
    before = store.take(repo)
    run_git(repo, "add", "-f", "out/other.txt")
    assert store.take(repo).files == before.files + 1


def test_environments_not_in_gitignore_are_excluded(repo: Path, store: SnapshotStore) -> None:
    write(repo, {".venv/x.py": "", "myenv/pyvenv.cfg": "", "myenv/lib/y.py": "", "lib/__pycache__/z.pyc": ""})
    snapshot = store.take(repo)
    assert paths_in(store, snapshot.hash) == CODE
    assert snapshot.dirty is False


def test_unchanged_project_needs_no_process(repo: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(store, repo)
    monkeypatch.setattr(subprocess, "run", None)
    assert paths(store, repo) == CODE


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({".gitignore": "out/\n"}, CODE | {"a.log"}),
        ({"lib/.gitignore": "model.*\nnew.*\n", "lib/new.py": ""}, CODE | {"lib/.gitignore"}),
        ({".git/info/exclude": "*.txt\n"}, CODE - {"n.txt"}),
        ({"../.gitconfig": "[core]\n\texcludesFile = ~/mine\n", "../mine": "*.txt\n"}, CODE - {"n.txt"}),
        ({"../.config/git/ignore": "*.txt\n"}, CODE - {"n.txt"}),
    ],
)
def test_changed_ignore_rules_are_noticed(
    repo: Path, store: SnapshotStore, change: dict[str, str], expected: set[str]
) -> None:
    write(repo, {"a.log": "", "n.txt": ""})
    settle(store, repo)
    assert paths(store, repo) == CODE | {"n.txt"}
    write(repo, change)
    assert paths(store, repo) - {"n.txt"} == expected
    assert ("n.txt" in paths(store, repo)) == (expected - CODE != set())


def test_ignore_file_that_is_itself_ignored_is_watched(repo: Path, store: SnapshotStore) -> None:
    write(repo, {"data/.gitignore": "*\n", "data/x.csv": "1"})
    settle(store, repo)
    assert paths(store, repo) == CODE
    write(repo, {"data/.gitignore": "!*\n"})
    assert paths(store, repo) == CODE | {"data/.gitignore", "data/x.csv"}


def test_commits_branches_and_dirty_state_are_followed(repo: Path, store: SnapshotStore) -> None:
    settle(store, repo)
    first = store.take(repo)
    write(repo, {"train.py": "2\n"})
    assert store.take(repo).dirty
    settle(store, repo)
    run_git(repo, "commit", "-qam", "two")
    second = store.take(repo)
    assert (second.git_commit, second.dirty) == (run_git(repo, "rev-parse", "HEAD"), False)
    settle(store, repo)
    run_git(repo, "checkout", "-q", "-b", "other", first.git_commit or "")
    assert store.take(repo) == first
    settle(store, repo)
    run_git(repo, "commit", "-q", "--allow-empty", "-m", "empty")
    run_git(repo, "pack-refs", "--all")
    assert store.take(repo).git_commit == run_git(repo, "rev-parse", "HEAD")


def test_repository_without_commits_and_a_new_one_work(home: Path, store: SnapshotStore) -> None:
    write(home / "fresh", {"a.py": "1", "b.log": "2"})
    settle(store, home / "fresh")
    assert store.take(home / "fresh").dirty is None
    run_git(home / "fresh", "init", "-q")
    write(home / "fresh", {".gitignore": "*.log"})
    snapshot = store.take(home / "fresh")
    assert (snapshot.git_commit, snapshot.dirty) == (None, True)
    assert paths_in(store, snapshot.hash) == {"a.py", ".gitignore"}


def test_project_in_a_subfolder_is_only_that_subfolder(repo: Path, store: SnapshotStore) -> None:
    write(repo, {"lib/new.py": "", "lib/x.log": "", "elsewhere.py": ""})
    assert paths(store, repo / "lib") == {"model.py", "new.py"}
    settle(store, repo / "lib")
    write(repo, {".gitignore": ""})
    assert paths(store, repo / "lib") == {"model.py", "new.py", "x.log"}


def test_project_ignored_by_an_outer_repository_is_walked(home: Path, store: SnapshotStore) -> None:
    make_repo(home, {".gitignore": "*\n!.gitignore\n", "work/project/a.py": "1"})
    snapshot = store.take(home / "work" / "project")
    assert paths_in(store, snapshot.hash) == {"a.py"}
    assert snapshot.git_commit is None


def test_submodules_and_nested_repositories_include_their_files(repo: Path, home: Path, store: SnapshotStore) -> None:
    library = make_repo(home / "library", {"core.py": "c", ".gitignore": "*.tmp\n"})
    run_git(repo, "submodule", "--quiet", "add", str(library), "sub")
    run_git(repo, "commit", "-qm", "sub")
    make_repo(repo / "nested", {"n.py": "n", ".gitignore": "*.tmp\n"})
    write(repo, {"sub/x.tmp": "", "nested/x.tmp": ""})
    expected = CODE | {".gitmodules", "sub/core.py", "sub/.gitignore", "nested/n.py", "nested/.gitignore"}
    assert paths(store, repo) == expected
    settle(store, repo)
    write(repo, {"sub/new.py": ""})
    snapshot = store.take(repo)
    assert paths_in(store, snapshot.hash) == expected | {"sub/new.py"}
    assert snapshot.dirty


def test_second_work_tree_is_followed(repo: Path, home: Path, store: SnapshotStore) -> None:
    run_git(repo, "worktree", "add", "-q", "-b", "side", str(home / "side"))
    settle(store, home / "side")
    write(home / "side", {"side.py": ""})
    run_git(home / "side", "add", ".")
    run_git(home / "side", "commit", "-qm", "side")
    snapshot = store.take(home / "side")
    assert (snapshot.git_commit, snapshot.dirty) == (run_git(home / "side", "rev-parse", "HEAD"), False)
    assert paths_in(store, snapshot.hash) == CODE | {"side.py"}


def test_odd_names_work_with_git(repo: Path, store: SnapshotStore, tmp_path: Path) -> None:
    for name in ODD_NAMES:
        Path(os.fsdecode(os.fsencode(repo) + b"/" + name)).write_bytes(name)
    untracked = store.take(repo)
    run_git(repo, "add", ".")
    assert store.take(repo).hash == untracked.hash
    assert {os.fsencode(path) for path in paths_in(store, untracked.hash)} >= set(ODD_NAMES)
    store.materialize(untracked.hash, tmp_path / "restored")
    assert store.take(tmp_path / "restored").hash == untracked.hash


def test_commands_in_the_repository_are_not_executed(repo: Path, store: SnapshotStore) -> None:
    trap = repo.parent / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {repo.parent}/sprung\ncat\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "filter.a=b.clean"):
        run_git(repo, "config", key, str(trap))
    run_git(repo, "config", "filter.evil.required", "true")
    write(repo, {".gitattributes": "*.py filter=evil\n*.txt filter=a=b\n", "train.py": "9\n"})
    write(repo, {f".git/hooks/{hook}": trap.read_text() for hook in ("post-index-change", "fsmonitor-watchman")})
    os.utime(repo / "lib" / "model.py")
    snapshot = store.take(repo)
    assert snapshot.dirty
    assert snapshot.notes == ()
    assert not (repo.parent / "sprung").exists()


def test_snapshot_leaves_the_index_unchanged(repo: Path, store: SnapshotStore) -> None:
    os.utime(repo / "train.py")
    before = (repo / ".git" / "index").stat()
    store.take(repo)
    after = (repo / ".git" / "index").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_variables_of_another_repository_are_ignored(
    repo: Path, home: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repo(home / "other", {"o.py": ""})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert paths(store, repo) == CODE


def test_work_tree_setting_elsewhere_is_ignored(repo: Path, home: Path, store: SnapshotStore) -> None:
    run_git(repo, "config", "core.worktree", str(home))
    assert paths(store, repo) >= CODE


@pytest.mark.parametrize("one_is_closed", [False, True], ids=["none", "one that may not be used"])
def test_without_git_the_snapshot_is_taken_and_says_so(
    repo: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, one_is_closed: bool
) -> None:
    if one_is_closed:
        (tmp_path / "git").touch(0o644)
    monkeypatch.setenv("PATH", f"/nonexistent:{tmp_path}")
    snapshot = store.take(repo)
    assert paths_in(store, snapshot.hash) == CODE
    assert (snapshot.git_commit, snapshot.dirty) == (None, None)
    assert snapshot.notes == ("Listed without git: git is not installed.",)


@pytest.mark.parametrize("content", ["nonsense", "gitdir: ../nowhere"])
def test_broken_repository_is_walked(home: Path, store: SnapshotStore, content: str) -> None:
    write(home / "broken", {".git": content, "a.py": "1"})
    snapshot = store.take(home / "broken")
    assert paths_in(store, snapshot.hash) == {"a.py"}
    assert snapshot.notes[0].startswith("Listed without git: ")


def test_hanging_git_times_out(repo: Path, home: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, {"bin/git": "#!/bin/sh\nexec sleep 60\n"})
    (home / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(git, "_TIMEOUT_SECONDS", 0.2)
    assert "took longer" in store.take(repo).notes[0]
