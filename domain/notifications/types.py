"""Contacts as they are shown."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from domain.notifications.contact_types.registry import CONTACT_TYPE_NAMES
from domain.types.base import Resource, Time, one_of


class ContactState(StrEnum):
    """The state of a contact; the value is shown."""

    UNCONFIRMED = "unconfirmed"
    READY = "ready"
    FAILING = "failing"


class Contact(Resource):
    """A contact of a user, or a channel of a project."""

    id: int
    type: Annotated[str, one_of(*CONTACT_TYPE_NAMES)]
    label: str
    address: str = Field(description="Without its secrets.")
    state: ContactState
    created_at: Time
    confirmed_at: Time | None
    last_sent_at: Time | None
    failing_since: Time | None
    last_error: str | None
    user_id: int | None = Field(exclude=True)
    project_id: int | None = Field(exclude=True)
    #: Failed attempts since the last success.
    tries: int = Field(exclude=True)
    #: Whether it stands for the e-mail address of the account, for want of another contact.
    is_account_email: bool = Field(exclude=True)
