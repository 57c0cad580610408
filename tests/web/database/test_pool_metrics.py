"""Tests of the metrics of connection pools, queued email and pruning."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from flask.testing import FlaskClient
from sqlalchemy import create_engine
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from domain.core.hosts import PRUNE_JOB, claim_job_run
from domain.delivery.mail.outbox import NewEmail, queue_emails
from tests.support.accounts.people import now
from web.database.autocommit_pool import AutocommitPool
from web.database.engine import build_engine_options, open_autocommit_engine
from web.extensions import db
from web.services import get_services
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("sqlite")


def scraped(client: FlaskClient) -> dict[str, float]:
    text = client.get("/metrics").text
    return {name: float(value) for name, value in re.findall(r"^(\S+) (\S+)$", text, re.MULTILINE)}


def events(client: FlaskClient, name: str) -> float:
    return scraped(client).get(f'gatebell_database_pool_events_total{{event="{name}"}}', 0.0)


@pytest.mark.long
def test_pools_that_run_out_are_counted(client: FlaskClient, settings: Settings) -> None:
    before = [events(client, name) for name in ("last_connection_taken", "timed_out")]
    small = replace(settings, database_pool_size=1, database_connect_timeout_seconds=1)
    engine = create_engine(settings.database_url, **build_engine_options(small))
    with engine.connect(), pytest.raises(PoolTimeoutError):
        engine.connect()
    kept = AutocommitPool(open_autocommit_engine(small), size=1, timeout_seconds=0.1)
    kept.run_transaction(lambda: _fail_to_take(kept))
    kept.close_idle_connections()
    engine.dispose()
    taken, timed_out = (events(client, name) for name in ("last_connection_taken", "timed_out"))
    assert (taken - before[0], timed_out - before[1]) == (2, 2)


def _fail_to_take(kept: AutocommitPool) -> None:
    with ThreadPoolExecutor(1) as another, pytest.raises(PoolTimeoutError):
        another.submit(kept.run_transaction, lambda: None).result()


def test_metrics_show_queued_mail_and_pruning(client: FlaskClient) -> None:
    assert scraped(client)["gatebell_prune_last_started_timestamp_seconds"] == 0
    message = NewEmail(key="k", recipient="a@acme.example", subject="s", text="t")
    with client.application.app_context():
        keyring, long_ago = get_services().keyring, now() - timedelta(minutes=5)
        queue_emails([message], session=db.session(), keyring=keyring, now=long_ago)
        claim_job_run(PRUNE_JOB, period=timedelta(minutes=10), session=db.session(), now=now())
        db.session.commit()
    found = scraped(client)
    assert found["gatebell_mail_queue_messages"] == 1
    assert found["gatebell_mail_failing_messages"] == 0
    assert 300 <= found["gatebell_mail_queue_age_seconds"] < 400
    age = now().timestamp() - found["gatebell_prune_last_started_timestamp_seconds"]
    assert 0 <= age <= 660
