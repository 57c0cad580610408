"""Rate limits and their response headers.

Limited are the API by user, a few OAuth endpoints by IP address and, if configured, pages.
Receivers are limited in `web/alerts/delivery_limits.py`. Other requests are not counted, and
responses have no headers while their limit is switched off.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial, wraps
from typing import Any, TypeVar, cast

from flask import Flask, Response, after_this_request, request
from flask_login import current_user
from limits import RateLimitItem, parse_many

from domain.errors import TooManyRequestsError
from domain.ip_addresses import client_prefix
from web.http.endpoints import page_blueprints
from web.services import now, services, settings

View = TypeVar("View", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class RateLimitStatus:
    """How much of a limit is used up, and when it begins anew."""

    limit: int
    #: Requests in this window, including this one and refused ones.
    observed: int
    #: Start of the next window in seconds since the epoch.
    reset_at: int

    @property
    def remaining(self) -> int:
        """Requests left in this window."""
        return max(0, self.limit - self.observed)

    @property
    def is_over(self) -> bool:
        """Whether this request exceeds the limit."""
        return self.observed > self.limit

    def retry_after(self, now: datetime) -> int:
        """Return the seconds until the next window, at least 1."""
        return max(1, self.reset_at - int(now.timestamp()))

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the rate limit headers."""
        return (
            ("RateLimit-Limit", str(self.limit)),
            ("RateLimit-Observed", str(self.observed)),
            ("RateLimit-Remaining", str(self.remaining)),
            ("RateLimit-Reset", str(self.reset_at)),
        )


def take(limit: str, *subject: str, now: datetime) -> RateLimitStatus:
    """Count a request and return the status of its limit; the response gets it as headers.

    `limit` is a non-empty setting such as `600/minute` or `10/second;600/hour`; of several rates
    the one with the fewest requests left counts. Windows are aligned with the clock and not with
    the first request, so that all hosts agree on them without a query.
    """
    statuses = [_count(rate, subject, now) for rate in _rates(limit)]
    tightest = min(statuses, key=lambda status: (status.remaining, -status.reset_at))
    if any(status.is_over for status in statuses):
        over = [status for status in statuses if status.is_over]
        tightest = max(over, key=lambda status: status.reset_at)
    after_this_request(partial(_add_headers, tightest))
    return tightest


@lru_cache(maxsize=64)
def _rates(limit: str) -> tuple[RateLimitItem, ...]:
    return tuple(parse_many(limit))


def _count(rate: RateLimitItem, subject: tuple[str, ...], now: datetime) -> RateLimitStatus:
    seconds = rate.get_expiry()
    window = int(now.timestamp()) // seconds
    key = "/".join(("gatebell", *subject, str(seconds), str(window)))
    observed = services().counters.add(key, seconds=seconds)
    return RateLimitStatus(limit=rate.amount, observed=observed, reset_at=(window + 1) * seconds)


def _add_headers(status: RateLimitStatus, response: Response) -> Response:
    headers = response.headers
    is_told = "RateLimit-Limit" in headers  # of another limit: the last word counts
    for name, value in status.headers():
        if is_told:
            headers[name] = value
        else:
            headers.add(name, value)
    return response


def _check(limit: str, *subject: str) -> None:
    """Count a request, if there is a limit; raise TooManyRequestsError above it."""
    if not limit:
        return
    moment = now()
    status = take(limit, *subject, now=moment)
    if status.is_over:
        raise TooManyRequestsError(retry_after=status.retry_after(moment))


def check_api_rate(user_id: int | None) -> None:
    """Count a request to the API: for the token's user, or for the IP address without one."""
    who = _address() if user_id is None else f"user-{user_id}"
    _check(settings().api_rate_limit, "api", who)


def limit_registrations() -> None:
    """Limit client registrations from one IP address."""
    _check(settings().client_registration_rate_limit, "registrations", _address())


def limited_by_address(view: View) -> View:
    """Limit the requests of one IP address to all views with this mark together."""

    @wraps(view)
    def limited(*args: Any, **kwargs: Any) -> Any:
        _check(settings().oauth_rate_limit, "oauth", _address())
        return view(*args, **kwargs)

    return cast("View", limited)


def limit_pages(app: Flask) -> None:
    """Limit requests for pages."""
    for name in page_blueprints(app):
        app.before_request_funcs.setdefault(name, []).insert(0, _check_page)


def _check_page() -> None:
    limit = settings().page_rate_limit
    if limit:
        is_known = current_user.is_authenticated
        _check(limit, "pages", f"user-{current_user.id}" if is_known else _address())


def _address() -> str:
    """Return the client's IP address as a subject; only trusted proxies can set it."""
    return client_prefix(request.remote_addr or "")
