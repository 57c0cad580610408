"""Tests of concurrent renewals of an application's secret: at most two secrets stay valid."""

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import requests
from sqlalchemy import select

from models import ApplicationSecret
from tests.support.accounts.people import (
    ClientCredentials,
    bob,
    database_of,
    make_application,
    signed_in,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to

PARALLEL = 10
PAGES = "/-/user_settings/applications"


def renew_at_once(gatebell: LiveGatebell, client: ClientCredentials, overlap: str) -> list[str]:
    """Renew the secret in several browsers, and return the secret that each of them shows."""
    barrier = Barrier(PARALLEL)
    address = f"{gatebell.url}{PAGES}/{client.id}"

    def renew(browser: requests.Session) -> str:
        page = browser.get(address)
        token = form_to(page, "/renew_secret").value("csrf_token")
        barrier.wait(timeout=60)
        form = {"csrf_token": token, "overlap": overlap}
        answer = browser.post(f"{address}/renew_secret", data=form, allow_redirects=False)
        assert answer.status_code == 302, answer.text
        (secret,) = set(re.findall(r"gbs-[0-9A-Za-z]+", browser.get(address).text))
        return str(secret)

    browsers = [signed_in(gatebell, bob(gatebell)) for _ in range(PARALLEL)]
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(renew, browsers))


def is_accepted(gatebell: LiveGatebell, client: ClientCredentials, secret: str) -> bool:
    form = {"token": "nothing", "client_id": client.client_id, "client_secret": secret}
    return gatebell.http().post(f"{gatebell.url}/oauth/introspect", data=form).status_code == 200


@pytest.mark.long
@pytest.mark.spec("F4")
@pytest.mark.parametrize(("overlap", "live"), [("7d", 2), ("now", 1)])
def test_at_most_two_secrets_are_valid_after_concurrent_renewals(
    gatebell: LiveGatebell, overlap: str, live: int
) -> None:
    client = make_application(gatebell, bob(gatebell))

    shown = renew_at_once(gatebell, client, overlap)

    assert len(set(shown)) == PARALLEL
    accepted = [secret for secret in shown if is_accepted(gatebell, client, secret)]
    assert len(accepted) == live
    assert not is_accepted(gatebell, client, client.secret)
    with database_of(gatebell) as session:
        ends = session.scalars(
            select(ApplicationSecret.expires_at)
            .where(ApplicationSecret.application_id == client.id)
            .order_by(ApplicationSecret.id)
        ).all()
    assert len(ends) == live
    # Only the newest secret has no end.
    assert [end is None for end in ends] == [False] * (live - 1) + [True]


@pytest.mark.spec("F4")
def test_concurrent_renewals_do_not_break_an_application_in_use(
    gatebell: LiveGatebell,
) -> None:
    client = make_application(gatebell, bob(gatebell))
    with ThreadPoolExecutor(1) as pool:
        renewals = pool.submit(renew_at_once, gatebell, client, "7d")
        statuses = set()
        while not renewals.done():
            form = {
                "token": "x",
                "client_id": client.client_id,
                "client_secret": client.secret,
            }
            answer = gatebell.http().post(f"{gatebell.url}/oauth/introspect", data=form)
            statuses.add(answer.status_code)
    # The secret works until the second renewal, and is then rejected without a server error.
    assert statuses <= {200, 401}
    assert len(renewals.result()) == PARALLEL
