"""/api/v4/projects/:id/webhooks: outgoing webhooks of a project."""

from domain.database.paging import LARGEST_ID
from domain.webhooks import actions
from web.api.operations import Resources

AT = "/projects/<path:reference>/webhooks"
#: The converter refuses numbers that databases reject.
ONE = f"/<int(max={LARGEST_ID}):webhook_id>"

webhooks = Resources("webhooks", __name__, url_prefix=AT)
webhooks.bind("GET", "", actions.list_webhooks)
webhooks.bind("POST", "", actions.create_webhook)
webhooks.bind("GET", ONE, actions.show_webhook)
webhooks.bind("PUT", ONE, actions.change_webhook)
webhooks.bind("DELETE", ONE, actions.delete_webhook)
webhooks.bind("POST", f"{ONE}/rotate_secret", actions.rotate_secret)
webhooks.bind("POST", f"{ONE}/test", actions.send_test, status=200)
