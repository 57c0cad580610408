"""Tests of the job that checks with identity providers whether users' accounts still exist."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
import requests
from sqlalchemy import select, update

from domain.access.roles import Role
from domain.audit.events import EventKind
from domain.core.keyring import Keyring
from models import Identity, PersonalAccessToken, User
from tests.conftest import KINDS
from tests.support.accounts.administration import find_user_id
from tests.support.accounts.people import (
    Person,
    database_of,
    make_user,
    now,
    open_browser,
    set_state,
    settings_of,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.database.audit_log import get_event_about_user, list_events_about_user
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.sign_in.github_server import (
    SUSPENDED,
    TOKENS,
    USER,
    FakeGitHub,
    running_github,
)
from tests.support.sign_in.openid_provider import (
    Answer,
    FakeProvider,
    add_provider,
    find_provider_id,
    running_provider,
    sign_in_through,
)
from tests.support.sign_in.provider_groups import new_group, person_of, role_of
from tests.support.sign_in.second_factors import assert_signed_in, is_signed_in
from web.jobs.identities import check_identities
from web.settings.environment import parse_settings


@pytest.fixture(scope="module", params=KINDS)
def service(request: pytest.FixtureRequest, new_service: NewService) -> Iterator[LiveGatebell]:
    """Run a service without a worker."""
    with running(new_service(request.param, only="app")) as live:
        yield live


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    """Run a provider that issues refresh tokens."""
    with running_provider() as made:
        made.refresh_token = "yes"
        yield made


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with running_github() as made:
        yield made


def arrive(service: LiveGatebell, provider: FakeProvider, *options: str) -> requests.Session:
    """Sign in through the provider, and return the browser."""
    slug = add_provider(service, provider.url, "--creates-accounts", *options)
    browser = service.http()
    assert_signed_in(sign_in_through(service, provider, slug, browser))
    provider.asked.clear()
    return browser


def identity_of(service: LiveGatebell, provider: FakeProvider) -> Identity:
    mine = select(Identity).where(Identity.subject == provider.person["sub"])
    with database_of(service) as session:
        found = session.scalars(mine).one()
        session.expunge(found)
        return found


def check_after(service: LiveGatebell, provider: FakeProvider, past: timedelta) -> None:
    """Make the last check of this person's identity older, and run the job for it only."""
    mine = Identity.subject == provider.person["sub"]
    with database_of(service) as session:
        session.execute(update(Identity).where(~mine).values(checked_at=now()))
        session.execute(update(Identity).where(mine).values(checked_at=now() - past))
    check_identities(parse_settings(service.environment))


def is_token_live(service: LiveGatebell, person: Person) -> bool:
    mine = PersonalAccessToken.user_id == find_user_id(service, person)
    with database_of(service) as session:
        return session.scalars(select(PersonalAccessToken.revoked_at).where(mine)).one() is None


HOUR = timedelta(hours=1, seconds=1)


@pytest.mark.long
def test_an_existing_account_is_checked_once_an_hour(
    service: LiveGatebell, provider: FakeProvider
) -> None:
    browser = arrive(service, provider)
    check_after(service, provider, timedelta(minutes=50))
    assert "/token" not in provider.asked
    provider.person |= {"email": "moved@people.example"}
    for _ in range(2):
        check_after(service, provider, HOUR)
    assert provider.asked.count("/token") == 2
    check_after(service, provider, -3 * HOUR)  # The clock that set the last check was ahead.
    assert provider.asked.count("/token") == 3
    identity = identity_of(service, provider)
    assert identity.email == "moved@people.example"
    # Each response contains a new token, which is stored encrypted.
    keyring = Keyring(settings_of(service).secret_key)
    assert keyring.decrypt(identity.refresh_token_ciphertext or "") == provider.refresh_token
    assert identity.checked_at is not None
    assert now() - identity.checked_at < timedelta(minutes=5)
    assert is_signed_in(service, browser)


def test_a_user_without_an_account_is_signed_out_and_loses_tokens_if_there_is_no_other_sign_in(
    service: LiveGatebell, provider: FakeProvider
) -> None:
    browser = arrive(service, provider)
    person = person_of(provider)
    make_token(service, person)
    provider.refresh_token = "of somebody else"
    check_after(service, provider, HOUR)
    assert not is_signed_in(service, browser)
    assert not is_token_live(service, person)
    event = get_event_about_user(service, person, EventKind.IDENTITY_ENDED)
    assert event.details == {"browsers": 1, "applications_ended": 0, "tokens_revoked": 1}
    # The identity is not checked any more until its next sign-in.
    provider.asked.clear()
    check_after(service, provider, HOUR)
    assert provider.asked == []


