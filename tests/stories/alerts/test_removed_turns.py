"""Emails to users who are removed from a rotation."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from flask import Flask

from models import Mail
from tests.stories.alerts.test_on_call import mails
from tests.support.on_call.nights import PROJECT, Nights, berlin
from tests.support.service.commands import operate
from web.settings.environment import Settings


@pytest.mark.both_databases
def test_a_user_removed_from_a_rotation_gets_an_email_with_author_and_start(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    app = make_app(replace(settings, mail_url="smtp://127.0.0.1:1"))
    night = Nights(app, berlin("2026-11-23 10:00"))
    night.create("weekly alice,bob,carol mon 09:00")
    (shown,) = night.call("olga", "GET")["rotations"]
    first = {name: shown[name] for name in ("name", "type", "weekdays", "handover_time")}

    def put(*rotations: dict[str, object], by: str = "olga") -> list[Mail]:
        before = len(mails(night))
        night.call(by, "PUT", json={"rotations": [{**first, **each} for each in rotations]})
        night.now += timedelta(minutes=1)
        return mails(night)[before:]

    (told,) = put({"users": ["alice", "bob"]})
    assert (told.recipient, told.subject) == (
        "carol@people.example",
        "You were removed from a rotation: Primary of acme/shop",
    )
    said = " ".join(told.text.split())
    assert "olga removed you from the rotation Rotation 1." in said
    assert "You have no shifts there from Mon 2026-11-23 10:00 on." in said
    assert f"http://localhost/acme/shop/-/on_call/schedules/{night.schedule}\n" in told.text
    # Users who stay in the rotation get no email about another order, time or name.
    assert put({"users": ["bob", "alice"], "handover_time": "10:00"}) == []
    assert put({"users": ["bob", "alice"], "name": "Days"}) == []
    assert put({"users": ["bob", "alice"]}, {"name": "Nights", "users": ["alice"]}) == []
    # She is still in the other rotation.
    (told,) = put({"users": ["bob"]}, {"name": "Nights", "users": ["alice"]})
    assert told.recipient == "alice@people.example"
    assert "from the rotation Rotation 1. " in " ".join(told.text.split())
    # Another user replaces Bob, and the other rotation ends.
    told_both = put({"users": ["olga"]})
    assert sorted(each.recipient for each in told_both) == [
        "alice@people.example",
        "bob@people.example",
    ]
    # Olga removed herself, so she gets no email.
    assert put({"users": ["carol"]}) == []
    operate(
        app, *("schedules", "change", PROJECT, "Primary"), *("--rotation", "weekly bob mon 09:00")
    )
    told = mails(night)[-1]
    assert told.recipient == "carol@people.example"
    assert "Somebody removed you from the rotation Rotation 1." in " ".join(told.text.split())
