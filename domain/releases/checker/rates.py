"""Finds callers above the rates that a release switches on, by the times of their requests."""

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from domain.releases.changes import Call, Kind
from domain.releases.checker.findings import Found
from domain.releases.checker.requests import Request
from domain.releases.checker.routes import API, api_path, concerns_of
from domain.releases.matching import Concern

#: Requests in a time, by the path of the schedule: the rates of an instance that sets no others.
RATES = {
    f"{API}/users": (300, timedelta(minutes=1)),
    f"{API}/users/:id": (300, timedelta(minutes=1)),
    f"{API}/projects": (2_000, timedelta(minutes=10)),
    f"{API}/projects/:id": (400, timedelta(minutes=1)),
    f"{API}/groups": (200, timedelta(minutes=1)),
    f"{API}/groups/:id": (400, timedelta(minutes=1)),
    f"{API}/groups/:id/projects": (600, timedelta(minutes=1)),
}


class Rates:
    """Counts requests by caller and operation."""

    def __init__(self) -> None:
        """Begin with none."""
        self._seen: dict[tuple[str, str], deque[datetime]] = {}

    def count(self, request: Request, caller: str, moment: datetime | None) -> Iterator[Found]:
        """Count a request; yield the limit that it is above."""
        path = api_path(request.parts.path)
        if moment is None or path is None or request.method not in {"GET", "HEAD"}:
            return
        for concern in concerns_of(path):
            if _is_limit(concern) and self._is_above(concern.call, caller, _in_utc(moment)):
                reason = f"More requests to {concern.call.path} in a row than the rate limit"
                yield Found(concern.change, request.line, reason)

    def _is_above(self, call: Call, caller: str, moment: datetime) -> bool:
        most, window = RATES[call.path]
        seen = self._seen.setdefault((caller, call.path), deque(maxlen=most))
        is_above = len(seen) == most and timedelta() <= moment - seen[0] < window
        seen.append(moment)
        if is_above:
            seen.clear()  # said once for a run of requests
        return is_above


def _is_limit(concern: Concern) -> bool:
    call = concern.call
    is_of_requests = call.when is None and not call.fields
    return concern.change.kind is Kind.LIMIT_APPLIED and is_of_requests and call.path in RATES


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
