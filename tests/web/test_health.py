"""Health and metrics when something is missing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text

from tests.live import SECRET_KEY
from web.extensions import db
from web.settings import Settings, read_settings


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
