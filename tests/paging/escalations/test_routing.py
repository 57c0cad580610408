"""Tests of routes, of which the first match chooses the policy of an alert."""

import pytest

from tests.support.notifications.escalations import Escalated

pytestmark = pytest.mark.one_database("sqlite")
CRITICAL, LOW = 0, 3


def paged(shop: Escalated, **fields: object) -> list[str]:
    """Return the users who are paged for an alert with these fields."""
    alert = shop.alert(**fields)  # type: ignore[arg-type]
    shop.follow()
    return [name for name, _, _ in shop.paged(alert)]


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J1")
def test_the_first_matching_route_decides(shop: Escalated) -> None:
    night = shop.policy("0s user:alice", name="Night")
    shop.policy("0s user:bob", name="Day", is_default=True)
    shop.route(None, "Tests", environments=["test-*"])
    shop.route(night, "Urgent", severities=["critical"], services=["web"])
    assert paged(shop, severity=CRITICAL, service="web") == ["alice"]
    assert paged(shop, severity=CRITICAL, service="db") == ["bob"]
    assert paged(shop, severity=LOW, service="web") == ["bob"]
    assert paged(shop, severity=CRITICAL, service="web", environment="test-7") == []


@pytest.mark.long
def test_without_a_default_policy_unmatched_alerts_page_no_user(shop: Escalated) -> None:
    night = shop.policy("0s user:alice", is_default=False)
    shop.route(night, labels='title=~"Disk.*"')
    assert paged(shop, title="Disk full") == ["alice"]
    assert paged(shop, title="Load") == []


@pytest.mark.long
def test_an_alert_that_becomes_urgent_is_routed_again(shop: Escalated) -> None:
    night = shop.policy("0s user:alice", is_default=False)
    shop.route(night, severities=["critical"])
    alert = shop.alert(severity=LOW)
    shop.follow()
    assert shop.paged(alert) == []
    shop.raise_severity(alert, CRITICAL)
    shop.follow()
    assert shop.paged(alert) == [("alice", 1, 1)]
    shop.raise_severity(alert, CRITICAL)
    shop.follow()
    assert shop.paged(alert) == [("alice", 1, 1)]


def test_alerts_older_than_the_first_policy_page_no_user(shop: Escalated) -> None:
    alert = shop.alert()
    shop.policy("0s user:alice")
    shop.follow()
    assert shop.paged(alert) == []
