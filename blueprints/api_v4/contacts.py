"""/api/v4/user/contacts and /projects/:id/notification_channels: where messages go."""

from domain.contacts import actions
from domain.database.paging import LARGEST_ID
from web.api.operations import Resources

_ONE = f"/<int(max={LARGEST_ID}):contact_id>"
_ONE_CHANNEL = f"/<int(max={LARGEST_ID}):channel_id>"

contacts = Resources("contacts", __name__, url_prefix="/user/contacts")
contacts.bind_usual(actions, _ONE)
contacts.bind("POST", f"{_ONE}/confirm", actions.confirm_contact, status=200)
contacts.bind("POST", f"{_ONE}/send_code", actions.send_code, status=200)
contacts.bind("POST", f"{_ONE}/test", actions.send_contact_test, status=200)
contacts.bind("GET", "/preferences", actions.show_preferences)
contacts.bind("PUT", "/preferences", actions.change_preferences)

notification_channels = Resources(
    "notification_channels",
    __name__,
    url_prefix="/projects/<path:reference>/notification_channels",
)
notification_channels.bind_usual(actions, _ONE_CHANNEL)
notification_channels.bind("POST", f"{_ONE_CHANNEL}/test", actions.send_channel_test, status=200)
