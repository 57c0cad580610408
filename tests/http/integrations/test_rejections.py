"""Emails to maintainers when a working integration starts to reject everything."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
import requests
from sqlalchemy import select, update

from models import Delivery, Mail
from tests.support.accounts.people import alice, database_of, now, settings_of, signed_in
from tests.support.alerts.integration_pages import address, opened
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import change
from tests.support.mail.stored_texts import decrypt_mails
from tests.support.service.live import LiveGatebell
from web.jobs.mail import record_rejecting_integrations

pytestmark = pytest.mark.both_databases


def integrations(gatebell: LiveGatebell, endpoint: Endpoint) -> Script:
    return script_of(gatebell, endpoint.project, "alert_management_integrations")


def reject(gatebell: LiveGatebell, endpoint: Endpoint, *, minutes: int = 11) -> None:
    """Send three rejected requests, the first one the given number of minutes ago."""
    for body, status in ((b"{", 400), (b"{}", 401), (b"", 400)):
        key = "Bearer wrong" if status == 401 else f"Bearer {endpoint.key}"
        assert endpoint.post(body, Authorization=key).status_code == status
    with database_of(gatebell) as session:
        newest = select(Delivery.id).where(Delivery.integration_id == endpoint.id)
        ids = session.scalars(newest.order_by(Delivery.id.desc()).limit(3)).all()
    earlier = update(Delivery).where(Delivery.id == ids[-1])
    change(gatebell, earlier.values(received_at=now() - timedelta(minutes=minutes)))


def accept(gatebell: LiveGatebell, endpoint: Endpoint, *, minutes_ago: int = 0) -> None:
    endpoint.accepted(title="Works")
    newest = select(Delivery.id).where(Delivery.integration_id == endpoint.id)
    with database_of(gatebell) as session:
        number = session.scalar(newest.order_by(Delivery.id.desc()).limit(1))
    moved = update(Delivery).where(Delivery.id == number)
    change(gatebell, moved.values(received_at=now() - timedelta(minutes=minutes_ago)))


def run_watch(gatebell: LiveGatebell) -> int:
    return record_rejecting_integrations(
        replace(settings_of(gatebell), mail_url="smtp://127.0.0.1:1")
    )


def mails(gatebell: LiveGatebell, endpoint: Endpoint) -> Sequence[Mail]:
    statement = select(Mail).where(Mail.key.like(f"integration {endpoint.id} rejects%"))
    with database_of(gatebell) as session:
        found = session.scalars(statement.order_by(Mail.id)).all()
        session.expunge_all()
        return decrypt_mails(found, settings_of(gatebell).secret_key)


def test_maintainers_get_one_email_for_each_episode(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    accept(gatebell, endpoint, minutes_ago=60)
    reject(gatebell, endpoint)

    for _ in range(2):
        run_watch(gatebell)

    (mail,) = mails(gatebell, endpoint)
    assert mail.recipient == alice(gatebell).email
    assert mail.subject == f"Alerts for “Hook” in {endpoint.project} are rejected"
    assert f"/{endpoint.project}/-/settings/integrations/{endpoint.id}/deliveries" in mail.text
    assert "status 400" in mail.text
    shown = integrations(gatebell, endpoint).get(f"/{endpoint.id}")
    assert shown["rejected_since"].endswith("Z")
    assert integrations(gatebell, endpoint).get()[0]["rejected_since"] == shown["rejected_since"]
    reject(gatebell, endpoint)
    run_watch(gatebell)
    assert len(mails(gatebell, endpoint)) == 1

    accept(gatebell, endpoint)
    assert integrations(gatebell, endpoint).get(f"/{endpoint.id}")["rejected_since"] is None
    run_watch(gatebell)
    moved = update(Delivery).where(Delivery.integration_id == endpoint.id)
    change(gatebell, moved.values(received_at=now() - timedelta(hours=1)))
    reject(gatebell, endpoint)
    run_watch(gatebell)
    assert len(mails(gatebell, endpoint)) == 2


def test_pages_and_metrics_show_rejecting_integrations(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    accept(gatebell, endpoint, minutes_ago=60)
    reject(gatebell, endpoint)
    run_watch(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    assert "All rejected" in browser.get(address(gatebell, endpoint.project)).text
    for at, said in (
        ("test", "All requests have been rejected since"),
        ("configure", "All requests are rejected, so they open no alerts"),
    ):
        assert said in opened(gatebell, endpoint, f"{{id}}/{at}")[1].text
    metrics = requests.get(f"{gatebell.url}/metrics", timeout=30).text
    value = metrics.split("\ngatebell_integrations_rejecting ")[1].split("\n")[0]
    assert float(value) >= 1


@pytest.mark.parametrize("case", ["never worked", "too short", "off", "tested"])
def test_other_rejections_send_no_email(gatebell: LiveGatebell, case: str) -> None:
    endpoint = connect(gatebell)
    if case == "tested":
        integrations(gatebell, endpoint).post(f"/{endpoint.id}/test", payload="{}")
    elif case != "never worked":
        accept(gatebell, endpoint, minutes_ago=60)
    reject(gatebell, endpoint, minutes=5 if case == "too short" else 11)
    if case == "off":
        integrations(gatebell, endpoint).put(f"/{endpoint.id}", active=False)
    run_watch(gatebell)
    assert len(mails(gatebell, endpoint)) == 0


def test_turning_an_integration_off_ends_an_episode(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    accept(gatebell, endpoint, minutes_ago=60)
    reject(gatebell, endpoint)
    run_watch(gatebell)
    integrations(gatebell, endpoint).put(f"/{endpoint.id}", active=False)
    run_watch(gatebell)
    assert integrations(gatebell, endpoint).get(f"/{endpoint.id}")["rejected_since"] is None


def test_an_episode_is_reported_after_the_log_was_pruned(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Works")
    gone = update(Delivery).where(Delivery.integration_id == endpoint.id)
    change(gatebell, gone.values(integration_id=None))
    reject(gatebell, endpoint)
    run_watch(gatebell)
    assert len(mails(gatebell, endpoint)) == 1
