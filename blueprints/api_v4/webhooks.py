"""/api/v4/projects/:id/webhooks: outgoing webhooks of a project, and what they sent."""

from domain.database.paging import LARGEST_ID
from domain.webhooks import actions
from web.api.operations import Resources

_AT = "/projects/<path:reference>/webhooks"
#: The converters refuse numbers that databases reject.
_ONE = f"/<int(max={LARGEST_ID}):webhook_id>"
_ONE_DELIVERY = f"/<int(max={LARGEST_ID}):delivery_id>"

webhooks = Resources("webhooks", __name__, url_prefix=_AT)
webhooks.bind_usual(actions, _ONE)
webhooks.bind("POST", f"{_ONE}/rotate_secret", actions.rotate_secret)
webhooks.bind("POST", f"{_ONE}/test", actions.send_test, status=200)

# They are created and changed as webhooks, since no event of GitLab's hooks happens here.
hooks = Resources("hooks", __name__, url_prefix="/projects/<path:reference>/hooks")
hooks.bind_usual(actions, _ONE)

webhook_deliveries = Resources("webhook_deliveries", __name__, url_prefix=f"{_AT}{_ONE}/deliveries")
webhook_deliveries.bind_usual(actions, _ONE_DELIVERY)
webhook_deliveries.bind("POST", f"{_ONE_DELIVERY}/send_again", actions.send_again, status=202)
