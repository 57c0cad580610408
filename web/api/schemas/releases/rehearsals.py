"""What a change of the running release breaks."""

from itertools import groupby
from typing import Annotated

from pydantic import Field

from domain.api_usage.consumers import ConsumerKind
from domain.api_usage.reading import Use
from domain.types.base import Resource, Time, columns_of, one_of
from web.api.schemas.releases.api_usage import calls_of
from web.releases.rehearsal import Rehearsal

#: So many uses a response has at most.
_MOST_USES = 100


class RehearsedConsumer(Resource):
    """A consumer, and how its calls are affected."""

    kind: Annotated[str, one_of(*ConsumerKind)]
    #: Of the application, the token, or the user; null for requests without a token.
    id: int | None
    name: str
    owner: str
    certainty: Annotated[str, one_of("sure", "possible")]
    calls: int
    operations: list[str]
    first_called_at: Time
    last_called_at: Time
    last_address: str | None

    @classmethod
    def of(cls, use: Use) -> "RehearsedConsumer":
        """Present a consumer."""
        return cls(**columns_of(use.consumer, cls), **calls_of(use))


class RehearsedChange(Resource):
    """A change of the release schedule, and whose calls use it."""

    change: str
    release: str
    title: str
    replacement: str
    consumers: list[RehearsedConsumer]


class ReleaseRehearsal(Resource):
    """How a change of the running release affects the counted calls."""

    running: str = Field(description="The release before.")
    release: str
    breaks: int = Field(
        description="The number of uses that are certain to have a different result."
    )
    tokens_given_expiry: int = Field(
        description="Access tokens that never expired, and now have an expiry date."
    )
    changes: list[RehearsedChange] = Field(
        description="With at most 100 consumers; GET /releases/usage?scope=all lists them all."
    )

    @classmethod
    def of(cls, found: Rehearsal, *, most: int | None = _MOST_USES) -> "ReleaseRehearsal":
        """Present a rehearsal, with so many uses at most; None for all."""
        by_change = sorted(found.uses[:most], key=lambda use: use.change.id)
        return cls(
            running=str(found.running),
            release=str(found.release),
            breaks=len(found.breaking),
            tokens_given_expiry=found.endless_tokens,
            changes=[
                RehearsedChange(
                    change=change.id,
                    release=change.release,
                    title=change.title,
                    replacement=change.replacement,
                    consumers=[RehearsedConsumer.of(use) for use in uses],
                )
                for change, uses in groupby(by_change, lambda use: use.change)
            ],
        )
