"""Tests of signing in through GitHub, which is not an OpenID provider."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from sqlalchemy import select

from domain.access.roles import Role
from models import Identity, User
from tests.support.accounts.administration import (
    get_administrator_browser,
    read_redirected_page,
    submit_form_by_ending,
    submit_form_by_field,
)
from tests.support.accounts.people import database_of, unique
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.github_server import (
    EMAILS,
    ORGS,
    SUSPENDED,
    TEAMS,
    TOKENS,
    USER,
    FakeGitHub,
    add_github,
    running_github,
)
from tests.support.sign_in.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    Answer,
    ask_to_sign_in,
    find_provider_id,
    last_failure,
    sign_in_through,
)
from tests.support.sign_in.provider_groups import new_group, role_of
from tests.support.sign_in.second_factors import assert_signed_in, is_signed_in


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    """A GitHub Enterprise Server for one test."""
    with running_github() as made:
        yield made


def user_of(gatebell: LiveGatebell, github: FakeGitHub) -> User:
    """Return the account that is connected with the current GitHub user."""
    mine = select(User).join(Identity, Identity.user_id == User.id)
    with database_of(gatebell) as session:
        found = session.scalars(mine.where(Identity.subject == github.person["sub"])).one()
        session.expunge(found)
        return found


def answer_with(status: int, body: bytes) -> Answer:
    return status, {}, body


@pytest.mark.long
@pytest.mark.both_databases
def test_a_new_user_gets_an_account_with_the_data_from_github(
    gatebell: LiveGatebell, github: FakeGitHub
) -> None:
    slug, browser = add_github(gatebell, github), gatebell.http()
    begun = ask_to_sign_in(gatebell, browser, slug)
    asked = dict(parse_qsl(urlsplit(begun.headers["Location"]).query))
    assert asked["scope"] == "user:email read:org"
    assert asked["code_challenge_method"] == "S256"
    assert_signed_in(sign_in_through(gatebell, github, slug, browser))
    user, person = user_of(gatebell, github), github.person
    assert (user.username, user.email) == (person["preferred_username"], person["email"])
    assert (user.name, user.password_hash, user.is_admin) == ("Mona", "", False)
    assert user.email_confirmed_at is not None
    # Organizations and teams are not requested if no rule uses them.
    assert github.asked == [TOKENS, USER, EMAILS]


@pytest.mark.long
def test_users_are_identified_by_id_and_not_by_login(
    gatebell: LiveGatebell, github: FakeGitHub
) -> None:
    slug = add_github(gatebell, github)
    sign_in_through(gatebell, github, slug)
    first, before = user_of(gatebell, github), github.person
    github.is_about(sub=before["sub"], name=None)
    assert_signed_in(sign_in_through(gatebell, github, slug))
    assert user_of(gatebell, github).id == first.id
    # A user who takes over a free login is a different user.
    github.is_about(preferred_username=before["preferred_username"])
    assert_signed_in(sign_in_through(gatebell, github, slug))
    second = user_of(gatebell, github)
    assert (second.id, second.username) != (first.id, first.username)


@pytest.mark.parametrize(
    ("emails", "reason"),
    [
        ([("primary", True, False)], "the email address is not verified"),
        ([("primary", True, None)], "the email address is not verified"),
        ([("primary", True, False), ("other", False, True)], "the email address is not verified"),
        ([("other", False, True)], "without a valid email address"),
        ([], "without a valid email address"),
    ],
)
def test_no_account_is_created_without_a_verified_primary_address(
    gatebell: LiveGatebell,
    github: FakeGitHub,
    emails: list[tuple[str, bool, bool | None]],
    reason: str,
) -> None:
    slug, browser = add_github(gatebell, github), gatebell.http()
    github.emails = [
        {"email": f"{unique(name)}@people.example", "primary": primary, "verified": verified}
        for name, primary, verified in emails
    ]
    page = sign_in_through(gatebell, github, slug, browser)
    assert page.status_code == 400
    assert "account is not connected to an account here" in page.text
    assert not is_signed_in(gatebell, browser)
    assert reason in last_failure(gatebell, slug)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": "guessed"}, "expired"),
        ({"state": None}, "expired"),
        ({"iss": "https://github.com/login/oauth"}, "could not be verified"),
        ({"error": "access_denied", "code": None}, "You did not sign in at"),
    ],
)
def test_forged_responses_and_denied_sign_ins_are_rejected(
    gatebell: LiveGatebell, github: FakeGitHub, changes: dict[str, Any], words: str
) -> None:
    slug, browser = add_github(gatebell, github), gatebell.http()
    page = sign_in_through(gatebell, github, slug, browser, **changes)
    assert page.status_code == 400
    assert words in page.text
    assert not is_signed_in(gatebell, browser)
    assert github.asked == []


@pytest.mark.long
def test_github_may_send_an_issuer_parameter(gatebell: LiveGatebell, github: FakeGitHub) -> None:
    slug = add_github(gatebell, github)
    assert_signed_in(sign_in_through(gatebell, github, slug, iss=f"{github.url}/login/oauth"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "status", "found", "reason"),
    [
        (TOKENS, 200, {"error": "bad_verification_code"}, "returned bad_verification_code"),
        (TOKENS, 200, {"error": "bad_refresh_token"}, "returned bad_refresh_token"),
        (TOKENS, 200, {"scope": ""}, "did not return tokens"),
        (TOKENS, 404, [], "did not return a JSON object"),
        (USER, 401, {"message": "Bad credentials"}, "returned 401"),
        (USER, 403, json.loads(SUSPENDED), "returned 403"),
        (USER, 200, [], "did not return a JSON object"),
        (USER, 200, {"id": "7", "login": "x", "name": "x"}, "an unexpected response"),
        (USER, 200, {"id": 1e300, "login": "x", "name": "x"}, "an unexpected response"),
        (USER, 200, {"login": "x", "name": "x"}, "an unexpected response"),
        (EMAILS, 404, {"message": "Not Found"}, "returned 404"),
        (EMAILS, 200, {}, "did not return a JSON array"),
        (EMAILS, 200, ["an address"], "an unexpected response"),
        (ORGS, 403, {"message": "API rate limit exceeded"}, "returned 403"),
        (ORGS, 200, [{"login": "x"}] * 10, "too many pages"),
        (TEAMS, 200, [{"slug": "x", "organization": None}], "an unexpected response"),
    ],
)
def test_an_unexpected_response_shows_an_error_page(
    gatebell: LiveGatebell, github: FakeGitHub, path: str, status: int, found: Any, reason: str
) -> None:
    slug, browser = add_github(gatebell, github, "--administrators-group", "x"), gatebell.http()
    github.answers = {path: lambda: (status, {}, json.dumps(found).encode())}
    page = sign_in_through(gatebell, github, slug, browser)
    assert page.status_code == 400
    assert not is_signed_in(gatebell, browser)
    assert reason in last_failure(gatebell, slug)


@pytest.mark.long
def test_roles_follow_organizations_and_teams_of_github(
    gatebell: LiveGatebell, github: FakeGitHub
) -> None:
    of_team, of_organization, of_none = (new_group(gatebell) for _ in range(3))
    roles = (
        f"acme/sre = {of_team}: Developer",
        f"globex = {of_organization}: Guest",
        f"sre = {of_none}: Owner",
    )
    options = [word for each in roles for word in ("--group-roles", each)]
    slug = add_github(gatebell, github, *options)
    # The relevant organizations and teams are not on the first page of the lists.
    github.orgs = [f"org-{number}" for number in range(10)] + ["acme", "globex"]
    github.teams = [f"acme/team-{number}" for number in range(20)] + ["acme/sre"]
    assert_signed_in(sign_in_through(gatebell, github, slug))
    assert role_of(gatebell, github, of_team) is Role.DEVELOPER
    assert role_of(gatebell, github, of_organization) is Role.GUEST
    assert role_of(gatebell, github, of_none) is None


@pytest.mark.long
@pytest.mark.parametrize("claim", ["sub", "email"])
def test_the_groups_claim_is_ignored_for_github(
    gatebell: LiveGatebell, github: FakeGitHub, claim: str
) -> None:
    options = ("--groups-claim", claim, "--administrators-group", "acme")
    assert_signed_in(sign_in_through(gatebell, github, add_github(gatebell, github, *options)))
    user = user_of(gatebell, github)
    assert (user.email, user.is_admin) == (github.person["email"], False)


@pytest.mark.long
@pytest.mark.both_databases
def test_an_administrator_can_add_github_and_test_the_connection(
    gatebell: LiveGatebell, github: FakeGitHub
) -> None:
    assert (
        "GitHub"
        in get_administrator_browser(gatebell)
        .get(f"{gatebell.url}/admin/identity_providers/new")
        .text
    )
    slug = unique("idp")
    new = "/admin/identity_providers/new?preset=github"
    form = get_administrator_browser(gatebell).get(gatebell.url + new).text
    assert 'value="https://github.com"' in form
    assert "Groups claim" not in form
    more = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "creates_accounts": "y"}
    answer = submit_form_by_field(
        gatebell, new, "slug", slug=slug, title="Our GitHub", issuer=github.url, **more
    )
    assert f"{gatebell.url}/users/auth/{slug}/callback" in read_redirected_page(
        gatebell, answer
    ).replace("<wbr>", "")
    assert_signed_in(sign_in_through(gatebell, github, slug))
    page = f"/admin/identity_providers/{find_provider_id(gatebell, slug)}"
    assert "Octocats" in read_redirected_page(
        gatebell, submit_form_by_field(gatebell, page, "issuer", title="Octocats")
    )
    works = submit_form_by_ending(gatebell, page, "/test").text
    assert "The connection works.</strong> The API of the provider responds." in works
    assert f"{github.url}{TOKENS}" in works
    assert "signs with" not in works
    for status, body, words in (
        # Servers in private mode respond like this.
        (401, b'{"message": "Must authenticate"}', "The connection works."),
        (404, b"{}", "returned 404"),
        (200, b"<html>", "did not return a JSON object"),
    ):
        github.answers = {"/api/v3": partial(answer_with, status, body)}
        assert words in submit_form_by_ending(gatebell, page, "/test").text
    gatebell.cli("identity-providers", "delete", find_provider_id(gatebell, slug))


@pytest.mark.long
def test_the_command_line_adds_github_without_openid_scopes(
    gatebell: LiveGatebell, github: FakeGitHub
) -> None:
    slug = unique("idp")
    names = ("--slug", slug, "--title", "GitHub", "--client-id", "x", "--client-secret", "y")
    made = gatebell.cli("identity-providers", "create", "--preset", "github", *names)
    assert (made["issuer"], made["scopes"]) == ("https://github.com", "user:email read:org")
    changed = gatebell.cli("identity-providers", "change", str(made["id"]), "--issuer", github.url)
    assert changed["issuer"] == github.url
    tested = gatebell.cli("identity-providers", "test", str(made["id"]))
    assert (tested["works"], tested["keys"], tested["jwks_uri"]) == (True, None, None)
    assert tested["userinfo_endpoint"] == f"{github.url}{USER}"
    gatebell.cli("identity-providers", "delete", str(made["id"]))
