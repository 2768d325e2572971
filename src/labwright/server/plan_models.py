"""What comes in and goes out over HTTP about plans."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from labwright.domain.plan import Plan, PlanStatus
from labwright.domain.plan_document import Fault, PlanSections
from labwright.server.models import Id, In, Name, Text, whole_characters

Goal = Annotated[Text, Field(max_length=100_000)]
# NUL and all: a plan is kept whatever its form, and told what is wrong with it.
Markdown = Annotated[str, AfterValidator(whole_characters)]


class PlanIn(In):
    title: Name
    goal: Goal = Field(description="the text of the plan's Objective")
    session_id: Id | None = None
    raw_markdown: Markdown = Field(description="the whole document, beginning at `## 📋 Plan:`; kept whatever its form")


class PlanTextIn(In):
    raw_markdown: Markdown


class PlanPatch(In):
    title: Name | None = None
    goal: Goal | None = None
    session_id: Id | None = None
    raw_markdown: Markdown | None = None
    version: int | None = Field(
        None, ge=1, le=2**53, description="the version that was edited; 409 if it is not the newest"
    )


class FormatOut(BaseModel):
    valid: bool
    errors: list[Fault]


class PlanSummary(BaseModel):
    id: str
    title: str
    goal: str
    status: PlanStatus
    status_reason: str
    session_id: str | None
    version: int
    valid: bool
    created_at: str
    created_by: str
    updated_at: str

    @classmethod
    def of(cls, plan: Plan) -> PlanSummary:
        return cls(**plan.to_dict())


class PlanOut(PlanSummary):
    raw_markdown: str
    format: FormatOut
    sections: PlanSections


class PlanVersionOut(BaseModel):
    version: int
    title: str
    goal: str
    raw_markdown: str
    created_at: str
    created_by: str