def test_an_invalid_request_error_signs_the_user_out(
    service: LiveGatebell, provider: FakeProvider
) -> None:
    browser = arrive(service, provider)
    provider.answers = {"/token": lambda: (400, {}, b'{"error": "invalid_request"}')}
    check_after(service, provider, HOUR)
    assert not is_signed_in(service, browser)


@pytest.mark.long
def test_a_user_with_a_password_keeps_tokens_and_other_sessions(
    service: LiveGatebell, provider: FakeProvider
) -> None:
    browser = arrive(service, provider)
    person = person_of(provider)
    other = open_browser(service, person)
    make_token(service, person)
    with database_of(service) as session:
        mine = update(User).where(User.username == person.username)
        session.execute(
            mine.values(
                password_hash=select(User.password_hash)
                .where(User.username == make_user(service).username)
                .scalar_subquery()
            )
        )
    provider.refresh_token = "of somebody else"
    check_after(service, provider, HOUR)
    assert (is_signed_in(service, browser), is_signed_in(service, other)) == (False, True)
    assert is_token_live(service, person)


@pytest.mark.long
@pytest.mark.parametrize(
    "answer",
    [
        (503, b""),
        (500, b'{"error": "invalid_grant"}'),
        # Response of Dex when its directory is unavailable.
        (500, b'{"error": "invalid_request"}'),
        (429, b"{}"),
        (401, b'{"error": "invalid_client"}'),
        (200, b"<html>"),
        (200, b'{"access_token": "x", "id_token": "e30.e30.e30"}'),
    ],
)
def test_an_unavailable_or_broken_provider_changes_nothing(
    service: LiveGatebell, provider: FakeProvider, answer: tuple[int, bytes]
) -> None:
    browser = arrive(service, provider)
    make_token(service, person_of(provider))
    provider.answers = {"/token": lambda: (answer[0], {}, answer[1])}
    before = identity_of(service, provider).refresh_token_ciphertext
    check_after(service, provider, HOUR)
    assert provider.asked.count("/token") == 1
    assert identity_of(service, provider).refresh_token_ciphertext == before
    assert is_signed_in(service, browser)
    assert is_token_live(service, person_of(provider))
    provider.answers = {}
    check_after(service, provider, HOUR)
    assert is_signed_in(service, browser)


@pytest.mark.long
def test_refreshed_tokens_of_another_account_change_nothing(
    service: LiveGatebell, provider: FakeProvider
) -> None:
    arrive(service, provider)
    before = identity_of(service, provider)
    provider.claims = {"sub": "somebody else", "email": "else@people.example"}
    check_after(service, provider, HOUR)
    assert identity_of(service, provider).email == before.email


@pytest.mark.long
@pytest.mark.parametrize("id_token", ["with", "without"])
def test_roles_are_updated_from_groups_without_a_sign_in(
    service: LiveGatebell, provider: FakeProvider, id_token: str
) -> None:
    group = new_group(service)
    provider.person["groups"] = ["sre"]
    arrive(service, provider, "--group-roles", f"sre = {group}: Developer")
    assert role_of(service, provider, group) is Role.DEVELOPER
    provider.gives_id_tokens = id_token == "with"
    provider.person["groups"] = []
    check_after(service, provider, HOUR)
    assert role_of(service, provider, group) is None


@pytest.mark.long
def test_locked_users_and_disabled_providers_are_not_checked(
    service: LiveGatebell, provider: FakeProvider
) -> None:
    arrive(service, provider)
    set_state(service, person_of(provider), "locked")
    check_after(service, provider, HOUR)
    set_state(service, person_of(provider), "active")
    (slug,) = {
        each.subject
        for each in list_events_about_user(
            service, person_of(provider), EventKind.IDENTITY_CONNECTED
        )
    }
    service.cli("identity-providers", "change", find_provider_id(service, slug), "--no-active")
    check_after(service, provider, HOUR)
    assert provider.asked == []


def test_an_unavailable_provider_does_not_delay_others(
    service: LiveGatebell, provider: FakeProvider
) -> None:
    arrive(service, provider)
    with running_provider() as away:
        away.refresh_token = "yes"
        arrive(service, away)
    with database_of(service) as session:
        session.execute(
            update(Identity)
            .values(refresh_token_ciphertext=None)
            .where(Identity.subject.not_in([provider.person["sub"], away.person["sub"]]))
        )
        session.execute(update(Identity).values(checked_at=now() - HOUR))
        # This identity is checked first.
        first = update(Identity).where(Identity.subject == away.person["sub"])
        session.execute(first.values(checked_at=now() - 2 * HOUR))
    check_identities(parse_settings(service.environment))
    assert provider.asked.count("/token") == 1


