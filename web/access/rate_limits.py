"""Rate limits for requests, and their response headers.

Flask-Limiter counts the requests. The API is limited by user, a few OAuth endpoints by IP address,
and receivers by integration. Web pages can be limited by user. A disabled limit counts nothing and
adds no headers.
"""

from collections.abc import Callable
from functools import wraps
from math import ceil
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast

from flask import Flask, Response, after_this_request, g
from flask_login import current_user
from limits import RateLimitItem, parse_many
from werkzeug.exceptions import TooManyRequests

from domain.core.clock import read_system_clock
from web.http.extensions import get_client_address, get_rate_limit_key, limiter
from web.rate_limit_storage import HostStorage, build_storage_configuration
from web.services import get_services, get_settings
from web.settings.environment import Settings

View = TypeVar("View", bound=Callable[..., Any])

_KEY_PREFIX = "gatebell"
#: Value of `g.counted` if the library stores the counts. Otherwise, `g.counted` contains the
#: limits.
_COUNTED_BY_LIBRARY = "by the library"


class RateLimit:
    """Rate limit that counts requests, and responds with 429 if a rate is exceeded.

    Use a limit as a view decorator, or call `count_request`. For a shared store, the limit uses
    Flask-Limiter's own decorator, which counts in memory while the store is unavailable. Counts on
    this host need no such fallback, so they use the library's storage directly. The library's
    decorator takes about a third of the time of a token check
    (docs/adr/0033-count-rate-limits-with-flask-limiter.md).
    """

    def __init__(
        self, rates: Callable[[Settings], str], scope: str, key: Callable[[], str]
    ) -> None:
        """Create a limit with one count per key for all views with the same scope.

        `rates` returns the value of a setting. An empty value means no limit.
        """
        self._rates, self._scope, self._key = rates, scope, key

        def do_nothing() -> None: ...

        # The library distinguishes decorated functions by their names.
        do_nothing.__name__ = f"count_{scope}"
        decorate = limiter.shared_limit(lambda: rates(get_settings()), scope, key_func=key)
        self._count_in_store = decorate(do_nothing)

    def __call__(self, view: View) -> View:
        """Return a view that counts each request before the original view runs."""

        @wraps(view)
        def limited_view(*args: Any, **kwargs: Any) -> Any:
            self.count_request()
            return view(*args, **kwargs)

        return cast("View", limited_view)

    def count_request(self) -> None:
        """Count this request.

        Raise TooManyRequests (429) if a rate is exceeded.
        """
        storage = limiter.storage
        if not isinstance(storage, HostStorage):
            try:
                self._count_in_store()
            finally:
                _store_rate_statuses(_read_limiter_statuses())
            return
        rates = get_services().live_settings.get_derived_value(self._parse_rates)
        if not rates:
            return
        key, counted = self._key(), []
        for rate in rates:
            named = rate.key_for(_KEY_PREFIX, key, self._scope)
            observed, ends = storage.increment_with_expiry(named, rate.get_expiry())
            left = max(0, rate.amount - observed)
            counted.append(_RateStatus(observed > rate.amount, rate.amount, observed, left, ends))
        _store_rate_statuses(counted)
        if any(each.is_exceeded for each in counted):
            raise TooManyRequests

    def _parse_rates(self, current: Settings) -> list[RateLimitItem]:
        rates = self._rates(current)
        return parse_many(rates) if rates else []


def _store_rate_statuses(counted: "list[_RateStatus]") -> None:
    """Append rate statuses to the statuses that are stored for the response headers."""
    before = g.get("counted")
    if before is None:
        after_this_request(_add_rate_limit_headers)
    elif before is _COUNTED_BY_LIBRARY:
        before = _read_limiter_statuses()
    g.counted = [*(before or ()), *counted]


