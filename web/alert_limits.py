"""How many deliveries an integration accepts in a time."""

from datetime import datetime

from limits import parse_many

from domain.alerts.integrations import IntegrationType
from domain.alerts.receivers import MetricsOverLimitError, OverLimitError, Receiver
from web.extensions import limiter


def check_rate(receiver: Receiver, limit: str, *, now: datetime) -> None:
    """Count a delivery; raise OverLimitError when there were more than the limit allows."""
    if not limit:
        return
    for item in parse_many(limit):
        counted = (item, "alerts", str(receiver.integration_id))
        if not limiter.limiter.hit(*counted):
            reset_at = limiter.limiter.get_window_stats(*counted).reset_time
            _refuse(receiver, limit, max(1, round(reset_at - now.timestamp())))


def _refuse(receiver: Receiver, limit: str, retry_after: int) -> None:
    kind = MetricsOverLimitError if receiver.type is IntegrationType.PROMETHEUS else OverLimitError
    message = f"This integration accepts {limit.replace('/', ' per ')}."
    raise kind(message, retry_after=retry_after)
