from datetime import UTC, datetime

import pytest

from domain.alerts.formats import prometheus
from domain.alerts.parsing.incoming_alert import (
    AlertState,
)
from tests.domain.alerts.parsing.metrics import (
    item,
    read,
    webhook,
)
from tests.domain.alerts.parsing.strategies import NOW


@pytest.mark.spec("I12")
@pytest.mark.parametrize("written", ["yesterday", "0001-01-01T00:00:00Z", True, {"at": 5}])
def test_an_invalid_start_becomes_the_current_time_with_a_warning(written: object) -> None:
    alert = read(startsAt=written)
    assert alert.started_at == NOW
    assert alert.parse_warnings[0].startswith("startsAt could not be read")


@pytest.mark.spec("I15")
def test_the_status_of_the_item_resolves() -> None:
    alert = read(status="resolved", endsAt="2026-11-21T08:00:00Z")
    assert alert.state is AlertState.RECOVERY
    assert alert.ended_at == datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
    assert read(status="Resolved").state is AlertState.RECOVERY


@pytest.mark.spec("I15")
@pytest.mark.parametrize("end", [None, "", "0001-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "soon"])
def test_a_resolved_item_without_a_valid_end_ends_now(end: object) -> None:
    assert read(status="resolved", endsAt=end).ended_at == NOW


@pytest.mark.spec("I15")
@pytest.mark.parametrize("end", ["2026-11-21T08:00:00Z", NOW.isoformat()])
def test_a_past_end_resolves_for_any_status(end: str) -> None:
    alert = read(status="firing", endsAt=end)
    assert (alert.state, alert.ended_at) == (AlertState.RECOVERY, datetime.fromisoformat(end))


@pytest.mark.spec("I15")
@pytest.mark.parametrize("end", [None, "", "0001-01-01T00:00:00Z", "2026-11-22T12:00:01Z", "soon"])
def test_a_missing_or_future_end_does_not_resolve(end: object) -> None:
    alert = read(status="firing", endsAt=end)
    assert (alert.state, alert.ended_at) == (AlertState.FIRING, None)


@pytest.mark.spec("I15")
def test_the_status_of_the_group_does_not_resolve_an_item() -> None:
    (alert,) = prometheus.parse_webhook_items(webhook(item(), status="resolved"), now=NOW).alerts
    assert alert.state is AlertState.FIRING
