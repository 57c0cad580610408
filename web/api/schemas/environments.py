"""Environments of a project."""

from typing import Literal

from domain.alerts.environments import EnvironmentView
from web.api.schemas.base import Body, OffsetQuery, Resource, Search, Text, Time


class EnvironmentQuery(OffsetQuery):
    """Which environments a list has: all, or one by name, or those that match."""

    name: Text = ""
    search: Search = ""
    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class EnvironmentBody(Body):
    """A new environment."""

    name: Text = ""


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
            external_url=None,
            state="available",
            created_at=view.created_at,
        )
