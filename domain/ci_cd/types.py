"""API types for environments, deployments, commit statuses and commits."""

from typing import Annotated, Literal

from pydantic import Field

from domain.accounts.profiles import UserReference
from domain.alerts.environments import format_environment_reference
from domain.core.types.base import (
    Body,
    GitLabQuery,
    Id,
    RequestTimeOrDay,
    Resource,
    Search,
    Text,
    Time,
    WebUrl,
    WithoutEffect,
)
from domain.core.types.pagination import OffsetQuery, PagedQuery

#: Maximum number of characters in a text field of a report. Release 16.0 introduces a lower limit.
_MAX_TEXT_LENGTH = 65_536
DeploymentState = Literal["created", "running", "success", "failed", "canceled", "blocked"]
CommitState = Literal["pending", "running", "success", "failed", "canceled", "skipped"]
#: Git object id: a SHA-1 or SHA-256 hash.
_Sha = Annotated[str, Field(pattern="^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]
_ExternalUrl = Annotated[WebUrl, Field(max_length=2048)]
_Ref = Annotated[Text, Field(min_length=1, max_length=255)]
_JobName = Annotated[Text, Field(max_length=255)]
_LimitedLength = Field(
    max_length=_MAX_TEXT_LENGTH, description="Limited to 255 characters from release 16.0 on."
)


class EnvironmentQuery(OffsetQuery, GitLabQuery):
    """Filters for a list of environments."""

    name: Text = ""
    search: Search = ""
    #: State of the environments. No environment is ever in the state `stopping`.
    states: Literal["available", "stopping", "stopped"] | None = None
    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"

    @property
    def matches_nothing(self) -> bool:
        """True if no environment can match the requested state."""
        return self.states == "stopping"


class NewEnvironment(Body):
    """Request body for creating an environment."""

    name: Text = ""
    external_url: _ExternalUrl = ""


class EnvironmentChange(Body):
    """Request body for changing an environment."""

    external_url: _ExternalUrl = Field(
        description="External URL of the environment. An empty string removes the URL."
    )


class Environment(Resource):
    """An environment of a project, such as production."""

    id: int
    name: str
    slug: str
    external_url: str | None
    state: Literal["available", "stopped"]
    created_at: Time

    @property
    def reference(self) -> str:
        """Reference in the URL of the environment's page: its name, or `~` followed by its ID."""
        return format_environment_reference(self.id, self.name)


class DeploymentQuery(PagedQuery, GitLabQuery):
    """Filters for a list of deployments."""

    order_by: str = Field(
        default="id", pattern="^(?:id|iid|created_at|updated_at|finished_at|ref)$"
    )
    sort: Literal["asc", "desc"] = "asc"
    environment: Text | None = None
    status: DeploymentState | None = None
    updated_after: RequestTimeOrDay | None = Field(
        default=None,
        description="Earliest update time. Requires `order_by=updated_at` from release 16.0 on.",
    )
    updated_before: RequestTimeOrDay | None = None
    finished_after: RequestTimeOrDay | None = Field(
        default=None,
        description="Earliest finish time. Requires `order_by=finished_at` and `status=success`.",
    )
    finished_before: RequestTimeOrDay | None = None


class NewDeployment(Body):
    """Request body for reporting a deployment."""

    environment: _Ref
    sha: _Sha
    ref: _Ref
    tag: bool
    status: DeploymentState = "created"


class DeploymentChange(Body):
    """The new status of a deployment."""

    status: DeploymentState


class Deployment(Resource):
    """A commit that was deployed to an environment."""

    id: int
    iid: int
    ref: str
    sha: str
    tag: bool
    status: DeploymentState
    created_at: Time
    updated_at: Time
    finished_at: Time | None
    user: UserReference | None
    environment: Environment


class CommitStatusQuery(PagedQuery, GitLabQuery):
    """Filters for a list of a commit's statuses."""

    ref: Text | None = None
    stage: Text | None = None
    name: Text | None = None
    pipeline_id: Id | None = None
    order_by: Literal["id", "pipeline_id"] = "id"
    sort: Literal["asc", "desc"] = "asc"
    #: Ignored, because only the latest status of each job is stored.
    all: WithoutEffect = ""


class NewCommitStatus(Body):
    """Status of a commit, reported by a job of external CI.

    Omitted fields keep the values from the last report.
    """

    state: CommitState
    ref: Annotated[Text, _LimitedLength] = ""
    name: _JobName = "default"
    context: _JobName = Field(default="", description="Alias of `name`.")
    stage: Annotated[Text | None, _LimitedLength] = None
    target_url: Annotated[WebUrl | None, _LimitedLength] = None
    description: Annotated[Text | None, _LimitedLength] = None
    coverage: Annotated[float, Field(ge=0, le=100)] | None = None
    allow_failure: bool | None = None
    pipeline_id: Id | None = None

    @property
    def job(self) -> str:
        """Name of the job, from `context` or else from `name`."""
        return self.context or self.name or "default"


class CommitStatus(Resource):
    """Status of a commit, reported by a job of external CI."""

    id: int
    sha: str
    ref: str | None
    status: CommitState
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


class CommitQuery(GitLabQuery):
    """Query parameters of a request for one commit."""

    stats: bool = Field(default=True, description="True to include the number of changed lines.")


class CommitStats(Resource):
    """The numbers of lines that a commit adds and deletes, compared with its first parent."""

    additions: int
    deletions: int
    total: int


class RepositoryCommit(Resource):
    """A commit of a project's repository."""

    id: str = Field(description="Full hash of the commit.")
    short_id: str = Field(description="First 8 digits of the hash.")
    title: str = Field(description="First line of the message.")
    message: str
    author_name: str
    author_email: str
    authored_date: Time | None
    committer_name: str
    committer_email: str
    committed_date: Time | None
    created_at: Time | None = Field(description="Same as `committed_date`.")
    parent_ids: list[str]
    web_url: str = Field(description="URL of the project's page.")
    project_id: int
    status: CommitState | None = Field(
        description=(
            "Combined state of the statuses that external CI reported. Null if no status was "
            "reported."
        )
    )
    last_pipeline: None = Field(description="Always null, because Gatebell has no pipelines.")
    stats: CommitStats | None = Field(
        description="Numbers of added and deleted lines. Null with `stats=false`."
    )
