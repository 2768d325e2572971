"""Skills as files: valid and invalid ones, how variables are filled in, and installation into editors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from labwright.domain.errors import Conflict, Invalid, LabwrightError, NotFound
from labwright.skills import SkillRegistry, SkillSource, rendered
from labwright.skills.install import ASK, Editor, InstallOutcome, install, installed_text
from labwright.skills.quoting import fenced, plain, quoted
from labwright.skills.skill import read_skill
from labwright.tokens import write_header_file

FORM = "---\nname: {name}\ndescription: {description}\nmetadata:\n  title: T\n  variables: {variables}\n---\n\n{body}\n"
HOSTILE_NAMES = [
    "",
    ".",
    "..",
    "../outside",
    "a/b",
    "a\\b",
    "/etc",
    "A",
    "a--b",
    "-a",
    "a-",
    "a b",
    "a\n",
    "a\0",
    ".hidden",
    "ä",
    "a" * 65,
    "con.md",
]


def skill_text(
    name: str = "mine", body: str = "Hello {{goal}}.", variables: str = "goal", description: str = "d"
) -> str:
    return FORM.format(name=name, body=body, variables=variables, description=description)


@pytest.fixture
def registry(tmp_path: Path) -> SkillRegistry:
    return SkillRegistry(tmp_path / "skills")


def test_built_in_skills_follow_the_agent_skills_format(registry: SkillRegistry) -> None:
    found = registry.every()
    assert {listed.id for listed in found} >= {"agent-mode", "plan-mode", "wild-mode"}
    for listed in found:
        assert listed.skill, listed.fault
        facts = yaml.safe_load(listed.skill.text.split("---\n")[1])
        assert set(facts) == {"name", "description", "metadata"}
        assert all(isinstance(value, str) for value in facts["metadata"].values())
        assert facts["metadata"]["title"] == listed.skill.title
        assert len(listed.skill.body.splitlines()) < 500


def test_built_in_skills_have_the_variables_of_the_prompts(registry: SkillRegistry) -> None:
    common = {"experiment_context", "server_url", "auth_token", "api_catalog", "cluster_state", "auth_header"}
    assert set(registry.get("agent-mode").variables) == common
    assert set(registry.get("plan-mode").variables) == common | {"goal", "existing_plans"}
    assert set(registry.get("wild-mode").variables) == common | {"goal"}


def test_plan_format_in_plan_mode_is_the_one_the_server_reads(registry: SkillRegistry) -> None:
    from labwright.domain.plan_document.document import TITLE, Header

    body = registry.get("plan-mode").body
    form = body.split("````markdown\n")[1].split("````")[0]
    headers = [line for line in form.splitlines() if line.startswith("#")]
    assert headers == [f"{TITLE} <concise plan title>", *Header]


def test_variables_can_be_a_list_in_any_notation() -> None:
    text = skill_text(variables="[goal, server_url]", body="{{goal}} {{ server_url }}")
    assert read_skill(text, SkillSource.PROJECT).variables == ("goal", "server_url")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no frontmatter", "no frontmatter"),
        ("---\nname: a\n", "no frontmatter"),
        ("---\n- a\n---\nx", "mapping of names to values"),
        ("---\nname: [\n---\nx", "not valid YAML"),
        ("---\nname: a\n---\nx", "needs a description"),
        ("---\nname: a\ndescription: ''\n---\nx", "needs a description"),
        ("---\nname: a\ndescription: 5\n---\nx", "needs a description"),
        (skill_text(description="d" * 1025), "needs a description"),
        ("---\ndescription: d\n---\nx", "not a valid skill name"),
        ("---\nname: a\ndescription: d\nmetadata: x\n---\nx", "mapping of names to values"),
        (skill_text(variables=""), "without declaring it"),
        (skill_text(variables="Goal-1"), "not a valid variable name"),
        (skill_text(body="{{Goal}}"), "not a variable"),
        (skill_text(body="{{ unclosed"), "not a variable"),
        (skill_text(body="x" * 200_001), "characters at most"),
        (f"---\nname: a\ndescription: d\n# {'x' * 17_000}\n---\nx", "characters at most"),
    ],
)
def test_invalid_skill_is_refused_with_a_hint(text: str, said: str) -> None:
    with pytest.raises(Invalid, match=said) as caught:
        read_skill(text, SkillSource.PROJECT)
    assert caught.value.hint


def test_missing_variable_value_is_an_error_that_names_it() -> None:
    with pytest.raises(Invalid, match=r"\{\{b\}\}, \{\{c\}\}"):
        rendered("{{a}} {{b}} {{c}}", {"a": "1"})


def test_value_is_text_and_not_rendered_again() -> None:
    values = {"goal": "{{auth_token}} {{nothing}} \\1 \\g<0>", "auth_token": "secret"}
    assert rendered("<{{goal}}>", values) == "<{{auth_token}} {{nothing}} \\1 \\g<0>>"


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_name_reaches_no_file(registry: SkillRegistry, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").mkdir()
    for use in (
        lambda: registry.get(name),
        lambda: registry.delete(name),
        lambda: registry.save(skill_text("mine"), name),
        lambda: registry.save(skill_text(f'"{name}"')),
    ):
        with pytest.raises(LabwrightError):
            use()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["outside"]


def test_project_skill_overrides_the_built_in_one_until_deleted(registry: SkillRegistry) -> None:
    registry.save(skill_text("agent-mode", body="Ours.", variables=""))
    assert registry.get("agent-mode").body == "Ours.\n"
    [own] = [listed for listed in registry.every() if listed.id == "agent-mode"]
    assert own.source is SkillSource.PROJECT and own.overrides
    registry.delete("agent-mode")
    assert registry.get("agent-mode").source is SkillSource.BUILT_IN
    with pytest.raises(Conflict, match="is built in"):
        registry.delete("agent-mode")
    with pytest.raises(NotFound):
        registry.delete("nowhere")


def test_refused_skill_leaves_the_old_one(registry: SkillRegistry) -> None:
    registry.save(skill_text())
    with pytest.raises(Invalid):
        registry.save(skill_text(variables=""))
    with pytest.raises(Invalid, match="frontmatter is"):
        registry.save(skill_text("other"), "mine")
    assert registry.get("mine").text == skill_text()


def test_broken_file_is_reported_and_hides_nothing(registry: SkillRegistry, tmp_path: Path) -> None:
    for name, content in (
        ("agent-mode", b"broken"),
        ("bytes", b"\xff\xfe"),
        ("moved", skill_text("mine").encode()),
        ("My_Own", b"x"),
    ):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(content)
    faults = {listed.id: listed.fault for listed in registry.every()}
    assert "no frontmatter" in faults["agent-mode"]
    assert "cannot be read" in faults["bytes"]
    assert "frontmatter is" in faults["moved"]
    assert "not a valid skill name" in faults["My_Own"]
    assert faults["plan-mode"] == ""
    with pytest.raises(Invalid, match=r"SKILL\.md: The skill has no frontmatter"):
        registry.get("agent-mode")  # not the built-in one instead


def test_outside_links_and_pipes_are_not_followed(registry: SkillRegistry, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(skill_text("linked"))
    for name in ("linked", "pipe"):
        (tmp_path / "skills" / name).mkdir(parents=True)
    (tmp_path / "skills" / "linked" / "SKILL.md").symlink_to(secret)
    os.mkfifo(tmp_path / "skills" / "pipe" / "SKILL.md")
    for name in ("linked", "pipe"):
        with pytest.raises(Invalid):
            registry.get(name)


def test_leftover_of_a_killed_delete_is_not_a_skill(registry: SkillRegistry, tmp_path: Path) -> None:
    registry.save(skill_text())
    (tmp_path / "skills" / "mine").rename(tmp_path / "skills" / ".mine.deleted")
    (tmp_path / "skills" / "empty").mkdir()
    assert {listed.id for listed in registry.every()} == {"agent-mode", "plan-mode", "wild-mode"}
    registry.save(skill_text())
    registry.delete("mine")
    assert [path.name for path in (tmp_path / "skills").iterdir()] == ["empty"]


@pytest.mark.parametrize(
    "text", ["```\n# Do this", "~~~\nx", "a\r\nb\u2028c\u0085d", "\u202egnp\u200b\U000e0041", "\0\x1b[2J"]
)
def test_foreign_text_is_one_line_that_closes_no_fence(text: str) -> None:
    shown = quoted(text)
    assert len(shown.splitlines()) == 1
    assert "`" not in shown and "~~~" not in shown
    assert shown.isprintable()


def test_foreign_text_has_a_bounded_length() -> None:
    assert len(plain("x" * 1_000_000, 50)) == 50
    block = fenced([f"line {number}" for number in range(1000)], 100)
    assert len(block) < 200
    assert "more lines left out" in block


def test_installed_skills_have_no_token_and_no_address(registry: SkillRegistry) -> None:
    for listed in registry.every():
        assert listed.skill
        text = installed_text(listed.skill)
        assert "{{" not in text
        assert "lw_" not in text and "lwa." not in text and "127.0.0.1" not in text
        facts = yaml.safe_load(text.split("---\n")[1])
        assert facts["name"] == f"labwright-{listed.id}"
        assert facts["description"] == listed.skill.description


def test_installing_again_changes_nothing(registry: SkillRegistry, tmp_path: Path) -> None:
    skill = registry.get("agent-mode")
    first = install(skill, tmp_path, Editor, overwrite=False)
    assert [str(done.path.relative_to(tmp_path)) for done in first] == [
        ".claude/skills/labwright-agent-mode/SKILL.md",
        ".agents/skills/labwright-agent-mode/SKILL.md",
    ]
    assert {done.outcome for done in first} == {InstallOutcome.WRITTEN}
    assert {done.outcome for done in install(skill, tmp_path, Editor, overwrite=False)} == {InstallOutcome.UNCHANGED}


def test_edited_file_is_kept_and_an_outdated_one_replaced(registry: SkillRegistry, tmp_path: Path) -> None:
    skill = registry.get("agent-mode")
    [written] = install(skill, tmp_path, [Editor.CLAUDE], overwrite=False)
    registry.save(skill_text("agent-mode", body="Another version.", variables=""))
    newer = registry.get("agent-mode")
    assert install(newer, tmp_path, [Editor.CLAUDE], overwrite=False)[0].outcome is InstallOutcome.UPDATED
    written.path.write_text(written.path.read_text() + "Mine.\n")
    assert install(skill, tmp_path, [Editor.CLAUDE], overwrite=False)[0].outcome is InstallOutcome.EDITED
    assert written.path.read_text().endswith("Mine.\n")
    assert install(skill, tmp_path, [Editor.CLAUDE], overwrite=True)[0].outcome is InstallOutcome.UPDATED
    written.path.unlink()
    written.path.symlink_to(tmp_path / "elsewhere")
    assert install(skill, tmp_path, [Editor.CLAUDE], overwrite=False)[0].outcome is InstallOutcome.EDITED


def test_obstacle_to_installing_a_skill_is_reported(registry: SkillRegistry, tmp_path: Path) -> None:
    (tmp_path / ".claude").write_text("a file")
    with pytest.raises(Conflict, match="Not a directory"):
        install(registry.get("agent-mode"), tmp_path, [Editor.CLAUDE], overwrite=True)
    (tmp_path / ".agents/skills/labwright-agent-mode/SKILL.md").mkdir(parents=True)
    with pytest.raises(Conflict, match="Is a directory"):
        install(registry.get("agent-mode"), tmp_path, [Editor.CODEX], overwrite=True)


def test_skill_with_its_own_variables_cannot_be_installed(registry: SkillRegistry, tmp_path: Path) -> None:
    registry.save(skill_text(body="{{dataset}}", variables="dataset"))
    with pytest.raises(Invalid, match="dataset"):
        install(registry.get("mine"), tmp_path, Editor, overwrite=False)
    assert not (tmp_path / ".claude").exists()


def test_every_variable_has_its_command(registry: SkillRegistry) -> None:
    assert set(ASK) == {name for listed in registry.every() if listed.skill for name in listed.skill.variables}


def test_header_file_is_private_and_removed_when_its_token_expires(tmp_path: Path) -> None:
    folder = tmp_path / "headers"
    old = write_header_file(folder, "old", "lwa.x.1.signature")
    new = write_header_file(folder, "new", "lwa.x.99999999999.signature")
    assert not old.exists()
    assert new.read_text() == "X-Auth-Token: lwa.x.99999999999.signature\n"
    assert new.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
