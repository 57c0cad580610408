"""Tests of warnings about applications that registered themselves, and of their restrictions."""

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
from tests.support.oauth.device_wire import approve, codes, enter_code, poll
from tests.support.oauth.oauth_wire import (
    Changes,
    assert_refused_on_a_page,
    open_authorization,
    parse_redirect,
    sign_in_on,
    submit_decision,
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
    """An application that registered itself without a token."""
    made = make_application(gatebell, bob(gatebell), name="Robot")
    values = {"client_metadata": OWN_WORDS, "is_instance_wide": True}
    change(gatebell, update(Application).where(Application.id == made.id).values(values))
    return made


@pytest.mark.rfc("rfc7591-2-f", "rfc7591-5-b")
def test_users_are_warned_about_a_self_registered_application_and_see_its_metadata(
    gatebell: LiveGatebell, robot: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    page = open_authorization(browser, gatebell, robot)
    assert "This application is not verified." in page.text
    assert "Registered itself" in page.text
    assert "managed by gatebell" not in page.text.lower()
    assert 'href="https://client.example/?a=b&amp;c=&#39;d&#39;"' in page.text
    assert "https://client.example/privacy" in page.text
    assert "Terms of service" not in page.text
    assert "code" in parse_redirect(submit_decision(browser, page))


@pytest.mark.long
@pytest.mark.parametrize("registrar", ["nobody", "somebody"])
def test_no_page_shows_a_self_registered_application_as_verified(
    gatebell: LiveGatebell, robot: ClientCredentials, registrar: str
) -> None:
    values = {
        "is_instance_wide": registrar == "nobody",
        "client_metadata": {"client_uri": "https://robot.example/"},
    }
    change(gatebell, update(Application).where(Application.id == robot.id).values(values))
    browser = open_browser(gatebell, make_user(gatebell))
    device = codes(gatebell, robot, client_secret=robot.secret)
    page = enter_code(browser, gatebell, device["user_code"])
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
    asked = open_authorization(gatebell.http(), gatebell, robot)
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
        {},  # The application registered itself.
        {"is_instance_wide": False},
        {"is_instance_wide": False, "client_metadata": null()},
        {"is_instance_wide": False, "client_metadata": null(), "trusted": True},
        {"client_metadata": null()},
    ],
)
def test_visitors_are_not_redirected_to_an_untrusted_application_with_an_error(
    gatebell: LiveGatebell,
    robot: ClientCredentials,
    values: dict[str, Any],
    changes: dict[str, Changes],
) -> None:
    if values:
        change(gatebell, update(Application).where(Application.id == robot.id).values(values))
    page = open_authorization(gatebell.http(), gatebell, robot, **changes)
    assert_refused_on_a_page(page)
    assert "that no administrator of this instance has verified" in page.text
    assert f'href="{robot.redirect_uri}?error=' in page.text  # The page offers a link instead.
    known = parse_redirect(
        open_authorization(signed_in(gatebell, alice(gatebell)), gatebell, robot, **changes)
    )
    assert known["error"]


@pytest.mark.rfc("rfc9700-4.11.2-a")
@pytest.mark.parametrize("changes", WRONG)
def test_errors_redirect_to_trusted_applications(
    gatebell: LiveGatebell, robot: ClientCredentials, changes: dict[str, Changes]
) -> None:
    values = {"is_instance_wide": True, "trusted": True}
    change(gatebell, update(Application).where(Application.id == robot.id).values(values))
    assert parse_redirect(open_authorization(gatebell.http(), gatebell, robot, **changes))["error"]


def test_visitors_sign_in_before_the_consent_page(
    gatebell: LiveGatebell, robot: ClientCredentials
) -> None:
    browser = gatebell.http()
    question = sign_in_on(browser, open_authorization(browser, gatebell, robot), alice(gatebell))
    assert parse_redirect(submit_decision(browser, question, "cancel"))["error"] == "access_denied"


def test_an_application_of_an_administrator_belongs_to_the_instance(gatebell: LiveGatebell) -> None:
    made = make_application(gatebell, bob(gatebell), confidential=False)
    values = {"is_instance_wide": True}
    change(gatebell, update(Application).where(Application.id == made.id).values(values))
    browser = signed_in(gatebell, alice(gatebell))
    page = enter_code(browser, gatebell, codes(gatebell, made)["user_code"])
    assert "Managed by Gatebell" in page.text
    assert "Nobody has checked" not in page.text


def test_users_are_not_warned_about_an_application_registered_by_a_user(
    gatebell: LiveGatebell,
) -> None:
    page = open_authorization(
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
def test_the_owner_can_require_bound_tokens(gatebell: LiveGatebell) -> None:
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
