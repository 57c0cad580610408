"""Pages to many people: they hold up neither each other nor those who send alerts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from domain.alerts.listing.filters import SEVERITIES
from tests.support.notifications.escalations import Escalated


@contextmanager
def _statements() -> Iterator[list[str]]:
    """Collect what sessions send to the database; many rows of one statement count once."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


def _page_people(shop: Escalated, number: int, *, severity: str) -> int:
    """Page new people by two steps for one alert; return how many statements that takes."""
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
def test_pages_to_many_people_take_as_many_statements_as_those_to_a_few(shop: Escalated) -> None:
    # On SQLite they hold the lock of all who write.
    few = _page_people(shop, 4, severity="critical")
    assert _page_people(shop, 40, severity="high") == few
