"""What people are told of an application that registered itself, and what it may do."""

import pytest
from sqlalchemy import select, update

from models import Application
from tests.html_forms import form_with, submit
from tests.live import LiveGatebell
from tests.oauth_wire import ask, decide, landing
from tests.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    sign_in,
    signed_in,
)
from tests.stored import change

OWN_WORDS = {
    "client_uri": "https://client.example/?a=b&c='d'",
    "policy_uri": "https://client.example/privacy",
    "grant_types": ["authorization_code", "refresh_token"],
}


@pytest.fixture
def robot(gatebell: LiveGatebell) -> ClientCredentials:
    """An application that registered itself, without anybody's token."""
    made = make_application(gatebell, bob(gatebell), name="Robot")
    values = {"client_metadata": OWN_WORDS, "is_instance_wide": True}
    change(gatebell, update(Application).where(Application.id == made.id).values(values))
    return made


@pytest.mark.rfc("rfc7591-2-f", "rfc7591-5-b")
def test_people_are_warned_of_who_registered_itself_and_see_what_it_says(
    gatebell: LiveGatebell, robot: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    page = ask(browser, gatebell, robot)
    assert "Nobody has checked who this is." in page.text
    assert "Registered itself" in page.text
    assert "an application of" not in page.text.lower()
    assert 'href="https://client.example/?a=b&amp;c=&#39;d&#39;"' in page.text
    assert "https://client.example/privacy" in page.text
    assert "Terms of service" not in page.text
    assert "code" in landing(decide(browser, page))


def test_people_are_not_warned_of_an_application_that_somebody_registered(
    gatebell: LiveGatebell,
) -> None:
    page = ask(
        signed_in(gatebell, alice(gatebell)), gatebell, make_application(gatebell, bob(gatebell))
    )
    assert "Nobody has checked" not in page.text


def test_administrators_see_which_applications_registered_themselves(
    gatebell: LiveGatebell, robot: ClientCredentials
) -> None:
    browser = sign_in(gatebell, make_user(gatebell, name="root", admin=True))
    listed = browser.get(f"{gatebell.url}/admin/applications?search={robot.client_id}")
    assert "Registered itself" in listed.text
    shown = browser.get(f"{gatebell.url}/admin/applications/{robot.id}")
    assert "It registered itself." in shown.text


def test_the_owner_of_an_application_can_have_its_tokens_bound(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    mine = make_application(gatebell, person)
    browser = sign_in(gatebell, person)
    address = f"{gatebell.url}/-/user_settings/applications/{mine.id}"
    for changes, expected in (({"require_dpop": "y"}, True), ({"require_dpop": None}, False)):
        page = browser.get(f"{address}/edit")
        assert submit(browser, page, form_with(page, "redirect_uris"), **changes).ok
        with database_of(gatebell) as session:
            column = select(Application.require_dpop).where(Application.id == mine.id)
            assert session.scalar(column) is expected
        shown = browser.get(address).text
        assert ("Bound to a key: it has to send DPoP proofs" in shown) is expected
