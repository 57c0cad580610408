"""/oauth/device/phone: a QR code for the phone of whoever has the device in front of them."""

import re

import pytest
import requests

from tests.support.accounts.people import alice, signed_in
from tests.support.oauth.device_wire import codes, press, television, type_code
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit
from web.pages.qr_codes import qr_code

pytestmark = pytest.mark.one_database("postgres")

PHONE = "/oauth/device/phone"


def draw(gatebell: LiveGatebell, typed: str) -> requests.Response:
    browser = gatebell.http()
    page = browser.get(gatebell.url + PHONE)
    return submit(browser, page, form_to(page, PHONE), user_code=typed)


def test_whoever_typed_the_code_gets_its_address_as_a_picture(gatebell: LiveGatebell) -> None:
    device = codes(gatebell, television(gatebell))
    answer = draw(gatebell, device["user_code"].replace("-", " ").lower())
    assert answer.status_code == 200
    picture = qr_code(device["verification_uri_complete"])
    assert f'd="{picture.path}"' in answer.text
    assert device["verification_uri_complete"] in answer.text


@pytest.mark.parametrize("typed", ["", "BCDF", "AEIO-UAEI", "x" * 65, "<script>", "\x00"])
def test_what_is_no_code_is_not_drawn(gatebell: LiveGatebell, typed: str) -> None:
    answer = draw(gatebell, typed)
    assert answer.status_code == 422
    assert '<svg class="qr"' not in answer.text
    assert re.search(r"eight letters|Enter the code", answer.text)


def test_no_link_leads_to_a_picture_and_none_says_whether_a_code_is_known(
    gatebell: LiveGatebell,
) -> None:
    stranger = gatebell.http()
    page = stranger.get(f"{gatebell.url}{PHONE}?user_code=BCDF-GHJK")
    assert form_to(page, PHONE).value("user_code") == ""
    # The way to sign in comes back to this address; nothing else knows the code.
    assert "BCDF" not in page.text.split("</header>")[1]
    assert draw(gatebell, "BCDF-GHJK").status_code == 200
    assert stranger.post(gatebell.url + PHONE, data={"user_code": "BCDFGHJK"}).status_code == 400


def test_the_way_there_is_beside_the_code_and_where_one_would_sign_in(
    gatebell: LiveGatebell,
) -> None:
    stranger = gatebell.http()
    door = stranger.get(f"{gatebell.url}/oauth/device")
    form_with(door, "password")
    assert f'href="{PHONE}"' in door.text
    assert PHONE not in stranger.get(f"{gatebell.url}/users/sign_in").text
    page = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/oauth/device")
    assert f'href="{PHONE}"' in page.text


def test_the_phone_decides_as_if_the_code_had_been_typed_there(gatebell: LiveGatebell) -> None:
    device = codes(gatebell, television(gatebell))
    address = re.search(r">(http[^<]*user_code=[^<]*)<", draw(gatebell, device["user_code"]).text)
    assert address
    phone = signed_in(gatebell, alice(gatebell))
    page = phone.get(address[1])
    code = form_with(page, "user_code").value("user_code")
    assert press(phone, type_code(phone, gatebell, code), "approve").status_code == 200
