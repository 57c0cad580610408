"""/api/v4/user/contacts: where and when the user is told of alerts."""

from flask import Blueprint

from domain.database.paging import LARGEST_ID
from domain.notifications.contacts import Owner, get_contact, list_contacts
from domain.notifications.recipients import PagingPreferences, preferences_of
from domain.projects.views import Viewer
from web.api.operations import Found, operation
from web.api.schemas.accounts.contacts import (
    Contact,
    ContactBody,
    ContactCodeBody,
    ContactPreferences,
    ContactPreferencesBody,
    ContactQuery,
    ContactTest,
)
from web.extensions import db
from web.notifications import contacts as shared

contacts = Blueprint("contacts", __name__, url_prefix="/user/contacts")
_ONE = f"/<int(max={LARGEST_ID}):contact_id>"


@contacts.get("")
@operation("contacts.index", query=ContactQuery, returns=Contact)
def index(viewer: Viewer, query: ContactQuery) -> Found[Contact]:
    """List your contacts."""
    found = list_contacts(_owner(viewer), session=db.session())
    shown = found[query.offset : query.offset + query.size]
    return Found(items=[Contact.of(each) for each in shown], total=len(found))


@contacts.post("")
@operation("contacts.create", body=ContactBody, returns=Contact, status=201)
def create(viewer: Viewer, body: ContactBody) -> Contact:
    """Create a contact and send it a confirmation code."""
    address = shared.checked_address(body.type, body.address)
    made = shared.create(_owner(viewer), address, body.label, is_confirmed=False)
    return Contact.of(made)


@contacts.get(_ONE)
@operation("contacts.show", returns=Contact)
def show(viewer: Viewer, contact_id: int) -> Contact:
    """Show a contact and whether messages reach it."""
    return Contact.of(get_contact(contact_id, _owner(viewer), session=db.session()))


@contacts.post(f"{_ONE}/confirm")
@operation("contacts.confirm", body=ContactCodeBody, returns=Contact)
def confirm(viewer: Viewer, contact_id: int, body: ContactCodeBody) -> Contact:
    """Confirm a contact by the code that was sent to it."""
    shared.confirm(contact_id, body.code, _owner(viewer))
    return Contact.of(get_contact(contact_id, _owner(viewer), session=db.session()))


@contacts.post(f"{_ONE}/send_code")
@operation("contacts.send_code", returns=Contact)
def send_code(viewer: Viewer, contact_id: int) -> Contact:
    """Send a new code to a contact that is not confirmed."""
    shared.send_code(contact_id, _owner(viewer))
    return Contact.of(get_contact(contact_id, _owner(viewer), session=db.session()))


@contacts.post(f"{_ONE}/test")
@operation("contacts.send_test", returns=ContactTest)
def send_test(viewer: Viewer, contact_id: int) -> ContactTest:
    """Send a test message, and return the result."""
    return ContactTest.of(shared.send_test(contact_id, _owner(viewer)))


@contacts.delete(_ONE)
@operation("contacts.delete")
def delete(viewer: Viewer, contact_id: int) -> None:
    """Delete a contact with its waiting messages."""
    shared.delete(contact_id, _owner(viewer))


@contacts.get("/preferences")
@operation("contacts.preferences", returns=ContactPreferences)
def preferences(viewer: Viewer) -> ContactPreferences:
    """Show your quiet hours, and whether you get follow-ups."""
    return ContactPreferences.of(_preferences_of(viewer))


@contacts.put("/preferences")
@operation("contacts.change_preferences", body=ContactPreferencesBody, returns=ContactPreferences)
def change_preferences(viewer: Viewer, body: ContactPreferencesBody) -> ContactPreferences:
    """Change your quiet hours, and whether you get follow-ups."""
    present = _preferences_of(viewer)
    given = body.model_fields_set
    hours = body.quiet_hours.hours if body.quiet_hours is not None else None
    follows = body.follow_ups
    wanted = PagingPreferences(
        quiet_hours=hours if "quiet_hours" in given else present.quiet_hours,
        wants_follow_ups=present.wants_follow_ups if follows is None else follows,
    )
    shared.change_preferences(_owner(viewer).user_id or 0, wanted)
    return ContactPreferences.of(wanted)


def _preferences_of(viewer: Viewer) -> PagingPreferences:
    return preferences_of(_owner(viewer).user_id or 0, session=db.session())


def _owner(viewer: Viewer) -> Owner:
    return Owner(user_id=viewer.user_id)
