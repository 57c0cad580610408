"""Health and metrics when something is missing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text

from tests.support.live import SECRET_KEY
from web.extensions import db
from web.settings import Settings, read_settings

MakeApp = Callable[[Settings], Flask]


def test_a_database_that_is_not_migrated_is_not_ready(app: Flask, client: FlaskClient) -> None:
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json == {"status": "unavailable", "database": "not migrated"}
    assert client.get("/healthz").status_code == 200


def test_while_the_database_is_away_the_process_is_alive_but_not_ready(
    tmp_path: Path, make_app: Callable[[Settings], Flask]
) -> None:
    nowhere = {
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "INSTANCE_PATH": str(tmp_path),
        "SECRET_KEY": SECRET_KEY,
    }
    client = make_app(read_settings(nowhere)).test_client()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json == {"status": "unavailable", "database": "away"}
    assert int(answer.headers["Retry-After"]) > 0
    assert client.get("/healthz").status_code == 200


def test_metrics_may_be_kept_for_those_who_have_the_token(
    settings: Settings, make_app: Callable[[Settings], Flask]
) -> None:
    client = make_app(replace(settings, metrics_token="only-ours")).test_client()
    refused = client.get("/metrics")
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert client.get("/metrics", headers={"Authorization": "Bearer other"}).status_code == 401
    answer = client.get("/metrics", headers={"Authorization": "Bearer only-ours"})
    assert answer.status_code == 200
    assert b"gatebell_http_requests_total" in answer.data


def status_of_metrics(
    settings: Settings, make_app: MakeApp, peer: str, headers: dict[str, str], **changes: Any
) -> int:
    client = make_app(replace(settings, **changes)).test_client()
    environ = {"REMOTE_ADDR": peer}
    return client.get("/metrics", headers=headers, environ_base=environ).status_code


FORWARDED = {"X-Forwarded-For": "127.0.0.1"}
PUBLIC = {"base_url": "https://bell.example"}


@pytest.mark.parametrize(
    ("peer", "headers", "changes", "status"),
    [
        ("127.0.0.1", {}, {}, 200),
        ("::1", {}, {}, 200),
        ("::ffff:127.0.0.1", {}, {}, 200),
        ("203.0.113.7", {}, {}, 403),
        ("10.1.2.3", {}, {"metrics_networks": "10.0.0.0/8"}, 200),
        ("::ffff:10.1.2.3", {}, {"metrics_networks": "10.0.0.0/8, fd00::/8"}, 200),
        ("11.1.2.3", {}, {"metrics_networks": "10.0.0.0/8"}, 403),
        # A proxy that nobody declared, which tells whom it speaks for, or does not.
        ("127.0.0.1", FORWARDED, {}, 403),
        ("127.0.0.1", {"Via": "1.1 proxy"}, {}, 403),
        ("127.0.0.1", {}, PUBLIC, 403),
        ("10.1.2.3", FORWARDED, {"metrics_networks": "10.0.0.0/8"}, 403),
        # One that was declared: the address that it tells counts.
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
    ],
)
def test_metrics_without_a_token_are_for_this_machine_and_trusted_networks(
    settings: Settings,
    make_app: MakeApp,
    peer: str,
    headers: dict[str, str],
    changes: dict[str, Any],
    status: int,
) -> None:
    assert status_of_metrics(settings, make_app, peer, headers, **changes) == status
    own = {**headers, "Authorization": "Bearer only-ours"}
    assert status_of_metrics(settings, make_app, peer, own, metrics_token="only-ours") == 200
