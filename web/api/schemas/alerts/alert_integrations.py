"""Alert integrations of a project, and their keys."""

from typing import Annotated, Literal

from pydantic import Field

from domain.alerts.formats.registry import INTEGRATION_TYPE_NAMES
from domain.alerts.integrations.integrations import (
    LONGEST_SILENCE,
    SHORTEST_SILENCE,
    IntegrationDetails,
    IntegrationEdit,
    IntegrationView,
)
from domain.alerts.integrations.keys import LONGEST_GRACE, IntegrationKeys
from domain.projects.views import ProjectView
from domain.types.base import (
    Body,
    GivenTime,
    KeysetQuery,
    PagedQuery,
    Resource,
    SecretResource,
    Text,
    Time,
    one_of,
)

_Silence = Annotated[int, Field(ge=SHORTEST_SILENCE, le=LONGEST_SILENCE)]
_SILENCE = "So long after their last report open alerts are resolved; null for never."
IntegrationTypeName = Annotated[str, one_of(*INTEGRATION_TYPE_NAMES)]
#: What became of a delivery.
Outcome = Annotated[str, one_of("accepted", "refused")]


class IntegrationQuery(PagedQuery):
    """The integrations of a project, the oldest first."""

    sort: Literal["asc", "desc"] = "asc"


class NewIntegrationBody(Body):
    """A new integration."""

    type: Literal[*INTEGRATION_TYPE_NAMES]  # type: ignore[valid-type]
    name: Text = Field(
        default="", description="The first one of a type may leave it out: it is named by its type."
    )
    active: bool = True
    api_url: Text | None = Field(
        default=None,
        description="Of `external`, the URL of the on-call tool. Of `prometheus`, the base URL of "
        "its API; deprecated, since it is stored and never called.",
    )
    resolve_after_minutes: _Silence | None = Field(default=None, description=_SILENCE)

    @property
    def details(self) -> IntegrationDetails:
        """The settings."""
        return IntegrationDetails(
            name=self.name,
            active=self.active,
            api_url=self.api_url,
            resolve_after_minutes=self.resolve_after_minutes,
        )


class IntegrationBody(Body):
    """Changes to an integration; omitted fields are kept."""

    name: Text | None = None
    active: bool | None = None
    api_url: Text | None = Field(default=None, description="Empty or null for none.")
    resolve_after_minutes: _Silence | None = Field(default=None, description=_SILENCE)

    @property
    def edit(self) -> IntegrationEdit:
        """The change."""
        is_url_given = "api_url" in self.model_fields_set
        is_silence_given = "resolve_after_minutes" in self.model_fields_set
        return IntegrationEdit(
            name=self.name,
            active=self.active,
            api_url=self.api_url or "" if is_url_given else None,
            resolve_after_minutes=(self.resolve_after_minutes or 0) if is_silence_given else None,
        )


class IntegrationSummary(Resource):
    """An integration in a list."""

    id: int
    name: str
    type: IntegrationTypeName
    active: bool
    url: str | None = Field(
        description="Where senders post. Null for a link to an on-call tool, and for those who "
        "may not change it."
    )
    last_delivery_at: Time | None
    last_outcome: Outcome | None = Field(description="Of the last delivery.")

    @classmethod
    def of(cls, view: IntegrationView, *, viewer: ProjectView) -> "IntegrationSummary":
        """Present an integration to somebody with the role that `viewer` has in its project."""
        return cls(
            id=view.id,
            name=view.name,
            type=view.type.name,
            active=view.active,
            url=_url(view) if viewer.can_integrate else None,
            last_delivery_at=view.last_delivery_at,
            last_outcome=view.last_outcome,
        )


class Integration(Resource):
    """An integration with its settings."""

    id: int
    name: str
    type: IntegrationTypeName
    active: bool
    url: str | None = Field(description="Where senders post. Null for a link to an on-call tool.")
    endpoint_identifier: str | None = Field(description="The last part of the URL.")
    api_url: str | None
    has_mapping: bool
    resolve_after_minutes: int | None = Field(description=_SILENCE)
    created_at: Time
    last_delivery_at: Time | None
    last_outcome: Outcome | None = Field(description="Of the last delivery.")

    @classmethod
    def of(cls, view: IntegrationView) -> "Integration":
        """Present an integration to a maintainer."""
        url = _url(view)
        return cls(
            id=view.id,
            name=view.name,
            type=view.type.name,
            active=view.active,
            url=url,
            endpoint_identifier=view.endpoint_identifier if url else None,
            api_url=view.api_url,
            has_mapping=view.has_mapping,
            resolve_after_minutes=view.resolve_after_minutes,
            created_at=view.created_at,
            last_delivery_at=view.last_delivery_at,
            last_outcome=view.last_outcome,
        )


class IntegrationWithKey(Integration, SecretResource):
    """A new integration with its key."""

    key: str | None = Field(description="Null for a link to an on-call tool.")

    @classmethod
    def with_key(cls, view: IntegrationView, key: str) -> "IntegrationWithKey":
        """Present a new integration."""
        found = Integration.of(view)
        return cls(**dict(found), key=key if found.url else None)


def _url(view: IntegrationView) -> str | None:
    return view.url if view.receives else None


class KeyRotationBody(Body):
    """A new key that replaces the current one."""

    previous_key_expires_at: GivenTime | None = Field(
        default=None,
        description=f"Until then, at most {LONGEST_GRACE.days} days from now, the old key is "
        "accepted as well; without it not at all.",
    )
    key_id: Text = Field(
        default="",
        description="The id of the key to replace: 409 if somebody else has replaced it already.",
    )


class KeyQuery(KeysetQuery):
    """The keys that an integration accepts: at most two."""


class IntegrationKey(Resource):
    """A key that an integration accepts."""

    id: str = Field(description="Identifies the key without revealing it.")
    state: Annotated[str, one_of("current", "previous")]
    last_used_at: Time | None
    expires_at: Time | None = Field(description="Null for the current one.")

    @classmethod
    def all_of(cls, keys: IntegrationKeys) -> "list[IntegrationKey]":
        """Present the keys, the current one first."""
        found = [_current(keys)]
        if keys.previous is not None:
            found.append(
                cls(
                    id=keys.previous.key_id,
                    state="previous",
                    last_used_at=keys.previous.last_used_at,
                    expires_at=keys.previous.expires_at,
                )
            )
        return found


def _current(keys: IntegrationKeys) -> IntegrationKey:
    return IntegrationKey(
        id=keys.key_id, state="current", last_used_at=keys.last_used_at, expires_at=None
    )


class IntegrationCredentials(SecretResource):
    """The settings to configure a sender with."""

    url: str
    key: str = Field(description="The current key.")
    keys: tuple[IntegrationKey, ...] = Field(description="All keys that are accepted.")

    @classmethod
    def of(cls, view: IntegrationView, keys: IntegrationKeys) -> "IntegrationCredentials":
        """Present the credentials of an integration."""
        return cls(url=view.url, key=keys.clear, keys=tuple(IntegrationKey.all_of(keys)))
