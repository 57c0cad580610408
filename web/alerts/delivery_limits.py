"""The rate limit of deliveries to an integration."""

from http import HTTPStatus

from flask import g
from werkzeug.exceptions import TooManyRequests

from domain.alerts.receiving.receivers import BusyError, OverLimitError, Receiver
from web.access.rate_limits import by_integration
from web.services import settings

_ERRORS = {
    HTTPStatus.TOO_MANY_REQUESTS: OverLimitError,
    HTTPStatus.SERVICE_UNAVAILABLE: BusyError,
}


def check_rate(receiver: Receiver) -> None:
    """Count a delivery; raise OverLimitError above ALERT_RATE_LIMIT."""
    g.integration_id = str(receiver.integration_id)
    try:
        by_integration.count()
    except TooManyRequests:
        rate = settings().alert_rate_limit.replace("/", " per ")
        message = f"This integration accepts {rate}."
        raise _ERRORS[receiver.format.retry_status](message) from None
