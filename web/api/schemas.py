"""What the API takes and gives. Descriptions stand here in English; the catalogue has their Chinese, and the OpenAPI document
and its page are given in the reader's language."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from judge.core.status import Status
from judge.packages import Bilingual, BilingualTags, Limits


def N_(text: str) -> str:
    """Marks a sentence for the catalogue; it is translated where it is shown."""
    return text


MOST_ID = 2**63 - 1


class Asked(BaseModel):
    """What is sent: nothing that is not known."""

    model_config = ConfigDict(extra="forbid")


class FieldError(BaseModel):
    path: str = Field(description=N_("Where in what was sent, such as source."))
    message: str = Field(description=N_("What is wrong there."))


class Refusal(BaseModel):
    """The answer of every request that did not do what it asked for."""

    error: str = Field(description=N_("What is wrong."))
    advice: str = Field(description=N_("What to do."))
    fields: list[FieldError] = Field(description=N_("Where, if it is about parts of what was sent."))


class Me(BaseModel):
    name: str = Field(description=N_("Name, as others see it."))
    login: str = Field(description=N_("Sign-in name; empty on a site without accounts."))
    role: Literal["learner", "teacher", "admin"] = Field(
        description=N_("What the account may do on the site.")
    )


class ProblemSummary(BaseModel):
    id: int = Field(description=N_("Number of the problem."))
    title: Bilingual = Field(description=N_("Title in both languages."))
    chapter: int = Field(description=N_("Chapter that it belongs to."))
    difficulty: Literal["easy", "medium", "hard"] = Field(description=N_("How hard it is."))
    version: str = Field(description=N_("Hash of the problem package: what a verdict is judged by."))
    runs: list[Literal["browser", "cpu", "gpu"]] = Field(description=N_("Where it can be judged."))
    standing: Literal["none", "tried", "solved"] = Field(
        description=N_(
            "How far you are: solved needs an accepted submission, a run over the public cases is not enough."
        )
    )


class ProblemList(BaseModel):
    problems: list[ProblemSummary] = Field(description=N_("All problems, in order of their numbers."))


class Case(BaseModel):
    name: str = Field(description=N_("Name of the case."))
    inputs: dict[str, Any] = Field(description=N_("Inputs, as a verdict shows values."))
    expected: dict[str, Any] = Field(description=N_("The answer."))
    note: dict[str, str] = Field(description=N_("What the case is about, by language; may be empty."))


class ProblemDetails(ProblemSummary):
    tags: BilingualTags = Field(description=N_("Subjects in both languages."))
    kind: Literal["function", "graft", "file"] = Field(description=N_("What a submission stands in for."))
    entry: str = Field(description=N_("The function that a submission must define."))
    signature: str = Field(description=N_("The function with its parameters."))
    outputs: list[str] = Field(description=N_("Names of the returned values, in order."))
    statement: Bilingual = Field(description=N_("The statement as Markdown, in both languages."))
    starter: str = Field(description=N_("What the editor opens with."))
    limits: Limits = Field(description=N_("Limits of one submission."))
    cases: list[Case] = Field(description=N_("The public cases."))


class NewSubmission(Asked):
    model_config = ConfigDict(strict=True)

    problem: int = Field(ge=0, le=MOST_ID, description=N_("Number of the problem."))
    source: str = Field(
        description=N_(
            "The program. It is judged as the UTF-8 bytes of this text, of which there may be as many as limits.source_kb of "
            "the problem says (else 413). Half of a surrogate pair is no text and is refused (422)."
        )
    )
    public_only: bool = Field(
        default=False, description=N_("True: run the public cases only; that solves nothing.")
    )

    @field_validator("problem", mode="before")
    @classmethod
    def _is_whole(cls, problem: Any) -> Any:
        """For JSON Schema 200.0 is a whole number as well."""
        return int(problem) if isinstance(problem, float) and problem.is_integer() else problem

    @field_validator("source")
    @classmethod
    def _is_text(cls, source: str) -> str:
        try:
            source.encode("utf-8")
        except UnicodeEncodeError as error:
            raise PydanticCustomError("string_unicode", "surrogate at {at}", {"at": error.start}) from None
        return source


class Submitted(BaseModel):
    id: int = Field(description=N_("Number of the submission."))
    status: Status = Field(description=N_("queued, running, a verdict, or cancelled."))


class SubmissionSummary(Submitted):
    problem: int = Field(description=N_("Number of the problem."))
    public_only: bool = Field(description=N_("Whether only the public cases were asked for."))
    created_at: float = Field(description=N_("When it arrived, in seconds since 1970 (UTC)."))
    finished_at: float | None = Field(description=N_("When it ended; null before."))
    passed: int | None = Field(description=N_("Cases passed; null before there is a verdict."))
    total: int | None = Field(description=N_("Cases in all; null before it is known."))


class SubmissionList(BaseModel):
    submissions: list[SubmissionSummary] = Field(description=N_("Your submissions, newest first."))
    next: int | None = Field(description=N_("Value of “before” for the next page; null on the last."))


class SubmissionDetails(SubmissionSummary):
    final: bool = Field(description=N_("True once nothing changes by itself any more: stop asking."))
    ahead: int = Field(description=N_("Submissions that are judged before it, while it is queued."))
    cases: list[dict[str, Any]] = Field(
        description=N_("Cases judged so far, while it is running, as in a verdict; then empty.")
    )
    verdict: dict[str, Any] | None = Field(
        description=N_("The verdict that counts; null before there is one.")
    )


class ProblemPath(Asked):
    problem: int = Field(ge=0, le=MOST_ID, description=N_("Number of the problem."))


class SubmissionPath(Asked):
    submission: int = Field(ge=0, le=MOST_ID, description=N_("Number of the submission."))


class Page(Asked):
    before: int | None = Field(
        default=None,
        ge=0,
        le=MOST_ID,
        description=N_("Only submissions with a smaller number: the “next” of a page."),
    )
    limit: int = Field(default=50, ge=1, le=100, description=N_("Submissions on a page."))
