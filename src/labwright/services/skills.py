"""The verbs of skills: list, get, render, save, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.event import Event, EventType
from labwright.skills.registry import SkillRegistry
from labwright.skills.render import rendered, variables_in
from labwright.skills.skill import Skill, SkillSource, read_skill

if TYPE_CHECKING:
    from labwright.services.skill_values import Asker

View = dict[str, Any]


def every(lab: Lab) -> list[View]:
    """Without their texts."""
    return [listed.facts() for listed in _registry(lab).every()]


def get(lab: Lab, skill_id: str) -> View:
    registry = _registry(lab)
    return _view(registry, registry.get(skill_id))


def render(lab: Lab, skill_id: str, given: Mapping[str, str], asker: Asker) -> View:
    """The text for a model. What is given goes before what is looked up; what nobody knows is an error."""
    return _rendered(lab, _registry(lab).get(skill_id), given, asker)


def preview(lab: Lab, skill_id: str, given: Mapping[str, str], asker: Asker, draft: str | None) -> View:
    """The same to look at: also of a text that is not saved yet, and what nobody knows stays as it is written."""
    skill = _registry(lab).get(skill_id) if draft is None else read_skill(draft, SkillSource.PROJECT)
    unknown = {name: f"{{{{{name}}}}}" for name in skill.variables}
    return _rendered(lab, skill, given, asker, unknown)


def _rendered(
    lab: Lab, skill: Skill, given: Mapping[str, str], asker: Asker, otherwise: Mapping[str, str] | None = None
) -> View:
    for name in given:
        if name not in skill.variables:
            known = ", ".join(skill.variables) or "none"
            raise Invalid(
                f"The skill {skill.id} has no variable {name!r}.",
                hint=f"It has: {known}.",
                field=("variables", name),
            )
    needed = variables_in(skill.body)
    from labwright.services.skill_values import LIVE  # here, as skills are rendered now and then

    values = {name: LIVE[name](lab, asker) for name in needed if name in LIVE and name not in given}
    return {
        "id": skill.id,
        "title": skill.title,
        "text": rendered(skill.body, {**(otherwise or {}), **values, **given}),
    }


def create(lab: Lab, text: str, actor: Actor) -> View:
    """A new one of the project's own; it may have the name of a built-in one and then goes before it."""
    with lab.skill_lock:
        wanted = read_skill(text, SkillSource.PROJECT)
        if _registry(lab).is_own(wanted.id):
            raise Conflict(
                f"The project has a skill {wanted.id} already.", hint=f"Replace it with PUT /prompt-skills/{wanted.id}."
            )
        return _save(lab, text, wanted.id, actor)


def replace(lab: Lab, skill_id: str, text: str, actor: Actor) -> View:
    with lab.skill_lock:
        return _save(lab, text, skill_id, actor)


def _save(lab: Lab, text: str, skill_id: str, actor: Actor) -> View:
    registry = _registry(lab)
    with lab.db.transaction() as tx:
        tx.emit(Event(type=EventType.SKILL_SAVED, actor=str(actor), time=now(), data={"skill_id": skill_id}))
        saved = registry.save(text, skill_id)
    return _view(registry, saved)


def delete(lab: Lab, skill_id: str, actor: Actor) -> None:
    with lab.skill_lock, lab.db.transaction() as tx:
        tx.emit(Event(type=EventType.SKILL_DELETED, actor=str(actor), time=now(), data={"skill_id": skill_id}))
        _registry(lab).delete(skill_id)


def _registry(lab: Lab) -> SkillRegistry:
    return SkillRegistry(lab.paths.skills)


def _view(registry: SkillRegistry, skill: Skill) -> View:
    return {**registry.listed(skill.id).facts(), "text": skill.text}
