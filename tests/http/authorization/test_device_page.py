"""Tests of `/oauth/device`: entering codes, deciding, and QR codes for phones."""

import re
from datetime import timedelta
from typing import Any

import pytest
import requests
from sqlalchemy import delete, update

from models import Application, DeviceAuthorization
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    now,
    open_browser,
    signed_in,
)
from tests.support.oauth.device_wire import (
    approve,
    codes,
    enter_code,
    is_asking,
    poll,
    press_decision,
    television,
)
from tests.support.oauth.oauth_wire import assert_refused, phone_application
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, forms_in, submit
from tests.support.wire.page_text import words
from web.pages.qr_codes import build_qr_code

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.spec("C3")
@pytest.mark.rfc("rfc8628-3.3-a")
def test_a_visitor_signs_in_and_returns_with_the_code(
    gatebell: LiveGatebell, tv: ClientCredentials
) -> None:
    stranger = gatebell.http()
    device = codes(gatebell, tv)
    page = stranger.get(device["verification_uri_complete"])
    form = form_with(page, "password")
    person = alice(gatebell)
    answer = submit(stranger, page, form, login=person.username, password=person.password)
    page = stranger.get(gatebell.url + answer.headers["Location"])
    assert form_with(page, "user_code").value("user_code") == device["user_code"]


@pytest.mark.spec("C3")
@pytest.mark.rfc("rfc8628-6.1-a")
@pytest.mark.parametrize(
    "change",
    [
        str,
        str.lower,
        lambda code: code.replace("-", ""),
        lambda code: f"  {code.replace('-', ' ').lower()}  ",
        lambda code: "-".join(code.replace("-", "")),
    ],
)
def test_case_spaces_and_dashes_of_a_code_are_ignored(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session, change: Any
) -> None:
    assert is_asking(enter_code(browser, gatebell, change(codes(gatebell, tv)["user_code"])))


@pytest.mark.spec("C3")
@pytest.mark.rfc("rfc8628-3.3-b", "rfc8628-5.4-a")
def test_the_request_shows_application_owner_scopes_and_device(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv, scope="read_user read_api")
    page = enter_code(browser, gatebell, device["user_code"])
    text = words(page)
    assert "Telly & Co" in text
    assert "By Bob" in text
    assert "Read your profile" in text
    assert "Read access to the API" in text
    assert "Full access" not in text
    assert "127.0.0.1" in text
    assert "A Python program" in text
    assert "just now" in text
    assert "Make sure that you started this yourself" in text
    assert device["user_code"] in text
    assert f"@{alice(gatebell).username}" in text
    assert device["device_code"] not in page.text


