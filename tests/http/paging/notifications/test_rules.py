"""Notification rules on pages, in the API and on the command line."""

import re
from typing import Any

import pytest

from models import AuditEvent
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import Person, database_of, make_user, open_browser
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = [pytest.mark.spec("J1"), pytest.mark.one_database("sqlite")]
PAGE = "/-/user_settings/contacts"


def contact(gatebell: LiveGatebell, person: Person, label: str) -> int:
    """Create a confirmed contact for a user, as the operator does."""
    address = f"{label.lower()}.{person.username}@pager.example"
    given = ("--type", "email", "--address", address, "--label", label)
    number: int = gatebell.cli("contacts", "create", person.username, *given)["id"]
    return number


def test_rules_are_created_described_and_deleted_on_the_page(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    phone, mail = contact(gatebell, alice, "Phone"), contact(gatebell, alice, "E-mail")
    browser = open_browser(gatebell, alice)
    page = browser.get(f"{gatebell.url}{PAGE}")
    assert "Every page goes to all your contacts immediately." in page.text
    for number, minutes in ((mail, "2"), (phone, "0")):
        form = form_with(page, "delay_minutes")
        sent = {"alerts": "critical", "contact_id": str(number), "delay_minutes": minutes}
        assert submit(browser, page, form, **sent).status_code == 302
        page = browser.get(page.url)
    assert "Critical alerts: Phone immediately, then E-mail after 2 minutes." in page.text
    assert "Other alerts: no rule, so all contacts are notified immediately." in page.text
    form = form_with(page, "delay_minutes")
    for wrong, words in (
        ({"delay_minutes": "61"}, "from 0 to 60"),
        ({"only": "at night"}, "“at night” must be a period such as mon-fri"),
        ({"alerts": "critical", "contact_id": str(mail), "delay_minutes": "2"}, "identical rule"),
    ):
        answer = submit(browser, page, form, **wrong)
        assert (answer.status_code, words in answer.text) == (422, True), words
    (first, *_) = re.findall(r'href="([^"]+/contacts/rules/\d+)"', page.text)
    edit = browser.get(f"{gatebell.url}{first}")
    form = form_with(edit, "delay_minutes")
    same = {"contact_id": str(phone), "delay_minutes": "0"}
    answer = submit(browser, edit, form, **same)
    assert (answer.status_code, "identical rule" in answer.text) == (422, True)
    assert "Phone immediately, then E-mail after 2 minutes." in browser.get(page.url).text
    changed = {"delay_minutes": "5", "only": "mon-fri 9-17"}
    assert submit(browser, edit, form, **changed).status_code == 302
    page = browser.get(page.url)
    hours = "Mon, Tue, Wed, Thu, Fri 09:00 to 17:00"
    assert f"Critical alerts, {hours}: E-mail after 5 minutes." in page.text
    edit = browser.get(edit.url)
    assert submit(browser, edit, form_with(edit, "delay_minutes"), only="").status_code == 302
    page = browser.get(page.url)
    assert "Critical alerts: Phone immediately, then E-mail after 5 minutes." in page.text
    for number in re.findall(r"/contacts/(rules/\d+/delete)", page.text):
        assert submit(browser, page, form_to(page, number)).status_code == 302
    page = browser.get(page.url)
    assert "Every page goes to all your contacts immediately." in page.text


@pytest.mark.long
def test_the_api_and_the_command_line_have_the_same_rules(gatebell: LiveGatebell) -> None:
    alice, bob = make_user(gatebell), make_user(gatebell, name="bob")
    phone = contact(gatebell, alice, "Phone")
    call = api_caller(gatebell, alice, "/user/contacts/rules")
    body = {"contact_id": phone, "alerts": "other", "delay_minutes": 5, "only": "sat,sun 8:70-9:00"}
    assert "must be a time of day" in call.refused("POST", json=body)
    made = call.done("POST", status=201, json={**body, "only": "mon-fri 09:00-17:00"})
    hours = {
        "start_time": "09:00",
        "end_time": "17:00",
        "weekdays": ["mon", "tue", "wed", "thu", "fri"],
    }
    sentence = "Other alerts, Mon, Tue, Wed, Thu, Fri 09:00 to 17:00: Phone after 5 minutes."
    assert (made["only"], made["sentence"]) == (hours, sentence)
    assert call.done("GET") == [made] == [call.done("GET", f"/{made['id']}")]
    assert call.done("GET", "/summary") == {
        "sentences": [sentence],
        "gaps": [
            "Critical alerts: no rule, so all contacts are notified immediately.",
            (
                "Other alerts, Mon, Tue, Wed, Thu 17:00 to 09:00; Fri 17:00 to Mon 09:00: "
                "no rule, so all contacts are notified immediately."
            ),
            (
                "Other alerts, Mon, Tue, Wed, Thu, Fri 09:00 to 17:00: no contact is notified in "
                "the first minute, so the next step of the escalation may run first."
            ),
        ],
    }
    rules = ("contact-rules", "create", alice.username)
    same = gatebell.cli(*rules, "--contact", str(phone), "--only", "22:00-06:00")
    assert same["sentence"] == "All alerts, every day 22:00 to 06:00: Phone immediately."
    assert gatebell.cli("contact-rules", "list", alice.username)["total"] == 2
    change = ("contact-rules", "change", alice.username, str(same["id"]))
    same = gatebell.cli(*change, "--alerts", "critical", "--at-any-time")
    assert same["sentence"] == "Critical alerts: Phone immediately."
    at = f"/{same['id']}"
    moved = call.done("PUT", at, json={"delay_minutes": 3})
    assert moved == {
        **same,
        "delay_minutes": 3,
        "sentence": "Critical alerts: Phone after 3 minutes.",
    }
    assert call.done("PUT", at, json=moved) == moved
    for wrong, words in (
        ({"delay_minutes": 61}, "must be at most 60"),
        ({"only": "at night"}, "must be"),
        ({"only": {**hours, "weekdays": [{}]}}, "`only.weekdays.0` must be one of mon"),
        ({"contact_id": 0}, "contact"),
    ):
        assert words in call.refused("PUT", at, json=wrong)
    twice = {**hours, "weekdays": [*hours["weekdays"], "mon"]}
    taken = {"alerts": "other", "delay_minutes": 5, "only": twice}
    assert "identical rule already" in call.refused("PUT", at, json=taken)
    gatebell.cli("contact-rules", "delete", alice.username, str(same["id"]))
    theirs = api_caller(gatebell, bob, "/user/contacts/rules")
    assert theirs.done("GET") == []
    theirs.refused("DELETE", f"/{made['id']}", status=404)
    theirs.refused("PUT", f"/{made['id']}", status=404, json={"alerts": "all"})
    assert "Contact not found." in theirs.refused("POST", json={"contact_id": phone})
    unconfirmed = {"type": "email", "address": "new@pager.example"}
    user = api_caller(gatebell, bob, "/user/contacts")
    number = user.done("POST", status=201, json=unconfirmed)["id"]
    assert "Confirm the contact first." in theirs.refused("POST", json={"contact_id": number})
    assert call.done("PUT", f"/{made['id']}", json={"alerts": "other"}) == made
    assert "Contact not found." in call.refused(
        "PUT", f"/{made['id']}", json={"contact_id": number}
    )
    assert _export(gatebell, alice) == [{**body, "only": _stored(hours)}]
    # Deletion of a contact deletes its rules.
    api_caller(gatebell, alice, f"/user/contacts/{phone}").done("DELETE", status=204)
    assert call.done("GET") == []
    with database_of(gatebell) as session:
        rows = session.query(AuditEvent).filter_by(user_id=_id(gatebell, alice)).all()
        kinds = [row.kind for row in rows if row.kind.startswith("contact_rule")]
    # A request without a change writes no event.
    did = ("created", "created", "changed", "changed", "removed")
    assert kinds == [f"contact_rule.{each}" for each in did]


def _id(gatebell: LiveGatebell, person: Person) -> int:
    number: int = gatebell.cli("users", "show", person.username)["id"]
    return number


def _stored(hours: dict[str, Any]) -> dict[str, Any]:
    return {"start": 540, "end": 1020, "weekdays": list(range(len(hours["weekdays"])))}


def _export(gatebell: LiveGatebell, person: Person) -> list[dict[str, Any]]:
    rows = gatebell.cli("users", "export", person.username)["contact_rules"]
    return [{name: each for name, each in row.items() if name != "created_at"} for row in rows]
