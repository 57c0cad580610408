"""Statuses of commits."""

from typing import Annotated, Literal

from pydantic import Field

from domain.accounts.references import UserReference
from domain.ci_cd.commit_statuses import CommitStatusView
from domain.types.base import (
    Body,
    GitLabQuery,
    Id,
    PagedQuery,
    Resource,
    Text,
    Time,
    WebUrl,
    WithoutEffect,
)
from web.services import settings

State = Literal["pending", "running", "success", "failed", "canceled", "skipped"]


class CommitStatusQuery(PagedQuery, GitLabQuery):
    """Which statuses of a commit a list has."""

    ref: Text | None = None
    stage: Text | None = None
    name: Text | None = None
    pipeline_id: Id | None = None
    order_by: Literal["id", "pipeline_id"] = "id"
    sort: Literal["asc", "desc"] = "asc"
    #: A job has one status, the latest.
    all: WithoutEffect = ""


class CommitStatusBody(Body):
    """What a job of external CI says of a commit."""

    state: State
    ref: Text = Field(default="", description="At most 255 characters from release 16.0 on.")
    name: Annotated[Text, Field(max_length=255)] = "default"
    context: Annotated[Text, Field(max_length=255)] = Field(
        default="", description="Another word for `name`."
    )
    stage: Text | None = Field(
        default=None, description="At most 255 characters from release 16.0 on."
    )
    target_url: WebUrl | None = Field(
        default=None, description="At most 255 characters from release 16.0 on."
    )
    description: Text | None = Field(
        default=None, description="At most 255 characters from release 16.0 on."
    )
    coverage: Annotated[float, Field(ge=0, le=100)] | None = None
    allow_failure: bool | None = None
    pipeline_id: Id | None = None

    @property
    def job(self) -> str:
        """The name of the job."""
        return self.context or self.name or "default"


class CommitStatus(Resource):
    """What a job of external CI said of a commit."""

    id: int
    sha: str
    ref: str | None
    status: State
    name: str
    stage: str
    target_url: str | None
    description: str | None
    coverage: float | None
    allow_failure: bool
    pipeline_id: int | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    author: UserReference | None

    @classmethod
    def of(cls, view: CommitStatusView) -> "CommitStatus":
        """Present a status."""
        return cls.model_validate(
            {
                "id": view.id,
                "sha": view.sha,
                "ref": view.ref or None,
                "status": view.status,
                "name": view.name,
                "stage": view.stage,
                "target_url": view.target_url,
                "description": view.description,
                "coverage": view.coverage,
                "allow_failure": view.allow_failure,
                "pipeline_id": view.pipeline_id,
                "created_at": view.created_at,
                "started_at": view.started_at,
                "finished_at": view.finished_at,
                "author": UserReference.of(view.reporter, settings().base_url)
                if view.reporter
                else None,
            }
        )
