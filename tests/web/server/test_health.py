"""Tests of health checks and metrics when the database is missing or a scraper is untrusted."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlalchemy.orm import Session

from domain.core.hosts import PRUNE_JOB, WORKER_HEARTBEAT_JOB, claim_job_run
from tests.support.service.live import SECRET_KEY
from web.database.schema import get_newest_known_revision
from web.extensions import db
from web.settings.environment import Settings, parse_settings

MakeApp = Callable[[Settings], Flask]


def test_a_database_that_is_not_migrated_is_not_ready(app: Flask, client: FlaskClient) -> None:
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json == {"status": "unavailable", "database": "not migrated"}
    assert client.get("/healthz").status_code == 200


def test_without_a_database_the_process_is_alive_but_not_ready(
    tmp_path: Path, make_app: Callable[[Settings], Flask]
) -> None:
    nowhere = {
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "INSTANCE_PATH": str(tmp_path),
        "SECRET_KEY": SECRET_KEY,
    }
    client = make_app(parse_settings(nowhere)).test_client()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json == {"status": "unavailable", "database": "away"}
    assert int(answer.headers["Retry-After"]) > 0
    assert client.get("/healthz").status_code == 200


def test_without_a_database_metrics_include_the_reason_and_the_values_that_alert_rules_use(
    tmp_path: Path, make_app: Callable[[Settings], Flask]
) -> None:
    nowhere = {
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "INSTANCE_PATH": str(tmp_path),
        "SECRET_KEY": SECRET_KEY,
    }
    told = make_app(parse_settings(nowhere)).test_client().get("/metrics").text
    assert 'gatebell_ready{reason="away"} 0.0\n' in told
    assert f'",migration="{get_newest_known_revision()}",version="' in told
    for name in ("worker_last_seen", "prune_last_started"):
        assert f"gatebell_{name}_timestamp_seconds 0.0\n" in told


@pytest.mark.long
def test_metrics_keep_the_last_known_times_without_a_database(
    app: Flask, client: FlaskClient
) -> None:
    seen = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
    with app.app_context(), Session(db.engine) as session, session.begin():
        for job in (WORKER_HEARTBEAT_JOB, PRUNE_JOB):
            claim_job_run(job, period=timedelta(minutes=1), session=session, now=seen)
    told = client.get("/metrics").text
    assert 'gatebell_ready{reason="ok"} 1.0\n' in told
    times = [line for line in told.splitlines() if "_timestamp_seconds 1.7" in line]
    assert len(times) == 2
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(text("ALTER TABLE job_turns RENAME TO gone"))
    again = client.get("/metrics").text
    assert [line for line in again.splitlines() if "_timestamp_seconds 1.7" in line] == times


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_metrics_can_require_a_token(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    client = make_app(replace(settings, metrics_token="only-ours")).test_client()
    refused = client.get("/metrics")
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert client.get("/metrics", headers={"Authorization": "Bearer other"}).status_code == 401
    answer = client.get("/metrics", headers={"Authorization": "Bearer only-ours"})
    assert answer.status_code == 200
    assert b"gatebell_http_requests_total" in answer.data


FORWARDED = {"X-Forwarded-For": "127.0.0.1"}
PUBLIC = {"base_url": "https://bell.example"}
Scrape = tuple[str, dict[str, str], dict[str, Any], int]
#: A peer, its headers, changed settings, and the status of a request without a token.
SCRAPES: tuple[Scrape, ...] = (
    ("127.0.0.1", {}, {}, 200),
    ("::1", {}, {}, 200),
    ("::ffff:127.0.0.1", {}, {}, 200),
    ("203.0.113.7", {}, {}, 403),
    ("10.1.2.3", {}, {"metrics_networks": "10.0.0.0/8"}, 200),
    ("::ffff:10.1.2.3", {}, {"metrics_networks": "10.0.0.0/8, fd00::/8"}, 200),
    ("11.1.2.3", {}, {"metrics_networks": "10.0.0.0/8"}, 403),
    # An undeclared proxy, with or without the client's address.
    ("127.0.0.1", FORWARDED, {}, 403),
    ("127.0.0.1", {"Via": "1.1 proxy"}, {}, 403),
    ("127.0.0.1", {}, PUBLIC, 403),
    ("10.1.2.3", FORWARDED, {"metrics_networks": "10.0.0.0/8"}, 403),
    # A declared proxy: the address that it forwards counts.
    ("127.0.0.1", {"X-Forwarded-For": "203.0.113.7"}, {**PUBLIC, "trusted_proxies": 1}, 403),
    ("127.0.0.1", {}, {**PUBLIC, "trusted_proxies": 1}, 200),
    ("127.0.0.1", FORWARDED, {**PUBLIC, "trusted_proxies": 1}, 403),
    ("127.0.0.1", FORWARDED, {**PUBLIC, "trusted_proxies": 2}, 403),
    (
        "127.0.0.1",
        {"X-Forwarded-For": "127.0.0.1, 203.0.113.7"},
        {**PUBLIC, "trusted_proxies": 1},
        403,
    ),
    (
        "127.0.0.1",
        {"X-Forwarded-For": "10.1.2.3"},
        {**PUBLIC, "trusted_proxies": 1, "metrics_networks": "10.0.0.0/8"},
        200,
    ),
)


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_metrics_without_a_token_are_limited_to_localhost_and_trusted_networks(
    settings: Settings, make_app: MakeApp
) -> None:
    clients: dict[str, FlaskClient] = {}
    wrong = []
    for peer, headers, changes, status in SCRAPES:
        if str(changes) not in clients:
            clients[str(changes)] = make_app(replace(settings, **changes)).test_client()
        asked = {"headers": headers, "environ_base": {"REMOTE_ADDR": peer}}
        answer = clients[str(changes)].get("/metrics", **asked)
        if answer.status_code != status:
            wrong.append((peer, headers, changes, answer.status_code))
    assert wrong == []


@pytest.mark.one_database("sqlite")
@pytest.mark.parametrize("changes", [{}, {**PUBLIC, "trusted_proxies": 1}], ids=["here", "public"])
def test_metrics_with_the_token_are_available_from_any_address(
    settings: Settings, make_app: MakeApp, changes: dict[str, Any]
) -> None:
    client = make_app(replace(settings, metrics_token="only-ours", **changes)).test_client()
    own = {"Authorization": "Bearer only-ours"}
    for peer, headers in (("203.0.113.7", {}), ("127.0.0.1", FORWARDED)):
        asked = {"headers": {**headers, **own}, "environ_base": {"REMOTE_ADDR": peer}}
        assert client.get("/metrics", **asked).status_code == 200, (peer, headers)
