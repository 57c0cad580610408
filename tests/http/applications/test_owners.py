"""Tests of an application's list of users, and of messages about expiring secrets."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import update

from domain.core.clock import read_system_clock
from models import ApplicationSecret
from tests.support.accounts.administration import get_administrator_browser
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    database_of,
    make_application,
    make_user,
    now,
    open_browser,
    settings_of,
)
from tests.support.mail.stored_texts import list_texts
from tests.support.oauth.machines import machine_application, machine_token
from tests.support.oauth.oauth_wire import (
    open_authorization,
    parse_redirect,
    redeem,
    submit_decision,
)
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_to, submit
from tests.support.wire.page_text import words
from web.jobs.mail import queue_secret_expiry_mail

PAGES = "/-/user_settings/applications"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def gatebell(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service without a background worker, which would send the queued messages."""
    with running(new_service(request.param, only="app")) as service:
        yield service


@pytest.fixture
def owner(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell, name="owner")


@pytest.fixture
def client(gatebell: LiveGatebell, owner: Person) -> ClientCredentials:
    return make_application(gatebell, owner, scopes="read_user read_repository")


def let_in(gatebell: LiveGatebell, client: ClientCredentials, scope: str) -> Person:
    """Create a user who authorizes an application."""
    person = make_user(gatebell)
    browser = open_browser(gatebell, person)
    answer = submit_decision(browser, open_authorization(browser, gatebell, client, scope=scope))
    assert redeem(gatebell, client, parse_redirect(answer)["code"]).status_code == 200
    return person


def page_of(gatebell: LiveGatebell, person: Person, client: ClientCredentials) -> str:
    answer = open_browser(gatebell, person).get(f"{gatebell.url}{PAGES}/{client.id}/people")
    assert answer.status_code == 200, answer.text
    return words(answer)


@pytest.mark.long
def test_the_owner_sees_only_the_names_that_the_application_can_read(
    gatebell: LiveGatebell, owner: Person, client: ClientCredentials
) -> None:
    assert "No users yet" in page_of(gatebell, owner, client)
    known = let_in(gatebell, client, "read_user read_repository")
    hidden = let_in(gatebell, client, "read_repository")
    page = page_of(gatebell, owner, client)
    assert f"@{known.username} read_user, read_repository" in page
    assert hidden.username not in page
    assert "A user read_repository" in page
    people = api_caller(gatebell, owner, f"/applications/{client.id}/people").done("GET")
    assert [each["username"] for each in people] == [None, known.username]
    assert people[1]["scopes"] == ["read_user", "read_repository"]
    assert people[1]["authorized_at"]
    assert people[1]["last_used_at"]


def test_an_administrator_sees_all_names(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    hidden = let_in(gatebell, client, "read_repository")
    page = get_administrator_browser(gatebell).get(
        f"{gatebell.url}/admin/applications/{client.id}/people"
    )
    assert f"@{hidden.username}" in words(page)


@pytest.mark.long
def test_the_list_omits_users_who_revoked_access_and_service_accounts(
    gatebell: LiveGatebell, owner: Person
) -> None:
    client = machine_application(gatebell, owner)
    machine_token(gatebell, client)
    assert "No users yet" in page_of(gatebell, owner, client)
    person = let_in(gatebell, client, "read_user")
    assert person.username in page_of(gatebell, owner, client)
    browser = open_browser(gatebell, person)
    mine = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    submit(browser, mine, form_to(mine, "/revoke"))
    assert person.username not in page_of(gatebell, owner, client)


def test_a_stranger_cannot_see_the_users(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    stranger = make_user(gatebell)
    browser = open_browser(gatebell, stranger)
    assert browser.get(f"{gatebell.url}{PAGES}/{client.id}/people").status_code == 404
    people = api_caller(gatebell, stranger, f"/applications/{client.id}/people")
    assert people("GET").status_code == 404


def renew(gatebell: LiveGatebell, owner: Person, client: ClientCredentials) -> None:
    """Renew the secret with the default overlap of the form."""
    browser = open_browser(gatebell, owner)
    page = browser.get(f"{gatebell.url}{PAGES}/{client.id}")
    assert submit(browser, page, form_to(page, "/renew_secret")).status_code == 302


def setup_of(gatebell: LiveGatebell, owner: Person, client: ClientCredentials) -> str:
    browser = open_browser(gatebell, owner)
    return words(browser.get(f"{gatebell.url}{PAGES}/{client.id}/setup"))


def use(gatebell: LiveGatebell, client: ClientCredentials, *, is_old: bool, ago: timedelta) -> None:
    """Set the time of the last use of the old or the new secret."""
    end = ApplicationSecret.expires_at
    which = end.is_not(None) if is_old else end.is_(None)
    statement = update(ApplicationSecret).where(
        ApplicationSecret.application_id == client.id, which
    )
    with database_of(gatebell) as session:
        session.execute(statement.values(last_used_at=now() - ago))


def test_the_page_guides_through_a_renewal_without_downtime(
    gatebell: LiveGatebell, owner: Person, client: ClientCredentials
) -> None:
    assert "of 3" not in setup_of(gatebell, owner, client)
    renew(gatebell, owner, client)
    assert "Step 2 of 3: configure the application with the new secret." in setup_of(
        gatebell, owner, client
    )
    use(gatebell, client, is_old=True, ago=timedelta(minutes=5))
    use(gatebell, client, is_old=False, ago=timedelta(minutes=1))
    assert "the old secret was used within the last hour" in setup_of(gatebell, owner, client)
    use(gatebell, client, is_old=True, ago=timedelta(hours=2))
    assert "Step 3 of 3" in setup_of(gatebell, owner, client)


def emails_to(gatebell: LiveGatebell, person: Person) -> list[str]:
    return [*list_texts(gatebell, person)]


def queue(gatebell: LiveGatebell, *, later: timedelta = timedelta(0)) -> None:
    queue_secret_expiry_mail(settings_of(gatebell), clock=lambda: read_system_clock() + later)


def test_the_owner_gets_one_email_before_a_secret_in_use_expires(
    gatebell: LiveGatebell, owner: Person, client: ClientCredentials
) -> None:
    renew(gatebell, owner, client)
    queue(gatebell)
    # The old secret has not been used since the renewal.
    assert emails_to(gatebell, owner) == []
    use(gatebell, client, is_old=True, ago=-timedelta(seconds=1))
    queue(gatebell)
    queue(gatebell, later=timedelta(hours=1))
    (message,) = emails_to(gatebell, owner)
    assert "Deploy Board" in message
    assert f"{PAGES}/{client.id}" in message
    queue(gatebell, later=timedelta(days=2))
    assert len(emails_to(gatebell, owner)) == 1


def test_no_email_is_sent_days_before_a_secret_expires(
    gatebell: LiveGatebell, owner: Person, client: ClientCredentials
) -> None:
    renew(gatebell, owner, client)
    use(gatebell, client, is_old=True, ago=-timedelta(seconds=1))
    with database_of(gatebell) as session:
        mine = ApplicationSecret.application_id == client.id
        old = update(ApplicationSecret).where(mine, ApplicationSecret.expires_at.is_not(None))
        session.execute(old.values(expires_at=now() + timedelta(days=3)))
    queue(gatebell)
    assert emails_to(gatebell, owner) == []
    queue(gatebell, later=timedelta(days=2, hours=1))
    assert len(emails_to(gatebell, owner)) == 1
