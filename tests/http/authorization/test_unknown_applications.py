"""What people are told of an application that registered itself, and what it may do."""

from typing import Any

import pytest
from sqlalchemy import null, select, update

from models import Application
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    open_browser,
    signed_in,
)
from tests.support.database.stored import change
from tests.support.oauth.device_wire import approve, codes, poll, type_code
from tests.support.oauth.oauth_wire import (
    Changes,
    ask,
    assert_refused_on_a_page,
    decide,
    landing,
    sign_in_on,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")

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
    assert "This application is not verified." in page.text
    assert "Registered itself" in page.text
    assert "managed by gatebell" not in page.text.lower()
    assert 'href="https://client.example/?a=b&amp;c=&#39;d&#39;"' in page.text
    assert "https://client.example/privacy" in page.text
    assert "Terms of service" not in page.text
    assert "code" in landing(decide(browser, page))


@pytest.mark.long
@pytest.mark.parametrize("registrar", ["nobody", "somebody"])
def test_no_page_takes_it_for_an_application_of_the_instance(
    gatebell: LiveGatebell, robot: ClientCredentials, registrar: str
) -> None:
    values = {
        "is_instance_wide": registrar == "nobody",
        "client_metadata": {"client_uri": "https://robot.example/"},
    }
    change(gatebell, update(Application).where(Application.id == robot.id).values(values))
    browser = open_browser(gatebell, make_user(gatebell))
    device = codes(gatebell, robot, client_secret=robot.secret)
    page = type_code(browser, gatebell, device["user_code"])
    assert "Registered itself" in page.text
    assert "This application is not verified." in page.text
    assert "https://robot.example/" in page.text
    assert "managed by gatebell" not in page.text.lower()
    approve(browser, gatebell, device["user_code"])
    form = {"client_secret": robot.secret}
    assert poll(gatebell, robot, device["device_code"], **form).status_code == 200
    listed = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    assert "registered itself, not verified" in listed.text
    assert "managed by Gatebell" not in listed.text
    asked = ask(gatebell.http(), gatebell, robot)
    assert "which registered itself and requests access" in asked.text


WRONG: tuple[dict[str, Changes], ...] = (
    {"scope": "nonsense"},
    {"response_type": "token"},
    {"prompt": "none"},
    {"prompt": "none login"},
    {"code_challenge": "x"},
)


@pytest.mark.rfc("rfc9700-4.11.2-a")
@pytest.mark.parametrize("changes", WRONG)
@pytest.mark.parametrize(
    "values",
    [
        {},  # registered itself
        {"is_instance_wide": False},
        {"is_instance_wide": False, "client_metadata": null()},
        {"is_instance_wide": False, "client_metadata": null(), "trusted": True},
        {"client_metadata": null()},
    ],
)
def test_nobody_is_sent_to_an_application_with_an_error_before_they_signed_in(
    gatebell: LiveGatebell,
    robot: ClientCredentials,
    values: dict[str, Any],
    changes: dict[str, Changes],
) -> None:
    if values:
        change(gatebell, update(Application).where(Application.id == robot.id).values(values))
    page = ask(gatebell.http(), gatebell, robot, **changes)
    assert_refused_on_a_page(page)
    assert "that no administrator of this instance has verified" in page.text
    assert f'href="{robot.redirect_uri}?error=' in page.text  # for who wants to go there
    known = landing(ask(signed_in(gatebell, alice(gatebell)), gatebell, robot, **changes))
    assert known["error"]


@pytest.mark.rfc("rfc9700-4.11.2-a")
@pytest.mark.parametrize("changes", WRONG)
def test_the_errors_of_trusted_applications_go_back_to_them(
    gatebell: LiveGatebell, robot: ClientCredentials, changes: dict[str, Changes]
) -> None:
    values = {"is_instance_wide": True, "trusted": True}
    change(gatebell, update(Application).where(Application.id == robot.id).values(values))
    assert landing(ask(gatebell.http(), gatebell, robot, **changes))["error"]


def test_who_is_not_signed_in_is_asked_to_and_then_asked_about_it(
    gatebell: LiveGatebell, robot: ClientCredentials
) -> None:
    browser = gatebell.http()
    question = sign_in_on(browser, ask(browser, gatebell, robot), alice(gatebell))
    assert landing(decide(browser, question, "cancel"))["error"] == "access_denied"


def test_what_an_administrator_registered_is_of_the_instance(gatebell: LiveGatebell) -> None:
    made = make_application(gatebell, bob(gatebell), confidential=False)
    values = {"is_instance_wide": True}
    change(gatebell, update(Application).where(Application.id == made.id).values(values))
    browser = signed_in(gatebell, alice(gatebell))
    page = type_code(browser, gatebell, codes(gatebell, made)["user_code"])
    assert "Managed by Gatebell" in page.text
    assert "Nobody has checked" not in page.text


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
    browser = open_browser(gatebell, make_user(gatebell, name="root", admin=True))
    listed = browser.get(f"{gatebell.url}/admin/applications?search={robot.client_id}")
    assert "Registered itself" in listed.text
    shown = browser.get(f"{gatebell.url}/admin/applications/{robot.id}")
    assert "This application registered itself." in shown.text


@pytest.mark.long
def test_the_owner_of_an_application_can_have_its_tokens_bound(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    mine = make_application(gatebell, person)
    browser = open_browser(gatebell, person)
    address = f"{gatebell.url}/-/user_settings/applications/{mine.id}"
    for changes, expected in (({"require_dpop": "y"}, True), ({"require_dpop": None}, False)):
        page = browser.get(f"{address}/edit")
        assert submit(browser, page, form_with(page, "redirect_uris"), **changes).ok
        with database_of(gatebell) as session:
            column = select(Application.require_dpop).where(Application.id == mine.id)
            assert session.scalar(column) is expected
        shown = browser.get(address).text
        assert ("Bound to a key: DPoP proofs are required" in shown) is expected
