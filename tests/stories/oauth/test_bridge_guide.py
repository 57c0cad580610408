"""Follows the guide for bridges: users of an LDAP directory sign in through Canaille."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from urllib.parse import urljoin, urlsplit

import pytest
import requests

from domain.access.roles import Role
from tests.stories.bridge_guide_programs import (
    REQUIREMENTS,
    Bridge,
    Directory,
    is_installed,
    running_bridge,
    running_directory,
)
from tests.support.accounts.people import make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.documents.guides import guide_for_project
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.secrets_seen import SECRETS
from tests.support.sign_in.identity_checks import check_in_an_hour
from tests.support.sign_in.openid_provider import ask_to_sign_in, last_failure
from tests.support.sign_in.provider_groups import role_in
from tests.support.sign_in.second_factors import assert_signed_in, is_signed_in
from tests.support.wire.html_forms import forms_in, submit

PASSWORD = "a password of the directory"


@pytest.fixture
def service(new_service: NewService) -> Iterator[LiveGatebell]:
    """The service that users sign in to, without a worker."""
    with running(new_service("sqlite", only="web")) as live:
        yield live


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    # The path has to be short, since it contains the socket of the directory.
    with running_directory(tmp_path_factory.mktemp("ldap")) as made:
        yield made


@pytest.fixture
def admin(service: LiveGatebell) -> str:
    """The token of an administrator who owns a group."""
    root = make_user(service, name="root", admin=True)
    service.cli("groups", "create", "acme", "--owner", root.username)
    return make_token(service, root, scopes="api").clear


@pytest.fixture
def bridge(
    service: LiveGatebell, directory: Directory, admin: str, tmp_path: Path
) -> Iterator[Bridge]:
    """The bridge, connected with the service according to the guide."""
    guide = guide_for_project("ldap-and-saml", service, "")
    folder = tmp_path / "bridge"
    folder.mkdir()
    with running_bridge(guide, directory, folder) as made:
        registered = json.loads(made.run("register.sh", ISSUER=made.issuer))
        secret = registered["client_secret"]
        SECRETS.remember(secret)
        said = made.run(
            "connect.sh", ISSUER=made.issuer, TOKEN=admin, PROVIDER_CLIENT_SECRET=secret
        )
        tested = service.cli("identity-providers", "test", str(json.loads(said)["id"]))
        assert (tested["works"], tested["names_itself"]) == (True, True), tested
        yield made
        made.run("clean.sh")


def at_the_bridge(
    browser: requests.Session, page: requests.Response, uid: str
) -> requests.Response:
    """Submit the pages of Canaille; return the last response, or the redirect to the service."""
    answers = {"login": uid, "password": PASSWORD, "answer": "accept"}
    while True:
        if page.is_redirect:
            location = urljoin(page.url, page.headers["Location"])
            page = browser.get(location, allow_redirects=False)
            if urlsplit(location).path == "/users/auth/company/callback":
                return page
            continue
        asked = ((form, name) for form in forms_in(page.text) for name in answers if form.has(name))
        form, name = next(asked, (None, ""))
        if form is None:
            return page
        page = submit(browser, page, form, **{name: answers.pop(name)})


def sign_in(
    service: LiveGatebell, browser: requests.Session, uid: str, *, at: str = "/users/sign_in"
) -> requests.Response:
    """Sign in through the bridge; return the last response, which may be a page of the bridge."""
    return at_the_bridge(browser, ask_to_sign_in(service, browser, "company", at=at), uid)


def check_later(service: LiveGatebell) -> None:
    # Access tokens of Canaille from the same second are equal, so a rejected token would also
    # invalidate the other one.
    sleep(1.1)
    check_in_an_hour(service)


def test_the_installed_bridge_has_the_version_of_the_guide(new_service: NewService) -> None:
    guide = guide_for_project("ldap-and-saml", new_service(), "")
    (wanted,) = re.findall("^canaille.*", REQUIREMENTS.read_text(), re.MULTILINE)
    assert f"'{wanted}'" in guide.block("install.sh")


@pytest.mark.long
@pytest.mark.skipif(
    not is_installed(), reason="Canaille and slapd are missing (scripts/ensure-bridges)"
)
def test_users_of_a_directory_are_created_changed_and_removed(
    service: LiveGatebell, directory: Directory, bridge: Bridge, admin: str
) -> None:
    directory.add_person("dana", "Dana Scully", PASSWORD)
    directory.add_person("fox", "Fox Mulder", PASSWORD)
    directory.add_group("sre", "dana", "fox")
    browser = service.http()
    assert_signed_in(sign_in(service, browser, "dana"))
    dana = service.cli("users", "show", "dana")
    assert (dana["name"], dana["email"]) == ("Dana Scully", "dana@company.example")
    assert role_in(service, "dana", "acme") is Role.DEVELOPER
    # Users cannot give themselves a group or another user's address.
    for path, status in (("/groups/add", 403), ("/profile/dana", 404)):
        assert browser.get(bridge.issuer + path).status_code == status, path
    # A user who is already signed in has to sign in again for confirmation.
    assert_signed_in(sign_in(service, browser, "dana", at="/users/sign_in?again=yes"))
    for _ in range(2):
        check_later(service)
        assert is_signed_in(service, browser)
    # Tokens from the check have this lifetime too, because an hour is too short until the next
    # check.
    assert directory.token_lifetimes() == {"86400"}
    directory.remove_member("sre", "dana")
    check_later(service)
    assert role_in(service, "dana", "acme") is None
    assert is_signed_in(service, browser)

    directory.stop()  # An unreachable directory changes nothing.
    check_later(service)
    assert is_signed_in(service, browser)
    directory.start()

    script = service.http()
    script.headers["PRIVATE-TOKEN"] = admin
    asked = {"provider": "company", "extern_uid": directory.entry_uuid("dana")}
    found = script.get(f"{service.url}/api/v4/users", params=asked).json()
    assert [each["username"] for each in found] == ["dana"]
    directory.remove_person("dana")
    check_later(service)
    assert not is_signed_in(service, browser)
    assert "Login failed" in sign_in(service, service.http(), "dana").text
    # Another person with the same name is a different user here.
    directory.add_person("dana", "Dana Barrett", PASSWORD)
    page = sign_in(service, service.http(), "dana")
    assert (page.status_code, last_failure(service, "company")) == (
        400,
        "unknown user, and another account has the email address",
    )
