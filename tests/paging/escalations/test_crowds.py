"""Tests that pages to many users delay neither each other nor alert intake."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from domain.alerts.listing.filters import SEVERITIES
from models import Page
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.escalations import Escalated


@contextmanager
def _statements() -> Iterator[list[str]]:
    """Collect the statements of sessions; one statement for many rows counts once."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


def _page_people(shop: Escalated, number: int, *, severity: str) -> int:
    """Page new users in two steps for one alert, and return the number of statements."""
    people = [shop.person(f"{severity}-{each}").username for each in range(number)]
    halves = people[: number // 2], people[number // 2 :]
    steps = [" ".join(("0s", *(f"user:{each}" for each in some))) for some in halves]
    policy = shop.policy(*steps, name=severity, is_default=False)
    shop.route(policy, severity, severities=[severity])
    alert = shop.alert(severity=[each.value for each in SEVERITIES].index(severity))
    with _statements() as sent:
        shop.follow()
    assert {name for name, _, _ in shop.paged(alert)} == {*people}
    return len(sent)


@pytest.mark.both_databases
def test_the_number_of_statements_does_not_grow_with_the_paged_users(shop: Escalated) -> None:
    # On SQLite these statements hold the lock that all writers need.
    few = _page_people(shop, 4, severity="critical")
    assert _page_people(shop, 40, severity="high") == few


def _send_pages(shop: Escalated, alerts: int, *, name: str) -> tuple[int, int]:
    """Page a new user about alerts, and silence all of them while mail is unavailable.

    Half of the alerts are silenced at the start, and the others after the first attempt. Returns
    the numbers of statements of the attempts before and after that.
    """
    person = shop.person(name)
    half = shop.alerts(alerts, title=f"{name} loud")
    ids = half + shop.alerts(alerts, title=name)
    shop.silence(f'title="{name}"', hours=1)
    shop.page(ids, person)
    shop.wait(seconds=2)
    with _statements() as first:
        shop.run(mail_url="smtp://127.0.0.1:1")
    shop.silence(f'title="{name} loud"', hours=1)
    shop.wait(seconds=20)
    with _statements() as second:
        shop.run()
    assert {row.held_by for row in shop.rows(Page) if row.alert_id in ids} == {"silence “deploy”"}
    shop.set_status(ids, "resolved")
    shop.wait(minutes=2)
    shop.run()
    return len(first), len(second)


@pytest.mark.both_databases
def test_all_pages_of_a_message_are_checked_together(shop: Escalated, mailbox: Mailbox) -> None:
    """Check batching, and the check before a message is sent after a failed attempt."""
    few = _send_pages(shop, 2, name="first")
    many = _send_pages(shop, 200, name="second")
    # For more than ten alerts, one more statement counts the alerts that are not named.
    assert many[0] <= few[0] + 2
    assert many[1] <= few[1] + 2
    assert mailbox.messages == []