def test_a_sign_in_during_a_check_overrides_its_result(
    service: LiveGatebell, provider: FakeProvider
) -> None:
    browser = arrive(service, provider)
    (slug,) = {
        each.subject
        for each in list_events_about_user(
            service, person_of(provider), EventKind.IDENTITY_CONNECTED
        )
    }

    def sign_in_meanwhile() -> Answer:
        provider.answers = {}
        assert_signed_in(sign_in_through(service, provider, slug, service.http()))
        return 400, {}, b'{"error": "invalid_grant"}'

    provider.answers = {"/token": sign_in_meanwhile}
    check_after(service, provider, HOUR)
    assert is_signed_in(service, browser)
    assert identity_of(service, provider).refresh_token_ciphertext is not None


@pytest.mark.long
def test_github_is_checked_with_the_access_token_and_roles_are_updated(
    service: LiveGatebell, github: FakeGitHub
) -> None:
    of_team, of_organization = new_group(service), new_group(service)
    options = [f"acme/sre = {of_team}: Developer", f"acme = {of_organization}: Guest"]
    roles = [word for each in options for word in ("--group-roles", each)]
    github.orgs, github.teams = ["acme"], ["acme/sre"]
    arrive(service, github, "--preset", "github", *roles)
    github.teams = []
    github.person |= {"name": "Mona Lisa"}
    check_after(service, github, HOUR)
    assert role_of(service, github, of_team) is None
    assert role_of(service, github, of_organization) is Role.GUEST
    github.orgs = []
    check_after(service, github, HOUR)
    assert role_of(service, github, of_organization) is None
    assert TOKENS not in github.asked
    identity = identity_of(service, github)
    assert (identity.name, identity.email) == ("Mona Lisa", github.person["email"])
    # The token is stored encrypted.
    keyring = Keyring(settings_of(service).secret_key)
    assert [keyring.decrypt(identity.refresh_token_ciphertext or "")] == list(github.tokens)


@pytest.mark.parametrize(
    "how", ["revoked", "suspended", "suspended by an administrator", "a token that has expired"]
)
def test_a_user_without_access_to_github_loses_access(
    service: LiveGatebell, github: FakeGitHub, how: str
) -> None:
    github.refresh_token = "yes" if "expired" in how else None
    browser = arrive(service, github, "--preset", "github")
    person = person_of(github)
    make_token(service, person)
    if "suspended" in how:
        said = SUSPENDED if how == "suspended" else SUSPENDED.replace(b"was", b"is")
        github.answers = {USER: lambda: (403, {}, said)}
    elif how == "revoked":
        github.tokens.clear()
    else:
        github.refresh_token = "of somebody else"
    check_after(service, github, HOUR)
    assert not is_signed_in(service, browser)
    assert not is_token_live(service, person)
    event = get_event_about_user(service, person, EventKind.IDENTITY_ENDED)
    assert event.details == {"browsers": 1, "applications_ended": 0, "tokens_revoked": 1}
    github.asked.clear()
    check_after(service, github, HOUR)
    assert github.asked == []


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, SUSPENDED),
        (403, b'{"message": "API rate limit exceeded"}'),
        (403, b'{"message": "You have exceeded a secondary rate limit"}'),
        (429, b"{}"),
        (404, b'{"message": "Not Found"}'),
        (302, b""),
        (200, b"<html>"),
        (200, b'{"id": 7, "login": "somebody-else", "name": null}'),
    ],
)
def test_an_outage_or_rate_limit_of_github_changes_nothing(
    service: LiveGatebell, github: FakeGitHub, status: int, body: bytes
) -> None:
    browser = arrive(service, github, "--preset", "github")
    make_token(service, person_of(github))
    before = identity_of(service, github)
    github.answers = {USER: lambda: (status, {}, body)}
    check_after(service, github, HOUR)
    assert github.asked[0] == USER
    after = identity_of(service, github)
    assert after.refresh_token_ciphertext == before.refresh_token_ciphertext
    assert after.name == before.name
    assert is_signed_in(service, browser)
    assert is_token_live(service, person_of(github))


@pytest.mark.long
def test_the_tokens_of_a_github_app_are_refreshed(
    service: LiveGatebell, github: FakeGitHub
) -> None:
    github.refresh_token = "yes"
    browser = arrive(service, github, "--preset", "github")
    for _ in range(2):
        github.tokens.clear()
        check_after(service, github, HOUR)
    assert github.asked.count(TOKENS) == 2
    assert is_signed_in(service, browser)
    kept = identity_of(service, github).refresh_token_ciphertext or ""
    assert Keyring(settings_of(service).secret_key).decrypt(kept) == github.refresh_token
    # A user who revokes the app's authorization has no valid token, even after a refresh.
    github.answers = {USER: lambda: (401, {}, b"{}")}
    check_after(service, github, HOUR)
    assert not is_signed_in(service, browser)
