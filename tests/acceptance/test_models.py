"""Language models as a user sees them: what is configured, whether it works, and that keys stay secret."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.test_cli import labwright
from tests.support.live_server import LiveServer
from tests.support.model_server import Turn, model_server

KEY = "sk-very-secret-0123456789"
SERVED = {"LABWRIGHT_MODEL": "anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY": KEY}


def test_without_a_model_the_server_says_how_to_choose_one(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(ANTHROPIC_API_KEY=KEY).start()
    found = server.get("/models")
    assert (found["configured"], found["tiers"], found["spent"]["calls"]) == (False, [], 0)
    shown = labwright(server, "models").stdout
    assert "not a language model" in shown and "LABWRIGHT_MODEL" in shown
    viewer = labwright(server, "token", "--scope", "viewer").stdout.strip()
    assert server.call("GET", "/models", token=viewer).status == 200
    assert server.call("GET", "/models", token=None).status == 401


def test_models_shows_tiers_keys_and_prices_but_never_a_key(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(
        **SERVED, LABWRIGHT_MODEL_CHEAP="ollama:qwen3:8b", LABWRIGHT_MODEL_HEAVY="openai:gpt-5", HOME="/nonexistent"
    )
    server.environment.pop("OPENAI_API_KEY", None)
    server.start()
    answer = server.call("GET", "/models")
    tiers = {tier["tier"]: tier for tier in answer.json["tiers"]}
    assert {tier: found["model"] for tier, found in tiers.items()} == {
        "cheap": "ollama:qwen3:8b",
        "default": "anthropic:claude-sonnet-5-5",
        "heavy": "openai:gpt-5",
    }
    assert tiers["default"]["key"] == "from ANTHROPIC_API_KEY" and tiers["cheap"]["key"] == "none needed"
    assert not tiers["heavy"]["usable"] and "no key for openai" in tiers["heavy"]["key"]
    assert (tiers["default"]["priced"], tiers["cheap"]["priced"]) == (True, False)
    shown = labwright(server, "models").stdout
    assert all(words in shown for words in ("claude-sonnet-5-5", "unknown", "nothing so far", "pauses and asks at $10"))
    logs = "".join(path.read_text() for path in (server.state / "logs").iterdir() if path.is_file())
    assert KEY not in answer.body.decode() + shown + logs + (server.state / "server.json").read_text()


def test_doctor_sends_each_configured_model_one_small_request(
    make_server: Callable[..., LiveServer], tmp_path: Path
) -> None:
    path = tmp_path / "config" / "labwright" / "keys" / "anthropic"
    path.parent.mkdir(parents=True)
    path.write_text(KEY)
    path.chmod(0o644)
    with model_server("anthropic", Turn(text=("ready",))) as fake:
        server = make_server(LABWRIGHT_MODEL="anthropic:able", ANTHROPIC_BASE_URL=fake.url)
        server.environment.update(LABWRIGHT_MODEL_CHEAP="anthropic:small", XDG_CONFIG_HOME=str(tmp_path / "config"))
        server.environment.pop("ANTHROPIC_API_KEY", None)
        (server.project / "labwright.toml").write_text('[prices."anthropic:small"]\nin = 1.0\nout = 5.0\n')
        server.start()
        refused = labwright(server, "doctor")
        assert refused.returncode == 1 and f"chmod 600 {path}" in refused.stdout and fake.asked == []
        path.chmod(0o600)
        checks = json.loads(labwright(server, "doctor", "--json").stdout)["checks"]
    assert sorted(asked.body["model"] for asked in fake.asked) == ["able", "small"]
    assert all(asked.body["max_tokens"] <= 16 for asked in fake.asked)
    (asks,) = [check["said"] for check in checks if check["name"] == "its models"]
    assert asks == "anthropic:able, anthropic:small; conversations are sent to them"
    said = [check["said"] for check in checks if check["name"] == "model"]
    assert sorted(said) == ["anthropic:able answers, 120 tokens", "anthropic:small answers, 120 tokens"]
    spent = server.get("/models")["spent"]
    assert (spent["calls"], spent["unpriced_calls"]) == (2, 1) and spent["cost_usd"] == pytest.approx(0.0002)


def test_invalid_model_choice_stops_the_start_and_leaves_nothing(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_MODEL="antropic:claude")
    done = subprocess.run(server.command, env=server.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "Did you mean anthropic:claude?" in done.stderr
    assert not server.state.exists()


def test_runs_do_not_get_the_servers_model_keys(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(
        LABWRIGHT_MODEL="lab:x", LABWRIGHT_KEY_LAB=KEY, LABWRIGHT_MODEL_CHEAP="openrouter:a/b", OPENROUTER_API_KEY=KEY
    )
    (server.project / "labwright.toml").write_text('[endpoints.lab]\nbase_url = "http://127.0.0.1:9/v1"\n')
    server.start()
    run = server.submit("env")
    assert server.wait_for_end(run["id"])["status"] == "finished"
    assert KEY not in server.output(run["id"])


def test_no_sdk_is_loaded_before_a_model_is_called(make_server: Callable[..., LiveServer], tmp_path: Path) -> None:
    code = (
        "import sys, os; os.environ.update(LABWRIGHT_MODEL='anthropic:x')\n"
        "import labwright.cli.main, labwright.cli.machine, labwright.server.app, labwright.server.boot\n"
        "import labwright.llm.models, labwright.llm.cassette, labwright.planning.prompts\n"
        "from labwright.paths import ProjectPaths\nfrom labwright.settings import load_settings\n"
        "from pathlib import Path\nhere = Path(sys.argv[1])\n"
        "labwright.llm.models.Models(ProjectPaths(here), load_settings(here))\n"
        "print({'pydantic_ai', 'anthropic', 'openai', 'httpx2', 'genai_prices'} & set(sys.modules))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True).stdout.strip()
        == "set()"
    )
    server = make_server(**SERVED).start()
    assert server.process is not None
    assert "jiter" not in Path(f"/proc/{server.process.pid}/maps").read_text()  # the compiled part of the SDKs
