"""Calls that scheduled changes concern."""

from typing import Annotated, Any, Literal

from domain.api_usage.consumers import ConsumerKind
from domain.api_usage.reading import Use
from domain.types.base import OffsetQuery, Resource, Time, one_of


class UsageQuery(OffsetQuery):
    """Whose calls a list is about."""

    #: `all` is for administrators: the calls of the whole instance.
    scope: Literal["mine", "all"] = "mine"


class ConsumerResource(Resource):
    """A consumer of the API."""

    kind: Annotated[str, one_of(*ConsumerKind)]
    #: Of the application, the token, or the user; null for requests without a token.
    id: int | None
    name: str
    #: A user name, or the path of a project or group; empty for an application of the instance.
    owner: str


class UsageResource(Resource):
    """The calls of a consumer that a change concerns."""

    change: str
    release: str
    title: str
    replacement: str
    #: `sure`, or `possible` where it depends on what the caller does with the response.
    certainty: Annotated[str, one_of("sure", "possible")]
    consumer: ConsumerResource
    calls: int
    operations: list[str]
    first_called_at: Time
    last_called_at: Time
    #: Null for applications, which others use as well; administrators see it.
    last_address: str | None

    @classmethod
    def of(cls, use: Use) -> "UsageResource":
        """Present the use of a change."""
        return cls(
            change=use.change.id,
            release=use.change.release,
            title=use.change.title,
            replacement=use.change.replacement,
            consumer=ConsumerResource.model_validate(use.consumer),
            **calls_of(use),
        )


def calls_of(use: Use) -> dict[str, Any]:
    """Return how calls are affected, and when they were made, as fields."""
    return {
        "certainty": use.certainty,
        "calls": use.calls,
        "operations": list(use.operations),
        "first_called_at": use.first_at,
        "last_called_at": use.last_at,
        "last_address": use.last_address,
    }
