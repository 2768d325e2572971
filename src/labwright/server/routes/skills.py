"""/prompt-skills: instructions for models. Agents read and render them; only a person changes them."""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from labwright.domain.actor import Scope
from labwright.server.auth import PERSON, READERS, WRITERS, actor_of, token_of
from labwright.server.models.fields import In, Text
from labwright.server.openapi import api_catalog
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.services import skills
from labwright.services.skills import Asker
from labwright.skills.skill import LONGEST_TEXT, SkillSource
from labwright.tokens import mint

router = APIRouter(prefix="/prompt-skills", route_class=StrictJsonRoute, tags=["skills"])
_NAME = "skill"  # name in the token of a rendered skill
Value = Annotated[Text, Field(max_length=100_000)]


class SkillIn(In):
    text: Annotated[Text, Field(min_length=1, max_length=LONGEST_TEXT)] = Field(
        description="the whole SKILL.md: frontmatter with name and description, then Markdown with {{variables}}"
    )


class RenderIn(In):
    variables: Annotated[dict[str, Value], Field(max_length=100)] = Field(
        default_factory=dict, description="values of variables, such as `goal`; they override live values"
    )
    preview: bool = Field(default=False, description="keep variables without a value as they are written")
    text: Annotated[Text, Field(min_length=1, max_length=LONGEST_TEXT)] | None = Field(
        default=None, description="with `preview`: an unsaved draft of the whole SKILL.md"
    )
    shell: Literal["local", "remote"] | None = Field(
        default=None,
        description="whether the commands in the text run on this machine; by default detected from the request",
    )


class SkillSummary(BaseModel):
    id: str
    title: str
    description: str
    source: SkillSource
    overrides: bool = Field(description="whether it overrides a built-in skill of this name")
    variables: list[str]
    fault: str = Field(description="why the file is invalid, or empty")


class SkillOut(SkillSummary):
    text: str


class RenderedOut(BaseModel):
    id: str
    title: str
    text: str


@router.get("", dependencies=[READERS()])
def list_skills(request: Request) -> list[SkillSummary]:
    """List skills by name, without their texts."""
    return [SkillSummary(**found) for found in skills.every(lab_of(request))]


@router.get("/{skill_id}", dependencies=[READERS()])
def get_skill(skill_id: str, request: Request) -> SkillOut:
    """Return one skill with its text. Variables are not filled in."""
    return SkillOut(**skills.get(lab_of(request), skill_id))


@router.post("/{skill_id}/render", dependencies=[WRITERS()])
def render_skill(skill_id: str, request: Request, body: RenderIn | None = None) -> RenderedOut:
    """Return the text for a model, with the project's current state. A variable without a value is a 422."""
    wanted = body or RenderIn()
    asker = _asker(request, wanted.shell)
    if wanted.preview:
        return RenderedOut(**skills.preview(lab_of(request), skill_id, wanted.variables, asker, wanted.text))
    return RenderedOut(**skills.render(lab_of(request), skill_id, wanted.variables, asker))


@router.post("", status_code=201, dependencies=[PERSON()])
def create_skill(body: SkillIn, request: Request) -> SkillOut:
    """Create a skill of the project."""
    return SkillOut(**skills.create(lab_of(request), body.text, actor_of(request)))


@router.put("/{skill_id}", dependencies=[PERSON()])
def replace_skill(skill_id: str, body: SkillIn, request: Request) -> SkillOut:
    """Create or replace a skill of the project. It overrides a built-in skill of the same name."""
    return SkillOut(**skills.replace(lab_of(request), skill_id, body.text, actor_of(request)))


@router.delete("/{skill_id}", status_code=204, dependencies=[PERSON()])
def delete_skill(skill_id: str, request: Request) -> Response:
    """Delete a skill of the project. A built-in skill of the same name is used again."""
    skills.delete(lab_of(request), skill_id, actor_of(request))
    return Response(status_code=204)


def _asker(request: Request, shell: str | None) -> Asker:
    """Return the reader of the text. An agent gets its own token: a new one would outlive the old one's expiry."""
    lab, shown = lab_of(request), token_of(request)
    from_here = request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    is_local = shell == "local" if shell else from_here
    if actor_of(request).scope is Scope.AGENT:
        token, name = shown, f"agent-{hashlib.sha256(shown.encode()).hexdigest()[:16]}"
    else:
        token, name = mint(lab.token, Scope.AGENT, _NAME, lab.settings.agent_token_hours * 3600), _NAME
    return Asker(
        url=lab.url if is_local else str(request.base_url).rstrip("/"),
        token=token,
        header_name=name,
        is_local=is_local,
        api_catalog=lambda: api_catalog(request.app.openapi()),
    )
