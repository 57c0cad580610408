"""The rate limit of deliveries to an integration."""

from flask import g
from werkzeug.exceptions import TooManyRequests

from domain.alerts.integration_type import IntegrationType
from domain.alerts.receiving.receivers import MetricsOverLimitError, OverLimitError, Receiver
from web.access.rate_limits import by_integration
from web.services import settings


def check_rate(receiver: Receiver) -> None:
    """Count a delivery; raise OverLimitError above ALERT_RATE_LIMIT."""
    g.integration_id = receiver.integration_id
    try:
        _count_delivery()
    except TooManyRequests:
        is_metrics = receiver.type is IntegrationType.PROMETHEUS
        kind = MetricsOverLimitError if is_metrics else OverLimitError
        rate = settings().alert_rate_limit.replace("/", " per ")
        message = f"This integration accepts {rate}."
        raise kind(message) from None


@by_integration
def _count_delivery() -> None:
    """Count it, which is all: the delivery itself is stored by the caller."""
