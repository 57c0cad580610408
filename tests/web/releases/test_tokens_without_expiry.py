"""Tests of access tokens without expiry, over time and across releases."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select
from werkzeug.datastructures import MultiDict
from werkzeug.test import TestResponse

from domain.accounts.personal_data.inventory import export_personal_data
from domain.accounts.users import UserView
from domain.core.keyring import Keyring
from domain.housekeeping.pruning import Retention, prune_expired_rows
from domain.oauth.personal_tokens.expiry_notices import (
    ExpiryNoticeSettings,
    queue_token_expiry_notices,
)
from domain.oauth.personal_tokens.lifetimes import TokenLifetimes, assign_expiry_to_tokens
from domain.oauth.personal_tokens.tokens import TokenDetails, create_personal_token
from models import AuditEvent, PersonalAccessToken
from tests.support.releases.recorded_calls import NOON, Caller, RecordedService
from tests.support.wire.html_forms import forms_in
from web.jobs.retention import prune_database

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("G4")]

PAGE = "/-/user_settings/access_tokens"
A_YEAR = timedelta(days=365)
WITH_END = TokenLifetimes.from_max_lifetime(A_YEAR, may_never_end=False)


def endless_token(service: RecordedService, person: UserView, name: str = "nightly") -> Caller:
    details = TokenDetails(name=name, scopes="api", expires_at=None)
    with service.session() as session:
        made = create_personal_token(
            person.id, details, session=session, keyring=service.keyring, now=service.now
        )
    return Caller(service, made.clear)


def end_of(caller: Caller) -> str | None:
    answer = caller("GET", "/personal_access_tokens/self")
    assert answer.status_code == 200, answer.text
    found: str | None = answer.get_json()["expires_at"]
    return found


def words(answer: TestResponse) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.text)))


def send(browser: FlaskClient, path: str, ending: str, **values: Any) -> TestResponse:
    page = browser.get(path)
    form = next(each for each in forms_in(page.text) if (each.action or path).endswith(ending))
    done = browser.post(form.action or path, data=MultiDict(form.filled(**values)))
    assert done.status_code == 302, done.text
    return browser.get(path.removesuffix("/new"))


def shown_token(service: RecordedService, page: TestResponse) -> Caller:
    found = re.search(r'<code id="new-token">(gbp-[^<]+)</code>', page.text)
    assert found, page.text
    return Caller(service, found[1])


@pytest.mark.long
@pytest.mark.both_databases
def test_the_page_shows_that_a_token_never_expires_and_keeps_that_at_rotation(
    service: RecordedService,
) -> None:
    alice = service.person("alice")
    browser = service.browser_of(alice)
    form = words(browser.get(f"{PAGE}/new"))
    assert "If empty, the token never expires." in form
    page = send(browser, f"{PAGE}/new", "/new", name="nightly", scopes=["api"], expires_at="")
    token = shown_token(service, page)
    assert end_of(token) is None
    assert re.search(r'data-label="Expires">\s*never\s*<', page.text)

    service.wait(days=4000)
    browser = service.browser_of(alice)
    rotated = shown_token(service, send(browser, PAGE, "/rotate"))
    assert end_of(rotated) is None
    assert token("GET", "/user").status_code == 401

    service.change_release("16.0")
    a_year_on = (service.now + A_YEAR).date().isoformat()
    shown = f"{service.now + A_YEAR:%-d %b %Y}"
    assert f"expires on {shown}, the latest possible date." in words(browser.get(f"{PAGE}/new"))
    # The worker has not processed the token, so it has no expiry yet and gets one by rotation.
    assert end_of(shown_token(service, send(browser, PAGE, "/rotate"))) == a_year_on


@pytest.mark.long
@pytest.mark.both_databases
def test_the_worker_sets_an_expiry_in_a_year_once_and_in_slices(
    service: RecordedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.oauth.personal_tokens.lifetimes._BATCH_SIZE", 2)
    alice = service.person("alice")
    tokens = [endless_token(service, alice, f"nightly {n}") for n in range(5)]
    commits = []
    with service.session() as session:
        before = TokenLifetimes.from_max_lifetime(A_YEAR, may_never_end=True)
        options: dict[str, Any] = {"session": session, "now": service.now}
        assert (
            assign_expiry_to_tokens(before, **options, commit_batch=lambda: commits.append(1)) == 0
        )
        assert (
            assign_expiry_to_tokens(WITH_END, **options, commit_batch=lambda: commits.append(1))
            == 5
        )
        assert (
            assign_expiry_to_tokens(WITH_END, **options, commit_batch=lambda: commits.append(1))
            == 0
        )
    assert len(commits) == 3
    assert {end_of(each) for each in tokens} == {"2027-03-01"}
    with service.session() as session:
        kinds = select(func.count()).where(AuditEvent.kind == "token.expiry_set")
        assert session.scalar(kinds.where(AuditEvent.user_id == alice.id)) == 5


@pytest.mark.long
@pytest.mark.both_databases
def test_pruning_after_a_release_change_sets_an_expiry(
    service: RecordedService,
) -> None:
    token = endless_token(service, service.person("alice"))
    assert prune_database(service.settings)["tokens_given_expiry"] == 0
    assert end_of(token) is None
    moved = replace(service.settings, release="16.0")
    assert prune_database(moved)["tokens_given_expiry"] == 1
    today = datetime.now(UTC).date()
    assert end_of(token) in {str(today + A_YEAR), str(today + A_YEAR - timedelta(days=1))}


@pytest.mark.both_databases
def test_a_token_without_expiry_stays_valid(service: RecordedService) -> None:
    alice = service.person("alice")
    service.project_of(alice)
    token = endless_token(service, alice)
    service.wait(days=20_000)
    with service.session() as session:
        removed = prune_expired_rows(
            Retention(keep_deliveries=10, keep_for=timedelta(days=1)),
            session=session,
            now=service.now,
            commit_batch=lambda: None,
        )
        assert removed["personal_access_tokens"] == 0
        held: Any = export_personal_data(
            alice, session=session, keyring=Keyring(service.settings.secret_key), now=service.now
        )
        (exported,) = held["personal_access_tokens"]
        assert exported["expires_at"] is None
        assert session.scalar(select(PersonalAccessToken.expires_at)) is None
    assert token("GET", "/user").status_code == 200
    assert end_of(token) is None


@pytest.mark.long
@pytest.mark.both_databases
def test_a_message_is_sent_before_the_new_expiry(service: RecordedService) -> None:
    sign = ExpiryNoticeSettings(
        instance_name="Gatebell",
        base_url="http://localhost",
        keyring=Keyring(service.settings.secret_key),
        ahead=timedelta(days=7),
    )
    token = endless_token(service, service.person("alice"))

    def written() -> int:
        with service.session() as session:
            return queue_token_expiry_notices(sign, session=session, now=service.now)

    service.wait(days=900)
    assert written() == 0
    with service.session() as session:
        assign_expiry_to_tokens(
            WITH_END, session=session, now=service.now, commit_batch=lambda: None
        )
    service.wait(days=350)
    assert (written(), token("GET", "/user").status_code) == (0, 200)
    service.wait(days=10)
    assert written() == 1
    service.wait(days=6)
    refused = token("GET", "/user")
    assert refused.status_code == 401
    assert "expired" in refused.get_json()["error_description"]


def test_lifetimes_depend_on_the_release_and_the_maximum() -> None:
    ends = {
        (days, may): TokenLifetimes.from_max_lifetime(
            timedelta(days=days), may_never_end=may
        ).compute_expiry(None, now=NOON)
        for days in (30, 365, 3650)
        for may in (True, False)
    }
    midnight = datetime(2026, 3, 1, tzinfo=UTC)
    assert ends == {
        (30, True): midnight + timedelta(days=30),
        (30, False): midnight + timedelta(days=30),
        (365, True): None,
        (365, False): midnight + A_YEAR,
        (3650, True): None,
        (3650, False): midnight + A_YEAR,
    }
