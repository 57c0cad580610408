"""Deliveries that people send from a page instead of a monitoring system."""

from domain.alerts.integrations.integrations import IntegrationView
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.clock import start_stopwatch
from web.access.marks import get_current_user
from web.services import now


def page_delivery(
    integration: IntegrationView, body: bytes, *, is_test: bool = False
) -> InboundDelivery:
    """Return a delivery of the signed-in user, read with the integration's present mapping."""
    return InboundDelivery(
        project_id=integration.project_id,
        integration_id=integration.id,
        format=integration.type.value,
        sender=get_current_user().username[:64],
        body=body,
        size=len(body),
        received_at=now(),
        stopwatch=start_stopwatch(),
        mapping=integration.mapping,
        is_test=is_test,
    )
