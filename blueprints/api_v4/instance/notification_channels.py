"""/api/v4/projects/:id/notification_channels: where a project as a whole is told of alerts."""

from flask import Blueprint

from domain.database.paging import LARGEST_ID
from domain.notifications.contacts import Owner, get_contact, list_contacts
from domain.projects.views import ProjectView
from web.api.operations import Found, operation
from web.api.schemas.accounts.contacts import Contact, ContactBody, ContactQuery, ContactTest
from web.extensions import db
from web.notifications import contacts as shared

notification_channels = Blueprint(
    "notification_channels",
    __name__,
    url_prefix="/projects/<path:reference>/notification_channels",
)
_ONE = f"/<int(max={LARGEST_ID}):channel_id>"


@notification_channels.get("")
@operation("notification_channels.index", query=ContactQuery, returns=Contact)
def index(project: ProjectView, query: ContactQuery) -> Found[Contact]:
    """List the channels of a project."""
    found = list_contacts(_owner(project), session=db.session())
    shown = found[query.offset : query.offset + query.size]
    return Found(items=[Contact.of(each) for each in shown], total=len(found))


@notification_channels.post("")
@operation("notification_channels.create", body=ContactBody, returns=Contact, status=201)
def create(project: ProjectView, body: ContactBody) -> Contact:
    """Create a channel."""
    address = shared.checked_address(body.type, body.address)
    return Contact.of(shared.create(_owner(project), address, body.label, is_confirmed=True))


@notification_channels.get(_ONE)
@operation("notification_channels.show", returns=Contact)
def show(project: ProjectView, channel_id: int) -> Contact:
    """Show a channel and whether messages reach it."""
    return Contact.of(get_contact(channel_id, _owner(project), session=db.session()))


@notification_channels.post(f"{_ONE}/test")
@operation("notification_channels.send_test", returns=ContactTest)
def send_test(project: ProjectView, channel_id: int) -> ContactTest:
    """Send a test message, and return the result."""
    return ContactTest.of(shared.send_test(channel_id, _owner(project)))


@notification_channels.delete(_ONE)
@operation("notification_channels.delete")
def delete(project: ProjectView, channel_id: int) -> None:
    """Delete a channel with its waiting messages."""
    shared.delete(channel_id, _owner(project))


def _owner(project: ProjectView) -> Owner:
    return Owner(project_id=project.id)
