"""Tests that users of the demonstration (`make demo`) can see its content."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from demo.cast import BACKUPS, DEMO_USERS, PAYMENTS, SHOP, SITE
from demo.folder import DatabaseNotEmptyError, DemoState, check_is_empty
from demo.furnish import fill_demo_database
from demo.telephones import receive_messages
from domain.core.clock import read_system_clock
from models import (
    Alert,
    Application,
    Delivery,
    DeviceAuthorization,
    Escalation,
    Heartbeat,
    Incident,
    PageMessage,
    WebhookDelivery,
)
from tests.support.service.commands import operate
from web.database.engine import open_engine
from web.settings.environment import Settings

_DEVELOPERS = {"Developer", "Maintainer", "Owner"}
_FOR_DEVELOPERS = (
    *(f"/{SHOP}/-/{page}" for page in ("alerts?status=all", "incidents?status=all", "incidents/1")),
    *(f"/{SHOP}/-/on_call{page}" for page in ("", "/schedules/1", "/policies", "/routes")),
    *(f"/{SHOP}/-/{page}" for page in ("silences", "maintenance_windows", "environments")),
    *(f"/{BACKUPS}/-/heartbeats", f"/{PAYMENTS}/-/alerts"),
)


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_the_demonstration_has_content_on_every_page(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    settings = replace(
        settings,
        outgoing_private_addresses="127.0.0.0/8",
        outgoing_contact_hosts="127.0.0.1:1-65535",
        dynamic_client_registration=True,
        alert_rate_limit="1000000/minute",
        api_rate_limit="1000000/minute",
        heartbeat_rate_limit="1000000/minute",
        heartbeat_address_rate_limit="1000000/minute",
    )
    check_is_empty(settings)
    with receive_messages(port=0, is_loud=False) as port:
        end = read_system_clock()
        memory = fill_demo_database(settings, telephones=port, end=end, say=lambda _: None, days=1)
    memory.write_state(settings)
    assert DemoState.read_stored_state(settings) == memory
    with pytest.raises(DatabaseNotEmptyError, match="9 accounts and 2 groups"):
        check_is_empty(settings)
    assert_data_is_varied(settings)
    app = make_app(settings)
    for person in DEMO_USERS:
        browser = signed_in(app, person.username, memory.password)
        for path in ("/", f"/{SHOP}" if person.role else "/admin", f"/{SITE}"):
            assert browser.get(path).status_code == 200, (person, path)
        if person.role in _DEVELOPERS:
            for path in _FOR_DEVELOPERS:
                assert browser.get(path).status_code == 200, (person, path)


def assert_data_is_varied(settings: Settings) -> None:
    """Check that the data contains many states, such as open and closed alerts."""
    engine = open_engine(settings)
    with Session(engine) as session:

        def words(column: object) -> set[object]:
            return set(session.scalars(select(column)))  # type: ignore[call-overload]

        assert words(Alert.status) >= {"triggered", "acknowledged", "resolved"}
        assert len(words(Alert.severity)) >= 4
        assert {"acknowledged", "resolved"} <= words(Incident.status)
        assert words(Delivery.status_code) >= {200, 400, 401, 415, 422}
        assert words(PageMessage.outcome) >= {"sent"}
        assert words(WebhookDelivery.state) == {"delivered"}
        assert {"held", "no_policy", "stopped"} <= words(Escalation.state)
        devices = select(
            func.count(DeviceAuthorization.redeemed_at), func.count(DeviceAuthorization.denied_at)
        )
        assert session.execute(devices).one() == (1, 1)
        applications = session.scalars(select(Application)).all()
        itself = [each.name for each in applications if each.client_metadata is not None]
        assert itself == ["Terminal notes"]
        assert words(Heartbeat.state) >= {"up", "new"}
        newest = session.scalar(select(func.max(Alert.created_at)))
        assert newest is not None
        assert newest <= read_system_clock()
    engine.dispose()


def signed_in(app: Flask, name: str, password: str) -> FlaskClient:
    browser = app.test_client()
    token = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/users/sign_in").text)
    form = {"login": name, "password": password, "csrf_token": token[1] if token else ""}
    assert browser.post("/users/sign_in", data=form).status_code == 302
    return browser


def test_a_database_in_use_is_not_changed(app: Flask, settings: Settings) -> None:
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    with pytest.raises(
        DatabaseNotEmptyError, match="1 account, and the demonstration wants one of its"
    ):
        check_is_empty(settings)
