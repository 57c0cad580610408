"""Whatever a device or a person sends, the answer is clear, and no code is kept or logged."""

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from models import DeviceAuthorization
from tests.support.accounts.people import (
    ClientCredentials,
    database_of,
)
from tests.support.oauth.device_wire import (
    DEVICE_GRANT,
    approve,
    ask_for_codes,
    codes,
    is_asking,
    poll,
    television,
    type_code,
)
from tests.support.oauth.oauth_wire import (
    post_token,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.garbage import FEW_NASTY, TEXT, bounded
from tests.support.wire.page_text import words

pytestmark = pytest.mark.one_database("postgres")


NAMES = ("client_id", "client_secret", "scope", "device_code", "user_code", "grant_type")


@bounded(20)
@given(form=st.dictionaries(st.sampled_from(NAMES), TEXT))
def test_a_request_of_a_device_may_be_garbage(
    live_postgres: LiveGatebell, form: dict[str, str]
) -> None:
    client = television(live_postgres)
    for asked in (form, {**form, "client_id": client.client_id}):
        for answer in (
            ask_for_codes(live_postgres, client, **asked),
            post_token(live_postgres, {**asked, "grant_type": DEVICE_GRANT}),
        ):
            assert answer.status_code in {200, 400, 401}, answer.text


@pytest.mark.parametrize("value", FEW_NASTY, ids=range(len(FEW_NASTY)))
def test_a_typed_code_may_be_garbage(
    gatebell: LiveGatebell, browser: requests.Session, value: str
) -> None:
    page = type_code(browser, gatebell, value)
    assert page.status_code == 422
    assert "<script>alert" not in page.text
    prefilled = browser.get(f"{gatebell.url}/oauth/device", params={"user_code": value})
    assert prefilled.status_code == 200
    assert "<script>alert" not in prefilled.text


@pytest.mark.rfc("rfc8628-5.4-a")
def test_a_device_may_call_itself_anything(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    named = gatebell.http()
    address = f"{gatebell.url}/oauth/authorize_device"
    form = {"client_id": tv.client_id, "scope": "read_user"}
    for name in ("<script>alert(1)</script>", "x" * 3000, "{{1234*5678}}"):
        device = named.post(address, data=form, headers={"User-Agent": name}).json()
        page = type_code(browser, gatebell, device["user_code"])
        assert is_asking(page)
        assert "<script>alert" not in page.text
        assert "7006652" not in words(page) or name != "{{1234*5678}}"


@pytest.mark.rfc("rfc6749-10.3-b")
def test_codes_are_nowhere_in_clear(
    gatebell: LiveGatebell, tv: ClientCredentials, browser: requests.Session
) -> None:
    device = codes(gatebell, tv)
    approve(browser, gatebell, device["user_code"])
    token = poll(gatebell, tv, device["device_code"]).json()["access_token"]
    browser.get(device["verification_uri_complete"])
    log = gatebell.log_text()
    for secret in (device["device_code"], device["user_code"], token):
        assert secret not in log
    with database_of(gatebell) as session:
        row = session.scalars(
            select(DeviceAuthorization).order_by(DeviceAuthorization.id.desc())
        ).first()
        assert row is not None
        kept = repr([getattr(row, column.name) for column in row.__table__.columns])
    assert device["device_code"] not in kept
    assert device["user_code"] not in kept
    assert device["user_code"].replace("-", "") not in kept
