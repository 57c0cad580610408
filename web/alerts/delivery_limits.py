"""The rate limit of deliveries to an integration."""

from datetime import datetime

from domain.alerts.integration_type import IntegrationType
from domain.alerts.receiving.receivers import MetricsOverLimitError, OverLimitError, Receiver
from web.http.rate_limits import take


def check_rate(receiver: Receiver, limit: str, *, now: datetime) -> None:
    """Count a delivery; raise OverLimitError if the limit is exceeded. No limit if it is empty."""
    if not limit:
        return
    status = take(limit, "alerts", str(receiver.integration_id), now=now)
    if status.is_over:
        _refuse(receiver, limit, status.retry_after(now))


def _refuse(receiver: Receiver, limit: str, retry_after: int) -> None:
    kind = MetricsOverLimitError if receiver.type is IntegrationType.PROMETHEUS else OverLimitError
    message = f"This integration accepts {limit.replace('/', ' per ')}."
    raise kind(message, retry_after=retry_after)
