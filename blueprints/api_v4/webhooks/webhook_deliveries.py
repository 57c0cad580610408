"""/api/v4/projects/:id/webhooks/:webhook_id/deliveries: what was sent to a webhook."""

from blueprints.api_v4.webhooks.webhooks import AT, ONE
from domain.database.paging import LARGEST_ID
from domain.webhooks import actions
from web.api.operations import Resources

_ONE_DELIVERY = f"/<int(max={LARGEST_ID}):delivery_id>"

webhook_deliveries = Resources("webhook_deliveries", __name__, url_prefix=f"{AT}{ONE}/deliveries")
webhook_deliveries.bind("GET", "", actions.list_deliveries)
webhook_deliveries.bind("GET", _ONE_DELIVERY, actions.show_delivery)
webhook_deliveries.bind("POST", f"{_ONE_DELIVERY}/send_again", actions.send_again, status=202)