def test_a_trusted_application_also_needs_approval(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    device = codes(gatebell, phone_application(gatebell))
    assert is_asking(enter_code(browser, gatebell, device["user_code"]))


def test_an_approval_is_not_remembered(gatebell: LiveGatebell, browser: requests.Session) -> None:
    client = make_application(gatebell, bob(gatebell))
    for _ in range(2):
        device = codes(gatebell, client, client_secret=client.secret)
        assert_refused(
            poll(gatebell, client, device["device_code"], client_secret=client.secret),
            "authorization_pending",
        )
        approve(browser, gatebell, device["user_code"])


@pytest.mark.rfc("rfc8628-3.3.1-a", "rfc8628-5.4-b")
def test_opening_the_url_with_the_code_decides_nothing(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv)
    page = browser.get(device["verification_uri_complete"])
    assert not is_asking(page)
    assert_refused(poll(gatebell, tv, device["device_code"]), "authorization_pending")
    assert is_asking(enter_code(signed_in(gatebell, bob(gatebell)), gatebell, device["user_code"]))


@pytest.mark.both_databases
@pytest.mark.rfc("rfc8628-5.5-a")
def test_a_code_that_was_opened_by_one_user_cannot_be_used_by_another(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv)
    page = enter_code(browser, gatebell, device["user_code"])
    other = signed_in(gatebell, bob(gatebell))
    refused = enter_code(other, gatebell, device["user_code"])
    assert refused.status_code == 422
    assert "This code was opened with another account" in words(refused)
    # Alice's sealed form is useless to him, too.
    own_page = enter_code(other, gatebell, codes(gatebell, tv)["user_code"])
    ticket = form_with(page, "decision").value("request")
    form = form_with(own_page, "decision")
    stolen = submit(other, own_page, form, request=ticket, decision="approve")
    assert (stolen.status_code, "device connected" in stolen.text.lower()) == (303, False)
    assert is_asking(enter_code(browser, gatebell, device["user_code"]))
    assert_refused(poll(gatebell, tv, device["device_code"]), "authorization_pending")


def test_another_session_of_the_user_must_enter_the_code_itself(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv)
    ticket = form_with(enter_code(browser, gatebell, device["user_code"]), "decision").value(
        "request"
    )
    phone = open_browser(gatebell, alice(gatebell))
    page = enter_code(phone, gatebell, codes(gatebell, tv)["user_code"])
    refused = submit(phone, page, form_with(page, "decision"), request=ticket, decision="approve")
    assert refused.status_code == 303
    assert_refused(poll(gatebell, tv, device["device_code"]), "authorization_pending")
    approve(phone, gatebell, device["user_code"])


@pytest.mark.parametrize("change", ["{}x", "x{}", "", "e30", "{}\x00", "é", None])
def test_a_changed_form_is_rejected(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session, change: str | None
) -> None:
    device = codes(gatebell, tv)
    page = enter_code(browser, gatebell, device["user_code"])
    form = form_with(page, "decision")
    forged = None if change is None else change.format(form.value("request"))
    assert submit(browser, page, form, request=forged, decision="approve").status_code == 409
    assert_refused(poll(gatebell, tv, device["device_code"]), "authorization_pending")


@pytest.mark.parametrize("decision", ["deny", "Approve", "", None, "approve\x00", "authorize"])
def test_only_the_button_approve_approves(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session, decision: str | None
) -> None:
    device = codes(gatebell, tv)
    press_decision(browser, enter_code(browser, gatebell, device["user_code"]), decision)
    assert_refused(poll(gatebell, tv, device["device_code"]), "access_denied")


@pytest.mark.both_databases
def test_approving_twice_is_allowed_but_denying_afterwards_is_not(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv)
    page = enter_code(browser, gatebell, device["user_code"])
    for _ in range(2):
        assert "Device connected" in words(press_decision(browser, page, "approve"))
    changed_mind = press_decision(browser, page, "deny")
    assert changed_mind.status_code == 409
    assert poll(gatebell, tv, device["device_code"]).status_code == 200
    assert enter_code(browser, gatebell, device["user_code"]).status_code == 422


def test_a_code_that_cannot_be_used_has_one_clear_reason(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    def reason(typed: str) -> str:
        answer = enter_code(browser, gatebell, typed)
        assert answer.status_code == 422
        return words(answer)

    assert "A code has eight letters." in reason("BCDF")
    assert "No device is waiting for this code." in reason("BCDF-GHJK")
    used, expired = codes(gatebell, tv), codes(gatebell, tv)
    approve(browser, gatebell, used["user_code"])
    assert "This code was already used." in reason(used["user_code"])
    with database_of(gatebell) as session:
        waiting = DeviceAuthorization.approved_at.is_(None)
        past = now() - timedelta(minutes=1)
        session.execute(update(DeviceAuthorization).where(waiting).values(expires_at=past))
    assert "This code has expired." in reason(expired["user_code"])


def test_a_request_for_removed_scopes_cannot_be_approved(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = make_application(gatebell, bob(gatebell), confidential=False)
    device = codes(gatebell, client, scope="read_api")
    page = enter_code(browser, gatebell, device["user_code"])
    with database_of(gatebell) as session:
        row = Application.uid == client.client_id
        session.execute(update(Application).where(row).values(scopes="read_user"))
    assert press_decision(browser, page, "approve").status_code == 409
    assert enter_code(browser, gatebell, device["user_code"]).status_code == 422


def test_a_signed_out_user_signs_in_and_enters_the_code_again(
    gatebell: LiveGatebell, tv: ClientCredentials
) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    page = enter_code(browser, gatebell, codes(gatebell, tv)["user_code"])
    form = form_with(page, "decision")
    away = form_to(page, "/users/sign_out")
    submit(browser, page, away)
    home = browser.get(f"{gatebell.url}/users/sign_in")
    token = form_with(home, "password").value("csrf_token")
    answer = submit(browser, page, form, csrf_token=token, decision="approve")
    assert answer.headers["Location"].startswith("/users/sign_in?next=/oauth/device?user_code")
    again = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/oauth/device/decision")
    assert again.url == f"{gatebell.url}/oauth/device"


@pytest.mark.both_databases
def test_another_account_can_take_over_a_code_after_the_sign_out(
    gatebell: LiveGatebell, tv: ClientCredentials
) -> None:
    browser, other = (open_browser(gatebell, each(gatebell)) for each in (alice, bob))
    device = codes(gatebell, tv)
    page = enter_code(browser, gatebell, device["user_code"])
    form = form_with(page, "decision")
    assert "opened with another account" in words(enter_code(other, gatebell, device["user_code"]))
    away = next(each for each in forms_in(page.text) if "user_code" in each.action)
    signed_out = submit(browser, page, away)
    assert device["user_code"] in signed_out.headers["Location"]
    approve(other, gatebell, device["user_code"])
    # The page of the first account can no longer decide.
    late = submit(open_browser(gatebell, alice(gatebell)), page, form, decision="deny")
    assert late.status_code == 303
    assert poll(gatebell, tv, device["device_code"]).status_code == 200


def test_a_removed_scope_is_neither_shown_nor_granted(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = make_application(gatebell, bob(gatebell), confidential=False)
    device = codes(gatebell, client, scope="read_api read_user")
    with database_of(gatebell) as session:
        row = Application.uid == client.client_id
        session.execute(update(Application).where(row).values(scopes="read_user"))
    page = enter_code(browser, gatebell, device["user_code"])
    assert is_asking(page)
    press_decision(browser, page, "approve")
    assert poll(gatebell, client, device["device_code"]).json()["scope"] == "read_user"


# QR codes for phones


PHONE = "/oauth/device/phone"


def draw(gatebell: LiveGatebell, typed: str) -> requests.Response:
    browser = gatebell.http()
    page = browser.get(gatebell.url + PHONE)
    return submit(browser, page, form_to(page, PHONE), user_code=typed)


def test_a_valid_code_is_shown_as_a_qr_code_with_its_url(gatebell: LiveGatebell) -> None:
    device = codes(gatebell, television(gatebell))
    answer = draw(gatebell, device["user_code"].replace("-", " ").lower())
    assert answer.status_code == 200
    picture = build_qr_code(device["verification_uri_complete"])
    assert picture is not None
    assert f'd="{picture.path}"' in answer.text
    assert device["verification_uri_complete"] in answer.text


@pytest.mark.parametrize("typed", ["", "BCDF", "AEIO-UAEI", "x" * 65, "<script>", "\x00"])
def test_an_invalid_code_is_not_shown_as_a_qr_code(gatebell: LiveGatebell, typed: str) -> None:
    answer = draw(gatebell, typed)
    assert answer.status_code == 422
    assert '<svg class="qr"' not in answer.text
    assert re.search(r"eight letters|Enter the code", answer.text)


def test_a_qr_code_cannot_be_linked_to_and_does_not_reveal_known_codes(
    gatebell: LiveGatebell,
) -> None:
    stranger = gatebell.http()
    page = stranger.get(f"{gatebell.url}{PHONE}?user_code=BCDF-GHJK")
    assert form_to(page, PHONE).value("user_code") == ""
    # Only the link to the sign-in page contains the code, as part of the return path.
    assert "BCDF" not in page.text.split("</header>")[1]
    assert draw(gatebell, "BCDF-GHJK").status_code == 200
    code = {"user_code": "BCDFGHJK"}
    back = gatebell.http().post(gatebell.url + PHONE, data=code, allow_redirects=False)
    assert (back.status_code, back.headers["Location"]) == (303, PHONE)


def test_the_link_to_the_qr_code_is_next_to_the_code_and_on_the_sign_in_page(
    gatebell: LiveGatebell,
) -> None:
    stranger = gatebell.http()
    door = stranger.get(f"{gatebell.url}/oauth/device")
    form_with(door, "password")
    assert f'href="{PHONE}"' in door.text
    assert PHONE not in stranger.get(f"{gatebell.url}/users/sign_in").text
    page = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/oauth/device")
    assert f'href="{PHONE}"' in page.text


def test_the_phone_can_approve_the_device(gatebell: LiveGatebell) -> None:
    device = codes(gatebell, television(gatebell))
    address = re.search(r">(http[^<]*user_code=[^<]*)<", draw(gatebell, device["user_code"]).text)
    assert address
    phone = signed_in(gatebell, alice(gatebell))
    page = phone.get(address[1])
    code = form_with(page, "user_code").value("user_code")
    assert press_decision(phone, enter_code(phone, gatebell, code), "approve").status_code == 200


def test_a_sign_out_in_another_browser_keeps_the_opened_request(
    gatebell: LiveGatebell, tv: ClientCredentials
) -> None:
    person, stranger = alice(gatebell), open_browser(gatebell, bob(gatebell))
    browser, other = open_browser(gatebell, person), open_browser(gatebell, person)
    device, taken = codes(gatebell, tv), codes(gatebell, tv)
    page, lost = (enter_code(browser, gatebell, each["user_code"]) for each in (device, taken))
    home = other.get(gatebell.url)
    submit(other, home, form_to(home, "/users/sign_out"))
    assert is_asking(enter_code(stranger, gatebell, taken["user_code"]))
    assert press_decision(browser, lost, "approve").status_code == 409
    assert "Device connected" in press_decision(browser, page, "approve").text
    assert poll(gatebell, tv, device["device_code"]).status_code == 200
    assert not is_asking(enter_code(stranger, gatebell, device["user_code"]))


def test_a_form_does_not_decide_about_a_later_request_with_the_same_id(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    first, second = (
        make_application(gatebell, bob(gatebell), confidential=False) for _ in range(2)
    )
    page = enter_code(browser, gatebell, codes(gatebell, first)["user_code"])
    with database_of(gatebell) as session:
        session.execute(delete(Application).where(Application.uid == first.client_id))
    later = codes(gatebell, second)  # SQLite reuses the highest id.
    assert press_decision(browser, page, "approve").status_code == 409
    assert_refused(poll(gatebell, second, later["device_code"]), "authorization_pending")
