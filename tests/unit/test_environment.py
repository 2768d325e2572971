"""What a job inherits, and what must not be stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from labwright.compute.environment import for_jobs, is_secret, split_secrets


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "x"),
        ("WANDB_API_KEY", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("PGPASSWORD", "x"),
        ("MYSQL_PWD", "x"),
        ("GITHUB_PAT", "x"),
        ("hf_token", "x"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "x"),
        ("DATABASE_URL", "postgres://me:secret@host/db"),
        ("REDIS_URL", "redis://:secret@host"),
    ],
)
def test_secrets_are_recognized_by_name_or_by_a_password_in_an_address(name: str, value: str) -> None:
    assert is_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/bin"),
        ("PWD", "/home/me"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "100"),
        ("HOME", "/root"),
        ("PROXY", "http://proxy:3128"),
        ("MONKEY", "george"),
    ],
)
def test_ordinary_variables_are_not_secrets(name: str, value: str) -> None:
    assert not is_secret(name, value)


def test_splitting_loses_nothing() -> None:
    plain, secrets = split_secrets({"A": "1", "B_TOKEN": "2"})
    assert (plain, secrets) == ({"A": "1"}, {"B_TOKEN": "2"})


def test_labwrights_own_variables_are_not_inherited() -> None:
    own = {"LABWRIGHT_PORT": "1", "ANTHROPIC_API_KEY": "k", "TMUX": "x", "LABWRIGHT_SIM_STATE": "s", "KEEP": "1"}
    declared = {"LABWRIGHT_METRIC_FILES": "a.jsonl"}
    assert for_jobs({**own, **declared, "LABWRIGHT_METRIC_FILES_X": "1"}, Path("/project"), "/opt/labwright") == {
        **declared,
        "LABWRIGHT_SIM_STATE": "s",
        "KEEP": "1",
    }


def test_labwrights_venv_is_dropped_unless_it_is_the_projects_or_was_activated() -> None:
    on_the_path = {"PATH": "/opt/lw/bin:/bin"}
    assert for_jobs(on_the_path, Path("/project"), "/opt/lw") == {"PATH": "/bin"}
    assert for_jobs(on_the_path, Path("/opt"), "/opt/lw") == on_the_path
    activated = {"VIRTUAL_ENV": "/opt/lw", **on_the_path}
    assert for_jobs(activated, Path("/project"), "/opt/lw") == activated
    other = {"VIRTUAL_ENV": "/home/me/torch", "PATH": "/home/me/torch/bin:/opt/lw/bin:/bin"}
    assert for_jobs(other, Path("/project"), "/opt/lw")["PATH"] == "/home/me/torch/bin:/bin"
