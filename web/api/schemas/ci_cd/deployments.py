"""Deployments of a project."""

from typing import Annotated, Literal

from pydantic import Field

from domain.accounts.references import UserReference
from domain.ci_cd.deployments import DeploymentView
from domain.types.base import Body, GitLabQuery, GivenTime, PagedQuery, Resource, Text, Time
from web.api.schemas.ci_cd.environments import Environment
from web.services import settings

Status = Literal["created", "running", "success", "failed", "canceled", "blocked"]
#: A SHA-1 or SHA-256 of Git.
Sha = Annotated[str, Field(pattern="^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]


class DeploymentQuery(PagedQuery, GitLabQuery):
    """Which deployments a list has, in which order."""

    order_by: str = Field(
        default="id", pattern="^(?:id|iid|created_at|updated_at|finished_at|ref)$"
    )
    sort: Literal["asc", "desc"] = "asc"
    environment: Text | None = None
    status: Status | None = None
    updated_after: GivenTime | None = Field(
        default=None, description="Together with `order_by=updated_at`."
    )
    updated_before: GivenTime | None = None
    finished_after: GivenTime | None = Field(
        default=None, description="Together with `order_by=finished_at` and `status=success`."
    )
    finished_before: GivenTime | None = None


class DeploymentBody(Body):
    """A new deployment."""

    environment: Annotated[Text, Field(min_length=1, max_length=255)]
    sha: Sha
    ref: Annotated[Text, Field(min_length=1, max_length=255)]
    tag: bool
    status: Status = "created"


class DeploymentChange(Body):
    """The status that a deployment has now."""

    status: Status


class Deployment(Resource):
    """A commit that was brought to an environment."""

    id: int
    iid: int
    ref: str
    sha: str
    tag: bool
    status: Status
    created_at: Time
    updated_at: Time
    finished_at: Time | None
    user: UserReference | None
    environment: Environment

    @classmethod
    def of(cls, view: DeploymentView) -> "Deployment":
        """Present a deployment."""
        return cls.model_validate(
            {
                "id": view.id,
                "iid": view.iid,
                "ref": view.ref,
                "sha": view.sha,
                "tag": view.is_tag,
                "status": view.status,
                "created_at": view.created_at,
                "updated_at": view.updated_at,
                "finished_at": view.finished_at,
                "user": UserReference.of(view.reporter, settings().base_url)
                if view.reporter
                else None,
                "environment": Environment.of(view.environment),
            }
        )