#: Limit by IP address, shared by all OAuth views with this decorator.
limit_oauth_by_address = RateLimit(attrgetter("oauth_rate_limit"), "oauth", get_client_address)
#: Limit by IP address for client registrations.
limit_registrations_by_address = RateLimit(
    attrgetter("client_registration_rate_limit"), "registrations", get_client_address
)
#: Limit for the API, by user, or by IP address if there is no valid token.
limit_api_by_user = RateLimit(attrgetter("api_rate_limit"), "api", get_rate_limit_key)
#: Limit for Git, by user, or by IP address if there is no valid token.
limit_git_by_user = RateLimit(attrgetter("git_rate_limit"), "git", get_rate_limit_key)
#: Limit by integration. The caller sets `g.integration_id`.
limit_alerts_by_integration = RateLimit(
    attrgetter("alert_rate_limit"), "alerts", lambda: str(g.integration_id)
)
#: Limit by IP address for events in PagerDuty's format.
limit_events_by_address = RateLimit(
    attrgetter("events_address_rate_limit"), "events_addresses", get_client_address
)
#: Limit by IP address for heartbeat pings.
limit_pings_by_address = RateLimit(
    attrgetter("heartbeat_address_rate_limit"), "ping_addresses", get_client_address
)
#: Limit by heartbeat. The caller sets `g.heartbeat`.
limit_pings_by_heartbeat = RateLimit(
    attrgetter("heartbeat_rate_limit"), "pings", lambda: str(g.heartbeat)
)


def build_limiter_configuration(settings_at_start: Settings) -> dict[str, Any]:
    """Return the configuration of Flask-Limiter."""
    return {
        **build_storage_configuration(
            settings_at_start.ratelimit_storage_uri, settings_at_start.trusted_ca_file
        ),
        "RATELIMIT_KEY_PREFIX": _KEY_PREFIX,
        # Count all rates of a limit, even after one of them is exceeded.
        "RATELIMIT_FAIL_ON_FIRST_BREACH": False,
        # The library checks this limit before it calls the view of a web page.
        "RATELIMIT_APPLICATION": lambda: get_settings().page_rate_limit,
    }


def start_limiter(app: Flask) -> Callable[[], Any]:
    """Start Flask-Limiter, and return its check that runs before the views of web pages.

    All other limits are checked by their decorators. A check takes a tenth of the time of a token
    check, even if there are no limits. The library's other hooks are not used, because they add the
    library's own headers and count responses.
    """
    limiter.init_app(app)
    check_application_limits = app.before_request_funcs[None].pop()
    app.after_request_funcs[None].pop()
    app.teardown_request_funcs[None].pop()
    return check_application_limits


def store_rate_limited_user() -> None:
    """Store the ID of the signed-in user, by which requests for web pages are counted.

    The database is queried here, because the library treats every error during its checks as an
    error of the store.
    """
    if not get_settings().page_rate_limit:
        return
    g.counted = _COUNTED_BY_LIBRARY
    after_this_request(_add_rate_limit_headers)
    if current_user.is_authenticated:
        g.limited_user_id = current_user.id


class _RateStatus(NamedTuple):
    """State of a rate after a request was counted."""

    is_exceeded: bool
    limit: int
    #: Number of requests in this window, including this request and rejected requests.
    observed: int
    #: Number of requests left in this window.
    remaining: int
    #: Start of the next window in seconds since the epoch.
    reset_at: int


def _add_rate_limit_headers(response: Response) -> Response:
    """Add the headers of the rate that is closest to being exceeded.

    The library's own headers do not include RateLimit-Observed, and they add Retry-After to every
    response. They show the shortest rate even if a longer rate is nearly exceeded.
    """
    statuses = _read_limiter_statuses() if g.counted is _COUNTED_BY_LIBRARY else g.counted
    if not statuses:
        return response
    told = statuses[0]
    if len(statuses) > 1:
        told = min(
            statuses, key=lambda each: (not each.is_exceeded, each.remaining, -each.reset_at)
        )
    headers = response.headers
    headers.add("RateLimit-Limit", str(told.limit))
    headers.add("RateLimit-Observed", str(told.observed))
    headers.add("RateLimit-Remaining", str(told.remaining))
    headers.add("RateLimit-Reset", str(told.reset_at))
    if told.is_exceeded:
        headers["Retry-After"] = str(max(1, told.reset_at - int(read_system_clock().timestamp())))
    return response


def _read_limiter_statuses() -> list[_RateStatus]:
    try:
        found = []
        for each in limiter.current_limits:
            most, observed = each.limit.amount, each.limiter.storage.get(each.key)
            ends = ceil(each.limiter.storage.get_expiry(each.key))
            found.append(_RateStatus(each.breached, most, observed, max(0, most - observed), ends))
    except Exception:  # noqa: BLE001 - each store raises its own errors
        return []
    return found
