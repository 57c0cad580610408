"""Tests that the log shows where a request waited when its deadline passed."""

import logging

import gevent
import pytest
from flask.testing import FlaskClient

from web.server.gevent_worker import call_with_timeout

pytestmark = pytest.mark.one_database("sqlite")


def test_the_log_shows_where_a_request_waited(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def wait_for_ever() -> None:
        gevent.sleep(60)

    monkeypatch.setattr("blueprints.oauth.token.read_form_request", wait_for_ever)
    app = client.application
    inner = app.wsgi_app
    monkeypatch.setattr(
        app,
        "wsgi_app",
        lambda environ, start: call_with_timeout(inner, 0.05, environ, start),
    )
    with caplog.at_level(logging.ERROR, logger="gatebell.error"):
        answer = client.post("/oauth/token")
    assert answer.status_code == 503
    (record,) = caplog.records
    assert vars(record)["event"] == "request.timed_out"
    assert "wait_for_ever" in caplog.text
