"""Tests of two valid secrets, which let an application change its secret without downtime."""

import re
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
import requests
from sqlalchemy import select, update

from models import Application, ApplicationSecret
from tests.support.accounts.people import ClientCredentials, alice, database_of, now, signed_in
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit
from tests.support.wire.page_text import words

pytestmark = pytest.mark.one_database("sqlite")

PAGES = "/-/user_settings/applications"


def open_page(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> requests.Response:
    return browser.get(f"{gatebell.url}{PAGES}/{client.id}")


def renew(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials, overlap: str
) -> str:
    """Renew the secret on the page and return the new one."""
    page = open_page(gatebell, browser, client)
    answer = submit(browser, page, form_to(page, "/renew_secret"), overlap=overlap)
    assert answer.status_code == 302, answer.text
    (secret,) = set(re.findall(r"gbs-[0-9A-Za-z]+", open_page(gatebell, browser, client).text))
    return str(secret)


def is_accepted(gatebell: LiveGatebell, client: ClientCredentials, secret: str) -> bool:
    """Return whether a secret of the application is accepted."""
    form = {"token": "nothing", "client_id": client.client_id, "client_secret": secret}
    status = machine(gatebell).post(f"{gatebell.url}/oauth/introspect", data=form).status_code
    assert status in {200, 401}
    return status == 200


def set_secrets(gatebell: LiveGatebell, client: ClientCredentials, **columns: object) -> None:
    with database_of(gatebell) as session:
        session.execute(
            update(ApplicationSecret)
            .where(ApplicationSecret.application_id == client.id)
            .values(**columns)
        )


@pytest.mark.long
@pytest.mark.spec("F4")
@pytest.mark.parametrize(("overlap", "length"), [("1h", 1 / 24), ("1d", 1), ("7d", 7), ("30d", 30)])
def test_the_old_secret_stays_valid_for_the_chosen_time(
    gatebell: LiveGatebell,
    browser: requests.Session,
    client: ClientCredentials,
    overlap: str,
    length: float,
) -> None:
    new = renew(gatebell, browser, client, overlap)

    assert is_accepted(gatebell, client, client.secret)
    assert is_accepted(gatebell, client, new)
    page = words(open_page(gatebell, browser, client))
    assert "Current" in page
    assert "Expiring" in page
    with database_of(gatebell) as session:
        end = session.scalar(
            select(ApplicationSecret.expires_at).where(
                ApplicationSecret.application_id == client.id,
                ApplicationSecret.expires_at.is_not(None),
            )
        )
    assert end is not None
    assert abs(end - now() - timedelta(days=length)) < timedelta(minutes=2)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("F4")
def test_an_expired_secret_is_rejected(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    new = renew(gatebell, browser, client, "1h")
    with database_of(gatebell) as session:
        session.execute(
            update(ApplicationSecret)
            .where(
                ApplicationSecret.application_id == client.id,
                ApplicationSecret.expires_at.is_not(None),
            )
            .values(expires_at=now() - timedelta(seconds=1))
        )

    assert not is_accepted(gatebell, client, client.secret)
    assert is_accepted(gatebell, client, new)
    assert "Expiring" not in words(open_page(gatebell, browser, client))


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("F4")
def test_a_second_renewal_replaces_the_older_of_two_secrets(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    second = renew(gatebell, browser, client, "7d")
    third = renew(gatebell, browser, client, "1h")

    accepted = [is_accepted(gatebell, client, each) for each in (client.secret, second, third)]
    assert accepted == [False, True, True]

    last = renew(gatebell, browser, client, "now")

    accepted = [is_accepted(gatebell, client, each) for each in (second, third, last)]
    assert accepted == [False, False, True]


@pytest.mark.spec("F4")
def test_the_old_secret_can_be_ended_early(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    new = renew(gatebell, browser, client, "30d")
    page = open_page(gatebell, browser, client)
    form = form_to(page, "/end")

    answer = submit(browser, page, form)
    again = submit(browser, page, form)

    assert (answer.status_code, again.status_code) == (302, 404)
    assert not is_accepted(gatebell, client, client.secret)
    assert is_accepted(gatebell, client, new)


def test_the_current_secret_cannot_be_ended(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    with database_of(gatebell) as session:
        current = session.scalar(
            select(ApplicationSecret.id).where(ApplicationSecret.application_id == client.id)
        )
    page = open_page(gatebell, browser, client)
    token = form_to(page, "/renew_secret").value("csrf_token")

    address = f"{gatebell.url}{PAGES}/{client.id}/secrets/{current}/end"
    answer = browser.post(address, data={"csrf_token": token}, allow_redirects=False)

    assert answer.status_code == 404
    assert is_accepted(gatebell, client, client.secret)


def test_users_cannot_end_or_renew_the_secrets_of_others(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    new = renew(gatebell, browser, client, "7d")
    end = form_to(open_page(gatebell, browser, client), "/end").action
    stranger = signed_in(gatebell, alice(gatebell))
    page = stranger.get(f"{gatebell.url}{PAGES}/new")
    token = form_with(page, "redirect_uris").value("csrf_token")

    for address in (end, f"{PAGES}/{client.id}/renew_secret"):
        form = {"csrf_token": token, "overlap": "now"}
        answer = stranger.post(gatebell.url + address, data=form, allow_redirects=False)
        assert answer.status_code == 404

    assert is_accepted(gatebell, client, client.secret)
    assert is_accepted(gatebell, client, new)


def test_an_invalid_overlap_is_rejected_and_changes_nothing(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    page = open_page(gatebell, browser, client)

    for overlap in ("", "2d", "-1", "9" * 5000, "now\x00"):
        answer = submit(browser, page, form_to(page, "/renew_secret"), overlap=overlap)

        assert answer.status_code == 422, overlap
        assert 'class="error"' in answer.text
        assert "gbs-" not in answer.text
    assert is_accepted(gatebell, client, client.secret)


@pytest.mark.long
@pytest.mark.both_databases
def test_the_last_use_of_a_secret_is_recorded_once_a_minute(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    assert is_accepted(gatebell, client, client.secret)
    first = _last_use(gatebell, client)
    assert first is not None
    assert is_accepted(gatebell, client, client.secret)
    assert _last_use(gatebell, client) == first

    set_secrets(gatebell, client, last_used_at=now() - timedelta(minutes=5))
    with database_of(gatebell) as session:
        session.execute(
            update(Application).where(Application.id == client.id).values(last_used_at=None)
        )
    page = words(open_page(gatebell, browser, client))
    assert "(5 min ago)" in page
    assert is_accepted(gatebell, client, client.secret)
    latest = _last_use(gatebell, client)
    assert latest is not None
    assert latest > now() - timedelta(minutes=1)
    assert re.search(
        r"Last used [0-9:]{5} \(just now\)", words(open_page(gatebell, browser, client))
    )


def test_a_wrong_secret_does_not_count_as_use(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    assert not is_accepted(gatebell, replace(client, secret=""), "gbs-wrong")
    assert _last_use(gatebell, client) is None


def _last_use(gatebell: LiveGatebell, client: ClientCredentials) -> datetime | None:
    with database_of(gatebell) as session:
        return session.scalar(
            select(ApplicationSecret.last_used_at).where(
                ApplicationSecret.application_id == client.id
            )
        )
