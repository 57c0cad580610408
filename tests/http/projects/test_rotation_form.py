"""The form of a rotation: people, days and times to choose, and more rows without a script."""

import pytest

from tests.support.accounts.people import make_project, make_user, signed_in
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("J1")]


def test_a_rotation_of_several_people_and_times_is_put_together_and_changed(
    gatebell: LiveGatebell,
) -> None:
    owner = make_user(gatebell)
    project = make_project(gatebell, owner)
    made = gatebell.cli("schedules", "create", project, "--name", "Primary", "--time-zone", "UTC")
    at = f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}"
    browser = signed_in(gatebell, owner)
    page = browser.get(f"{at}/rotations/new")
    begun = form_to(page, "/rotations/new")
    # Whoever adds the first rotation most likely begins it.
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
    assert "Enter both times, or none for whole days." in half.text
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
    # The form of the rotation shows the same, and saved as it is it changes nothing.
    edit = browser.get(f"{at}/rotations/{rotation['id']}/edit")
    submit(browser, edit, form_to(edit, "/edit"))
    assert gatebell.cli("schedules", "show", project, "Primary")["rotations"] == [rotation]
