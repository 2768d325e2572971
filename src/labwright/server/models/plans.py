"""What comes in and goes out over HTTP about plans."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from labwright.domain.plan import Plan, PlanStatus
from labwright.domain.plan_document.document import DocumentFault, PlanSections
from labwright.planning.plans import CompileOptions
from labwright.server.models.fields import Id, In, Name, Text, whole_characters

Goal = Annotated[Text, Field(max_length=100_000)]
# NUL and all: a plan is kept whatever its form, and told what is wrong with it.
Markdown = Annotated[str, AfterValidator(whole_characters)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class CompileIn(In):
    report: Text | None = Field(None, description="a text to plan from: a report, a paper, notes")
    answers: list[Annotated[Text, Field(min_length=1, max_length=10_000)]] = Field(
        default_factory=list, max_length=10, description="to what was asked; read like more words of the goal"
    )
    from_node: str | None = Field(None, max_length=100, description="begin again at this node")
    rehearsal: bool | None = Field(None, description="false: without the rehearsal, which the review shows")
    auto_approve: bool = Field(
        False, description="approve what passes without a review; only for a person, and recorded as automatic"
    )

    def value(self) -> CompileOptions:
        return CompileOptions(**{**self.model_dump(), "answers": tuple(self.answers)})


class PlanIn(In):
    title: Name
    goal: Goal = Field(
        description="the text of the plan's Objective; or, without a text, what the plan is to be made of"
    )
    session_id: Id | None = None
    raw_markdown: Markdown = Field(
        "", description="the whole document, beginning at `## 📋 Plan:`; kept whatever its form"
    )
    compile: CompileIn | None = Field(
        None, description="compile it at once; what cannot be compiled is refused and not kept"
    )


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


class ValidateIn(In):
    rehearsal: bool | None = Field(None, description="as for compile")


class ReviewIn(In):
    approved: bool
    digest: Digest | None = Field(None, description="of the workspace that was looked at; needed to approve")
    reason: Annotated[Text, Field(max_length=10_000)] = ""
    node: str | None = Field(None, max_length=100, description="to be done again, with the reason as feedback")


class ApproveIn(In):
    digest: Digest


class FileIn(In):
    content: Annotated[Markdown, Field(max_length=1 << 20)]
    sha256: Digest | None = Field(None, description="of the content that was edited; 409 if it is another by now")


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
    asks: str = Field(description="what it wants of a person: answers, review, or nothing")
    executed_by: str

    @classmethod
    def of(cls, plan: Plan) -> PlanSummary:
        return cls(**plan.to_dict())


class QuestionOut(BaseModel):
    about: str
    text: str
    suggestions: list[str]
    subject: str = Field(description="the flag whose values are asked for; an answer need not name it again")


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
    """How far planning is. Validated, approved and ready for a run are three different things."""

    status: str = Field(
        description="new, compiling, needs_input, waiting_for_review, rejected, failed, ready_for_run or unreadable"
    )
    node: str = Field(description="where it is, or where it stopped")
    error: str
    model: str
    questions: list[QuestionOut]
    validated: bool
    approved: bool
    approval: ApprovalOut | None
    ready_for_run: bool
    digest: str = Field(description="what was validated last")
    feedback: dict[str, str]
    progress: list[PlanNodeOut]
    steps: list[StepOut] = Field(description="of its execution, those that were reached")


class PlanOut(PlanSummary):
    raw_markdown: str
    format: FormatOut
    sections: PlanSections
    planning: PlanningOut | None = Field(description="null until it was compiled")


class FileEntryOut(BaseModel):
    path: str
    size: int
    sha256: str = Field(description="empty where the digest does not cover it")
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
    digest: str = Field(description="of the bytes as they now are: the one to approve")
    changed_since_approval: list[str] = Field(description="in words")
    changed_since_validation: list[str] = Field(description="likewise; it has to be validated again")
    changed_since_compilation: list[str] = Field(description="likewise, since the last one that made something else")
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
    diff: str = Field(description="unified, without its head")


class ChangesOut(BaseModel):
    plan_id: str
    before: str = Field(description="digest")
    after: str = Field(description="digest")
    files: list[FileChangeOut]
    beside: list[str] = Field(description="what else an approval covers and that changed, in words")


class ReportOut(BaseModel):
    plan_id: str
    markdown: str
    files: list[FileEntryOut]
    since: str  # what has come since it was written, in a sentence; empty where it is the newest


class PlanVersionOut(BaseModel):
    version: int
    title: str
    goal: str
    raw_markdown: str
    created_at: str
    created_by: str
