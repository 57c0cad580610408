"""Environments of a project."""

from typing import Annotated, Literal

from pydantic import Field

from domain.alerts.environments import EnvironmentView
from domain.types.base import (
    Body,
    GitLabQuery,
    OffsetQuery,
    Resource,
    Search,
    Text,
    Time,
    WebUrl,
)


class EnvironmentQuery(OffsetQuery, GitLabQuery):
    """Which environments a list has: all, or one by name, or those that match."""

    name: Text = ""
    search: Search = ""
    #: Every environment is available: the other states leave none.
    states: Literal["available", "stopping", "stopped"] = "available"
    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"

    @property
    def finds_nothing(self) -> bool:
        """Whether it asks for a state that no environment is in."""
        return self.states != "available"


class EnvironmentBody(Body):
    """A new environment."""

    name: Text = ""
    external_url: Annotated[WebUrl, Field(max_length=2048)] = ""


class EnvironmentChange(Body):
    """Changes to an environment."""

    external_url: Annotated[WebUrl, Field(max_length=2048)] = Field(description="Empty for none.")


class Environment(Resource):
    """An environment."""

    id: int
    name: str
    slug: str
    external_url: str | None
    state: Literal["available"]
    created_at: Time

    @classmethod
    def of(cls, view: EnvironmentView) -> "Environment":
        """Present an environment."""
        return cls(
            id=view.id,
            name=view.name,
            slug=view.slug,
            external_url=view.external_url,
            state="available",
            created_at=view.created_at,
        )
