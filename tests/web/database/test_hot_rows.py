"""Tests of values that all alerts of a project would write: their numbers and daily counts."""

from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import delete, func, select, text

from domain.alerts.listing.daily_counts import count_alerts_by_day
from models import ALERT_DAY_ADDITIONS, Alert, AlertDay, Project
from tests.support.alerts.senders import JSON, item, webhook
from tests.support.service.commands import operate
from web.extensions import db
from web.jobs.retention import update_daily_counts
from web.settings.environment import Settings


def integration_of(app: Flask, kind: str, name: str) -> dict[str, Any]:
    return operate(app, "integrations", "create", "acme/shop", "--type", kind, "--name", name)


def project(app: Flask) -> None:
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")


def post(app: Flask, integration: dict[str, Any], body: bytes) -> list[int]:
    answer = app.test_client().post(
        integration["url"].removeprefix("http://localhost"),
        data=body,
        headers={"Authorization": f"Bearer {integration['key']}", "Content-Type": JSON},
    )
    assert answer.status_code == 200, answer.text
    return [each["iid"] for each in answer.get_json()]


def opened_today(app: Flask) -> int:
    with app.app_context():
        days = count_alerts_by_day(1, datetime.now(UTC).date(), session=db.session())
    return sum(day.total for day in days[-2:])  # The day can change during the test.


@pytest.mark.long
def test_alerts_are_counted_before_and_after_the_daily_aggregation(
    app: Flask, settings: Settings
) -> None:
    project(app)
    http = integration_of(app, "http", "one by one")
    for number in range(3):
        post(app, http, f'{{"title": "alert {number}"}}'.encode())
    post(app, integration_of(app, "prometheus", "many"), webhook(item("a"), item("b")))
    assert opened_today(app) == 5
    for _ in range(2):
        update_daily_counts(settings)
        assert opened_today(app) == 5
        with app.app_context():
            waiting = select(func.count()).select_from(ALERT_DAY_ADDITIONS)
            assert db.session.scalar(waiting) == 0
            assert db.session.scalar(select(func.sum(AlertDay.alerts))) == 5


@pytest.mark.long
def test_alert_numbers_are_consecutive_across_integrations(app: Flask) -> None:
    project(app)
    http = integration_of(app, "http", "one by one")
    many = integration_of(app, "prometheus", "many")
    numbers = post(app, http, b'{"title": "first"}')
    numbers += post(app, many, webhook(*(item(f"a{number}") for number in range(4))))
    numbers += post(app, http, b'{"title": "last"}')
    numbers += post(app, integration_of(app, "http", "a third"), b'{"title": "other"}')
    assert numbers == [1, 2, 3, 4, 5, 6, 7]
    assert post(app, http, b'{"title": "first"}') == [1]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_deleted_project_has_no_number_sequence_left(app: Flask) -> None:
    project(app)
    post(app, integration_of(app, "http", "one by one"), b'{"title": "first"}')
    is_there = text("SELECT to_regclass('alert_iids_1') IS NOT NULL")
    with app.app_context():
        assert db.session.scalar(is_there)
        db.session.execute(delete(Project))
        assert db.session.scalar(select(func.count(Alert.id))) == 0
        assert not db.session.scalar(is_there)


@pytest.mark.long
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_counting_an_event_does_not_move_the_alert_to_another_page(app: Flask) -> None:
    project(app)
    many = integration_of(app, "prometheus", "many")
    items = [item(f"a{number}") for number in range(200)]
    post(app, many, webhook(*items))
    # Then no index needs an update.
    pages = select(Alert.iid, text("(ctid::text::point)[0]")).order_by(Alert.iid)
    with app.app_context():
        before = db.session.execute(pages).all()
    assert len({page for _, page in before}) > 1
    post(app, many, webhook(*items[:3]))
    post(app, many, webhook(items[5]))
    with app.app_context():
        assert db.session.execute(pages).all() == before
        assert db.session.scalar(select(func.sum(Alert.events))) == 204
