"""Tests of `/admin/member_roles`, the pages of custom roles."""

import pytest

from domain.access.roles import Role
from tests.support.accounts.administration import find_last_event, get_administrator_browser
from tests.support.accounts.people import alice, make_project, make_user, unique
from tests.support.accounts.team import give_role
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, forms_in, submit

pytestmark = pytest.mark.one_database("postgres")


def test_a_custom_role_is_created_assigned_and_deleted(gatebell: LiveGatebell) -> None:
    browser, name = get_administrator_browser(gatebell), unique("On-call guest")
    page = browser.get(f"{gatebell.url}/admin/member_roles/new")
    form = form_with(page, "name")
    refused = submit(browser, page, form, name=name, base="GUEST")
    assert refused.status_code == 422
    assert "Choose at least one permission." in refused.text
    made: dict[str, str | list[str] | None] = {
        "name": name,
        "base": "GUEST",
        "permissions": ["admin_alerts"],
    }
    assert submit(browser, page, form, **made).status_code == 302
    assert submit(browser, page, form, **made).status_code == 422
    event = find_last_event(gatebell, name)
    assert event.details["permissions"] == "admin_alerts, read_alerts"
    listed = browser.get(f"{gatebell.url}/admin/member_roles")
    row = listed.text.partition(name)[2].partition("</tr>")[0]
    assert "See alerts, handle alerts" in row
    number = event.details["member_role_id"]
    guest, project = make_user(gatebell), make_project(gatebell, alice(gatebell))
    give_role(gatebell, project, guest, Role.GUEST)
    gatebell.cli("members", "give-member-role", project, guest.username, str(number))
    deletion = form_to(listed, f"/{number}/delete")
    kept = submit(browser, listed, deletion)
    assert kept.status_code == 422
    assert "Members still have the role" in kept.text
    gatebell.cli("members", "give-member-role", project, guest.username, "0")
    assert submit(browser, listed, deletion).status_code == 302
    after = browser.get(f"{gatebell.url}/admin/member_roles")
    assert not [each for each in forms_in(after.text) if each.action.endswith(f"/{number}/delete")]
