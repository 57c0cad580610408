"""Invitations by e-mail to become a member."""

from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from domain.access.roles import Role
from domain.projects.invitations import InvitationView
from domain.types.base import (
    Body,
    GitLabQuery,
    GivenDay,
    OffsetQuery,
    Resource,
    Search,
    Time,
    Words,
)

#: So many addresses can be invited by one request.
_MOST_ADDRESSES = 20


class InvitationQuery(OffsetQuery, GitLabQuery):
    """Which of the pending invitations a list has."""

    #: Of the e-mail address.
    query: Search = ""
    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class InvitationBody(Body):
    """Invitations to one address or several."""

    email: Annotated[Words, Field(min_length=1, max_length=_MOST_ADDRESSES)]
    access_level: Role
    #: Of the membership: the first day on which the role is not given any more.
    expires_at: GivenDay | None = None


class InvitationChangeBody(Body):
    """New values of an invitation."""

    access_level: Role | None = None
    expires_at: GivenDay | None = None


class InvitationResult(Resource):
    """Whether every address was invited; if not, why, by address."""

    status: Literal["success", "error"]
    message: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)


class Invitation(Resource):
    """A pending invitation."""

    id: int
    invite_email: str
    access_level: int
    created_at: Time
    #: Of the membership.
    expires_at: date | None
    created_by_name: str

    @classmethod
    def of(cls, view: InvitationView) -> "Invitation":
        """Present an invitation."""
        return cls(
            id=view.id,
            invite_email=view.email,
            access_level=int(view.role),
            created_at=view.created_at,
            expires_at=view.expires_at,
            created_by_name=view.invited_by,
        )
