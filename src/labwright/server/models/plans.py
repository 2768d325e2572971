"""Plans over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from labwright.domain.plan import Plan, PlanStatus
from labwright.domain.plan_document.document import DocumentFault, PlanSections
from labwright.planning.plans import CompileOptions
from labwright.server.models.fields import Id, In, Name, Text, whole_characters

Goal = Annotated[Text, Field(max_length=100_000)]
# Any text, even with NUL characters: a plan is saved with its format errors.
Markdown = Annotated[str, AfterValidator(whole_characters)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class CompileIn(In):
    report: Text | None = Field(None, description="a text to plan from, such as a report, a paper or notes")
    answers: list[Annotated[Text, Field(min_length=1, max_length=10_000)]] = Field(
        default_factory=list, max_length=10, description="answers to questions; they extend the goal"
    )
    from_node: str | None = Field(None, max_length=100, description="restart at this node")
    rehearsal: bool | None = Field(None, description="false: skip the rehearsal")
    auto_approve: bool = Field(
        False, description="approve without a review if all checks pass; only for a person, and recorded as automatic"
    )

    def value(self) -> CompileOptions:
        return CompileOptions(**{**self.model_dump(), "answers": tuple(self.answers)})


class PlanIn(In):
    title: Name
    goal: Goal = Field(description="the objective of the plan; without a text, the plan is written from it")
    session_id: Id | None = None
    raw_markdown: Markdown = Field(
        "", description="the whole document, starting at `## 📋 Plan:`; saved even with format errors"
    )
    compile: CompileIn | None = Field(
        None, description="compile it immediately; a plan that cannot be compiled is refused"
    )


class PlanTextIn(In):
    raw_markdown: Markdown


class PlanPatch(In):
    title: Name | None = None
    goal: Goal | None = None
    session_id: Id | None = None
    raw_markdown: Markdown | None = None
    version: int | None = Field(None, ge=1, le=2**53, description="the edited version; 409 if it is not the newest")


class ValidateIn(In):
    rehearsal: bool | None = Field(None, description="false: skip the rehearsal")


class ReviewIn(In):
    approved: bool
    digest: Digest | None = Field(None, description="digest of the reviewed workspace; required to approve")
    reason: Annotated[Text, Field(max_length=10_000)] = ""
    node: str | None = Field(None, max_length=100, description="node to redo, with the reason as feedback")


class ApproveIn(In):
    digest: Digest


class FileIn(In):
    content: Annotated[Markdown, Field(max_length=1 << 20)]
    sha256: Digest | None = Field(None, description="hash of the content before the edit; 409 if it has changed since")


class FormatOut(BaseModel):
    valid: bool
    errors: list[DocumentFault]


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
    compiling_by: str
    asks: str = Field(description="what it needs from a person: answers, review, or nothing")
    executed_by: str

    @classmethod
    def of(cls, plan: Plan) -> PlanSummary:
        return cls(**plan.to_dict())


class QuestionOut(BaseModel):
    about: str
    text: str
    suggestions: list[str]
    subject: str = Field(description="the flag in question; an answer need not repeat it")


class ApprovalOut(BaseModel):
    digest: str
    by: str
    at: str
    automatic: bool
    reason: str


class PlanNodeOut(BaseModel):
    node: str
    status: str = Field(description="pending, started, finished, failed, suspended or retried")
    seconds: float | None
    message: str


class StepOut(BaseModel):
    step: str
    status: str = Field(description="started, finished, failed, suspended, retried or skipped")
    seconds: float | None
    message: str


class PlanningOut(BaseModel):
    """Progress of planning. Validated, approved and ready_for_run are three separate facts."""

    status: str = Field(
        description="new, compiling, needs_input, waiting_for_review, rejected, failed, ready_for_run or unreadable"
    )
    node: str = Field(description="current or last node")
    error: str
    model: str
    questions: list[QuestionOut]
    validated: bool
    approved: bool
    approval: ApprovalOut | None
    ready_for_run: bool
    digest: str = Field(description="digest of the last validation")
    feedback: dict[str, str]
    progress: list[PlanNodeOut]
    steps: list[StepOut] = Field(description="steps that the execution has reached")


class PlanOut(PlanSummary):
    raw_markdown: str
    format: FormatOut
    sections: PlanSections
    planning: PlanningOut | None = Field(description="null before the first compilation")


class FileEntryOut(BaseModel):
    path: str
    size: int
    sha256: str = Field(description="empty if the digest does not cover the file")
    editable: bool


class FindingOut(BaseModel):
    code: str
    place: str
    message: str
    hint: str


class ValidationOut(BaseModel):
    digest: str
    passed: bool
    findings: list[FindingOut]


class WorkspaceOut(BaseModel):
    plan_id: str
    digest: str = Field(description="digest of the current files; approve this one")
    changed_since_approval: list[str] = Field(description="what has changed, as text")
    changed_since_validation: list[str] = Field(description="likewise; validate again if not empty")
    changed_since_compilation: list[str] = Field(description="likewise, since the last compilation with another result")
    planning: PlanningOut | None
    manifest: dict[str, Any]
    files: list[FileEntryOut]
    validation: ValidationOut | None
    rehearsal: dict[str, Any] | None


class FileOut(BaseModel):
    path: str
    content: str
    sha256: str
    editable: bool


class CompilationOut(BaseModel):
    number: int
    digest: str
    at: str
    by: str
    passed: bool = Field(description="whether every check passed")


class FileChangeOut(BaseModel):
    path: str
    kind: str = Field(description="added, removed or changed")
    diff: str = Field(description="unified diff without header")


class ChangesOut(BaseModel):
    plan_id: str
    before: str = Field(description="digest")
    after: str = Field(description="digest")
    files: list[FileChangeOut]
    beside: list[str] = Field(description="other changes that an approval covers, as text")


class ReportOut(BaseModel):
    plan_id: str
    markdown: str
    files: list[FileEntryOut]
    since: str  # what happened after it was written, or empty


class PlanVersionOut(BaseModel):
    version: int
    title: str
    goal: str
    raw_markdown: str
    created_at: str
    created_by: str
