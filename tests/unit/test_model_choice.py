"""The user chooses the model, and a key goes only to its own provider."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labwright.domain.errors import Invalid, LabwrightError
from labwright.llm import Tier, Usage
from labwright.llm.choice import TierTargets, cost_of, is_priced, load_targets
from labwright.llm.endpoints import KNOWN, find_key
from labwright.llm.faults import KeyMissing, KeyRefused
from labwright.settings import load_settings

NO_ENVIRONMENT: dict[str, str] = {"HOME": "/nonexistent"}


def chosen(project: Path, toml: str = "", **environ: str) -> TierTargets:
    (project / "labwright.toml").write_text(toml)
    variables = {**NO_ENVIRONMENT, **environ}
    return load_targets(project, load_settings(project, variables), variables)


def test_without_configuration_there_is_no_model_whatever_keys_exist(tmp_path: Path) -> None:
    assert chosen(tmp_path, ANTHROPIC_API_KEY="sk-1", OPENAI_API_KEY="sk-2") == {}
    assert chosen(tmp_path, 'model = "anthropic:claude-sonnet-5-5"', LABWRIGHT_MODEL="offline") == {}


def test_one_model_serves_every_tier_until_a_tier_has_its_own(tmp_path: Path) -> None:
    alone = chosen(tmp_path, LABWRIGHT_MODEL="ollama:qwen3:8b")
    assert {target.name for target in alone.values()} == {"ollama:qwen3:8b"}
    assert alone[Tier.DEFAULT].endpoint.base_url == "http://127.0.0.1:11434/v1"
    several = chosen(
        tmp_path,
        'model = "anthropic:claude-sonnet-5-5"\nmodel_cheap = "lab:small"\n[endpoints.lab]\nbase_url = "http://gpu1:8000/v1/"',
        LABWRIGHT_MODEL_HEAVY="openai:gpt-5",
    )
    assert {tier: target.name for tier, target in several.items()} == {
        Tier.CHEAP: "lab:small",
        Tier.DEFAULT: "anthropic:claude-sonnet-5-5",
        Tier.HEAVY: "openai:gpt-5",
    }
    assert several[Tier.CHEAP].endpoint.base_url == "http://gpu1:8000/v1"


def test_known_providers_address_changes_only_by_the_users_environment(tmp_path: Path) -> None:
    moved = chosen(tmp_path, LABWRIGHT_MODEL="openai:x", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert moved[Tier.DEFAULT].endpoint.base_url == "http://127.0.0.1:9/v1"
    with pytest.raises(Invalid, match="its key goes only to its own address") as refused:
        chosen(tmp_path, 'model = "openai:x"\n[endpoints.openai]\nbase_url = "https://elsewhere.example/v1"')
    assert "OPENAI_BASE_URL" in refused.value.hint


@pytest.mark.parametrize("line", ['key_env = "OPENAI_API_KEY"', 'key_file = "~/.ssh/id_rsa"', 'api_key = "sk-1"'])
def test_project_file_cannot_hold_a_key_or_name_a_user_secret(tmp_path: Path, line: str) -> None:
    with pytest.raises(Invalid, match="must not contain a key") as refused:
        chosen(tmp_path, f'model = "lab:x"\n[endpoints.lab]\nbase_url = "http://gpu1/v1"\n{line}')
    assert "LABWRIGHT_KEY_LAB" in refused.value.hint and "sk-1" not in str(refused.value)


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ('model = "claude"', "model is 'claude', which does not name a provider and a model"),
        ('model = "claude"', "LABWRIGHT_MODEL or model in labwright.toml"),
        ('model = "openai:x"\nmodel_cheap = "mini"', "model_cheap is 'mini'"),
        ('model = "antropic:claude"', "Did you mean anthropic:claude"),
        ('model = "nobody:x"', "Known: anthropic"),
        ('model_heavy = "openai:x"', "Set model as well"),
        ('model = "lab:x"\n[endpoints.lab]\nwire = "openai"', "http or https address"),
        ('model = "lab:x"\n[endpoints.lab]\nbase_url = "file:///etc/passwd"', "http or https address"),
        ('model = "lab:x"\n[endpoints.lab]\nbase_url = "http://ada:pw@gpu1/v1"', "without a user name, a password"),
        ('model = "lab:x"\n[endpoints.lab]\nbase_url = "http://a/v1"\nwire = "grpc"', "Choose: anthropic, openai"),
        ('model = "lab:x"\n[endpoints.lab]\nbase_ulr = "http://a/v1"', "Did you mean base_url"),
        ('[endpoints."../x"]\nbase_url = "http://a/v1"', "lower-case letters"),
        ('[prices."openai:x"]\nin = 1', "needs in and out"),
        ('[prices."openai:x"]\nin = -1\nout = 1', "a number of US dollars"),
        ('[prices."openai:x"]\nin = 1\nout = 1\nper = 5', "unknown key per"),
    ],
)
def test_mistake_is_reported_with_the_right_form(tmp_path: Path, toml: str, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        chosen(tmp_path, toml)
    assert words in f"{refused.value.message} {refused.value.hint}"


def key_in_file(home: Path, mode: int, text: str = "sk-from-file\n") -> dict[str, str]:
    path = home / ".config" / "labwright" / "keys" / "anthropic"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(mode)
    return {"HOME": str(home)}


def test_key_comes_from_the_environment_or_a_private_file(tmp_path: Path) -> None:
    environ = key_in_file(tmp_path, 0o600)
    from_file = find_key(KNOWN["anthropic"], environ)
    assert from_file and from_file.value == "sk-from-file" and from_file.source.endswith("keys/anthropic")
    first = find_key(KNOWN["anthropic"], {**environ, "ANTHROPIC_API_KEY": "sk-from-variable"})
    assert first and (first.value, first.source) == ("sk-from-variable", "ANTHROPIC_API_KEY")
    assert "sk-from" not in repr(first)
    assert find_key(KNOWN["ollama"], environ) is None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604])
def test_key_file_that_others_can_read_is_refused_with_the_fix(tmp_path: Path, mode: int) -> None:
    with pytest.raises(KeyRefused, match="Other users can read") as refused:
        find_key(KNOWN["anthropic"], key_in_file(tmp_path, mode))
    path = tmp_path / ".config/labwright/keys/anthropic"
    assert refused.value.hint == f"Make it private: chmod 600 {path}"
    os.chmod(path, 0o600)
    assert find_key(KNOWN["anthropic"], {"HOME": str(tmp_path)})


def test_invalid_key_is_refused_without_being_shown(tmp_path: Path) -> None:
    for text in ("two words", "", "line\nline", "ключ"):
        with pytest.raises(LabwrightError) as refused:
            find_key(KNOWN["openai"], {**NO_ENVIRONMENT, "OPENAI_API_KEY": text})
        assert not text or text not in f"{refused.value} {refused.value.hint}"
    with pytest.raises(KeyMissing) as missing:
        find_key(KNOWN["openai"], NO_ENVIRONMENT)
    assert "OPENAI_API_KEY" in missing.value.hint and "chmod 600" in missing.value.hint


def test_cost_uses_known_prices_and_is_never_guessed(tmp_path: Path) -> None:
    toml = 'model = "ollama:mine"\nmodel_heavy = "openai:gpt-5-mini"\nmodel_cheap = "ollama:other"\n'
    prices = '[prices."ollama:mine"]\nin = 2.0\nout = 10.0\ncache_read = 0.5'
    found = chosen(tmp_path, toml + prices)
    usage = Usage(tokens_in=1_000_000, cache_read=400_000, tokens_out=100_000)
    assert cost_of(found[Tier.DEFAULT], usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 1.0)
    assert cost_of(found[Tier.CHEAP], usage) is None and not is_priced(found[Tier.CHEAP])
    listed = cost_of(found[Tier.HEAVY], usage)
    assert listed is not None and 0 < listed < 10
    proxied = chosen(tmp_path, toml, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert not is_priced(proxied[Tier.HEAVY])  # another server has its own prices
