"""/api/v4/projects/:id/notification_channels: where a project as a whole is told of alerts."""

from domain.contacts import actions
from domain.database.paging import LARGEST_ID
from web.api.operations import Resources

_ONE = f"/<int(max={LARGEST_ID}):channel_id>"

notification_channels = Resources(
    "notification_channels",
    __name__,
    url_prefix="/projects/<path:reference>/notification_channels",
)
notification_channels.bind("GET", "", actions.list_channels)
notification_channels.bind("POST", "", actions.create_channel)
notification_channels.bind("GET", _ONE, actions.show_channel)
notification_channels.bind("POST", f"{_ONE}/test", actions.send_channel_test, status=200)
notification_channels.bind("DELETE", _ONE, actions.delete_channel)
