"""Forms of on-call schedules: more rows without scripts, and overrides in local time."""

import re
from datetime import date, timedelta

import pytest

from domain.access.roles import Role
from domain.audit.events import EventKind
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import make_project, make_user, now, signed_in, unique
from tests.support.accounts.team import give_role
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("J1")]


@pytest.mark.long
def test_a_rotation_with_several_users_and_hours_is_created_and_edited(
    gatebell: LiveGatebell,
) -> None:
    owner = make_user(gatebell)
    project = make_project(gatebell, owner)
    made = gatebell.cli("schedules", "create", project, "--name", "Primary", "--time-zone", "UTC")
    at = f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}"
    browser = signed_in(gatebell, owner)
    page = browser.get(f"{at}/rotations/new")
    begun = form_to(page, "/rotations/new")
    # The form of the first rotation proposes its creator.
    assert begun.value("users-0") == owner.username
    times: dict[str, str | list[str]] = {
        "unit": "hours",
        "restrictions-0-weekdays": ["mon", "tue"],
        "restrictions-0-start_time": "09:00",
    }
    more = submit(browser, page, begun, do="add_rows", **times)
    assert 'name="users-3"' in more.text
    assert 'name="restrictions-1-start_time"' in more.text
    half = submit(browser, more, form_to(more, "/rotations/new"))
    assert half.status_code == 422
    assert "Enter both times, or neither for whole days." in half.text
    filled: dict[str, str | list[str]] = {
        "restrictions-0-end_time": "17:00",
        "restrictions-1-weekdays": ["sun"],
    }
    answer = submit(browser, half, form_to(half, "/rotations/new"), **filled)
    assert answer.status_code == 302
    (rotation,) = gatebell.cli("schedules", "show", project, "Primary")["rotations"]
    assert [each["username"] for each in rotation["users"]] == [owner.username]
    assert rotation["restrictions"] == [
        {"start_time": "09:00", "end_time": "17:00", "weekdays": ["mon", "tue"]},
        {"start_time": "00:00", "end_time": "00:00", "weekdays": ["sun"]},
    ]
    # The form of the rotation shows the same values, and saving them changes nothing.
    edit = browser.get(f"{at}/rotations/{rotation['id']}/edit")
    submit(browser, edit, form_to(edit, "/edit"))
    assert gatebell.cli("schedules", "show", project, "Primary")["rotations"] == [rotation]


def test_an_additional_override_uses_local_time_during_a_clock_change(
    gatebell: LiveGatebell,
) -> None:
    owner, helper = make_user(gatebell), make_user(gatebell, name="bob")
    project = make_project(gatebell, owner)
    give_role(gatebell, project, helper, Role.DEVELOPER)
    name = unique("Primary")
    made = gatebell.cli(
        *("schedules", "create", project, "--name", name, "--time-zone", "Europe/Berlin"),
        *("--rotation", f"daily {owner.username} 09:00"),
    )
    at = f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}"
    last = date(now().year + 1, 10, 31)
    sunday = last - timedelta(days=(last.weekday() + 1) % 7)
    browser = signed_in(gatebell, helper)
    page = browser.get(f"{at}/overrides/new")
    answer = submit(
        browser,
        page,
        form_to(page, "/overrides/new"),
        user=helper.username,
        instead_of="+",
        starts_at=f"{sunday}T01:00",
        ends_at=f"{sunday}T05:00",
    )
    assert answer.status_code == 302
    text = " ".join(re.sub("<[^>]+>", "", browser.get(f"{at}?day={sunday}").text).split())
    day = f"Sun {sunday.day} {sunday:%b %Y}"
    assert f"{helper.username} in addition {day} 01:00 to {day} 05:00" in text
    # The two weeks have an extra hour, and so does the helper's override.
    hours = f"{owner.username} 337 (99%), {helper.username} 5 (1%)."
    assert f"Hours on call in this period: {hours}" in text
    (event,) = [
        each
        for each in list_events_with_subject(gatebell, name)
        if each.kind == EventKind.ON_CALL_OVERRIDE_CHANGED
    ]
    assert (event.details["user"], event.details["in_addition"]) == (helper.username, True)
    assert "instead_of" not in event.details


def test_a_change_that_affects_a_swap_needs_a_confirmation(
    gatebell: LiveGatebell,
) -> None:
    owner, helper = make_user(gatebell), make_user(gatebell, name="bob")
    project = make_project(gatebell, owner)
    give_role(gatebell, project, helper, Role.DEVELOPER)
    made = gatebell.cli(
        *("schedules", "create", project, "--name", "Primary", "--time-zone", "UTC"),
        *("--rotation", f"daily {owner.username},{helper.username} 09:00"),
    )
    at = f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}"
    turns = gatebell.printed("schedules", "shifts", project, str(made["id"]))["shifts"]
    mine, theirs = (
        next(each for each in turns[1:] if each["users"][0]["username"] == name)
        for name in (owner.username, helper.username)
    )
    swaps = api_caller(
        gatebell,
        owner,
        f"/projects/{project.replace('/', '%2F')}/on_call/schedules/{made['id']}/swaps",
    )
    swap = {
        "user": owner.username,
        "starts_at": mine["starts_at"],
        "ends_at": mine["ends_at"],
        "other_user": helper.username,
        "other_starts_at": theirs["starts_at"],
        "other_ends_at": theirs["ends_at"],
    }
    swaps.done("POST", json=swap, status=201)
    browser = signed_in(gatebell, owner)
    edit_url = f"{at}/rotations/{made['rotations'][0]['id']}/edit"
    page = browser.get(edit_url)
    asked = submit(browser, page, form_to(page, "/edit"), handover_time="10:00")
    assert asked.status_code == 200
    moves = f"The swap of {owner.username} and {helper.username} moves"
    assert moves in asked.text
    assert gatebell.cli("schedules", "show", project, "Primary") == made
    saved = submit(browser, asked, form_to(asked, "/edit"))
    assert saved.status_code == 302
    (rotation,) = gatebell.cli("schedules", "show", project, "Primary")["rotations"]
    assert rotation["handover_time"] == "10:00"
    # The swap ends with its rotation.
    page = browser.get(at)
    asked = submit(browser, page, form_to(page, f"/rotations/{rotation['id']}/delete"))
    assert "ends, because its turns no longer exist." in asked.text
    assert gatebell.cli("schedules", "show", project, "Primary")["rotations"]
    submit(browser, asked, form_to(asked, "/delete"))
    assert gatebell.cli("schedules", "show", project, "Primary")["rotations"] == []
