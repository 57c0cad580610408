"""Contacts of people and channels of projects: where messages go, without the sending.

The address is stored encrypted, since it may hold credentials; pages show it without them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from domain.accounts.users import checked_email
from domain.clock import written
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.keyring import Keyring, UndecipherableError
from domain.notifications.outcomes import contact_is_going
from models import Contact

#: Each one gets every page, so more would only be a burden.
MOST_CONTACTS = 20
_LONGEST_LABEL = 100
_LONGEST_SHOWN = 255
EMAIL_LANE = "email"


class ContactType(StrEnum):
    """By what a message is sent; the value is stored and shown."""

    EMAIL = "email"
    APPRISE = "apprise"


class ContactState(StrEnum):
    """The state of a contact; the value is shown."""

    UNCONFIRMED = "unconfirmed"
    READY = "ready"
    FAILING = "failing"


@dataclass(frozen=True, kw_only=True)
class Address:
    """A checked address, and what may be shown of it."""

    type: ContactType
    clear: str = field(repr=False)
    shown: str
    #: Contacts with the same one share a service.
    lane: str


@dataclass(frozen=True, kw_only=True)
class Owner:
    """The person, or the project, that a contact belongs to."""

    user_id: int | None = None
    project_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class ContactView:
    """A contact as pages, the API and commands show it."""

    id: int
    user_id: int | None
    project_id: int | None
    type: ContactType
    label: str
    shown_address: str
    created_at: datetime
    confirmed_at: datetime | None
    #: Failed attempts since the last success.
    tries: int
    failing_since: datetime | None
    last_error: str | None
    last_sent_at: datetime | None
    #: Whether it stands for the e-mail address of the account, for want of another contact.
    is_account_email: bool

    @property
    def state(self) -> ContactState:
        """What is shown first of it."""
        if self.confirmed_at is None:
            return ContactState.UNCONFIRMED
        return ContactState.FAILING if self.failing_since else ContactState.READY

    def as_json(self) -> dict[str, object]:
        """Return what commands print: no secret is in it."""
        return {
            "id": self.id,
            "type": self.type.value,
            "label": self.label,
            "address": self.shown_address,
            "state": self.state.value,
            "created_at": written(self.created_at),
            "confirmed_at": written(self.confirmed_at) if self.confirmed_at else None,
        }


def view_of(row: Contact) -> ContactView:
    """Return the view of a row."""
    return ContactView(
        id=row.id,
        user_id=row.user_id,
        project_id=row.project_id,
        type=ContactType(row.type),
        label=row.label,
        shown_address=row.shown_address,
        created_at=row.created_at,
        confirmed_at=row.confirmed_at,
        tries=row.tries,
        failing_since=row.failing_since,
        last_error=row.last_error,
        last_sent_at=row.last_sent_at,
        is_account_email=row.address_ciphertext is None,
    )


def email_address(text: str) -> Address:
    """Return a checked e-mail address, or raise InvalidError."""
    try:
        address = checked_email(text)
    except InvalidError as error:
        raise InvalidError(str(error), field="address") from error
    return Address(type=ContactType.EMAIL, clear=address, shown=address, lane=EMAIL_LANE)


@dataclass(frozen=True, kw_only=True)
class NewContact:
    """A contact to create; the label may be empty."""

    owner: Owner
    address: Address
    label: str = ""
    #: Whether it needs no code: a channel, or a contact that an administrator made.
    is_confirmed: bool = False


def create_contact(
    new: NewContact, *, session: Session, keyring: Keyring, now: datetime
) -> ContactView:
    """Store a contact; raise InvalidError, or ConflictError if the owner has it already."""
    label = " ".join(new.label.split()) or new.address.shown[:_LONGEST_LABEL]
    if len(label) > _LONGEST_LABEL:
        message = f"A label can have at most {_LONGEST_LABEL} characters."
        raise InvalidError(message, field="label")
    others = _rows_of(new.owner, session=session)
    if len(others) >= MOST_CONTACTS:
        message = f"There can be at most {MOST_CONTACTS}. Delete one first."
        raise InvalidError(message, field="address")
    if any(_has_address(row, new.address, keyring) for row in others):
        message = "There is already one with this address."
        raise ConflictError(message, field="address")
    row = Contact(
        user_id=new.owner.user_id,
        project_id=new.owner.project_id,
        type=new.address.type.value,
        label=label,
        address_ciphertext=keyring.encrypt(new.address.clear),
        shown_address=new.address.shown[:_LONGEST_SHOWN],
        lane=new.address.lane,
        created_at=now,
        confirmed_at=now if new.is_confirmed else None,
        code_tries=0,
        claim=0,
        tries=0,
    )
    session.add(row)
    session.flush()  # for its id
    return view_of(row)


def _has_address(row: Contact, address: Address, keyring: Keyring) -> bool:
    if row.type != address.type.value or row.address_ciphertext is None:
        return False
    try:
        return keyring.decrypt(row.address_ciphertext) == address.clear
    except UndecipherableError:
        return False


def list_contacts(owner: Owner, *, session: Session) -> Sequence[ContactView]:
    """Return the contacts of a person, or the channels of a project, the oldest first."""
    return [view_of(row) for row in _rows_of(owner, session=session)]


def has_contacts(contact_type: ContactType, *, session: Session) -> bool:
    """Return whether anybody has a contact of a type."""
    found = select(Contact.id).where(Contact.type == contact_type.value).limit(1)
    return session.scalar(found) is not None


def get_contact(contact_id: int, owner: Owner, *, session: Session) -> ContactView:
    """Return a contact of an owner, or raise NotFoundError."""
    return view_of(get_row(contact_id, owner, session=session))


def delete_contact(
    contact_id: int, owner: Owner, *, session: Session, now: datetime
) -> ContactView:
    """Delete a contact with what waits for it, and return what it was."""
    row = get_row(contact_id, owner, session=session)
    if row.address_ciphertext is None:
        message = "Your account's e-mail address cannot be deleted. Add another contact instead."
        raise InvalidError(message, field="contact")
    view = view_of(row)
    contact_is_going(row, session=session, now=now)
    return view


def get_row(contact_id: int, owner: Owner, *, session: Session) -> Contact:
    """Return the row of a contact of an owner, or raise NotFoundError."""
    row = session.scalar(select(Contact).where(Contact.id == contact_id, *_is_of(owner)))
    if row is None:
        message = "Channel not found." if owner.user_id is None else "Contact not found."
        raise NotFoundError(message)
    return row


def _rows_of(owner: Owner, *, session: Session) -> Sequence[Contact]:
    return session.scalars(select(Contact).where(*_is_of(owner)).order_by(Contact.id)).all()


def _is_of(owner: Owner) -> tuple[ColumnElement[bool], ...]:
    if owner.user_id is not None:
        return (Contact.user_id == owner.user_id,)
    return (Contact.project_id == owner.project_id,)
