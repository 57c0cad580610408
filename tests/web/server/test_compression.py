"""Tests that responses are compressed, except where the size could reveal a secret."""

import gzip
from collections.abc import Callable
from dataclasses import replace

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.alerts.integration_pages import opened
from tests.support.alerts.senders import connect
from tests.support.service.live import ROOT, LiveGatebell
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("sqlite")

PAGE, CSS = "/users/sign_in", "/static/css/base.css"
PUBLIC = "https://gatebell.example"


def asked(client: FlaskClient, path: str, **headers: str) -> TestResponse:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.get(path, headers={"Accept-Encoding": "gzip, br", **given}, buffered=True)


def test_a_page_is_compressed_if_the_client_accepts_gzip(client: FlaskClient) -> None:
    packed = asked(client, PAGE)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert b"<h1>Sign in</h1>" in gzip.decompress(packed.data)
    assert packed.content_length == len(packed.data)
    for encodings in ("br", "gzip;q=0"):
        plain = asked(client, PAGE, Accept_Encoding=encodings)
        assert "Content-Encoding" not in plain.headers
        assert "Accept-Encoding" in plain.headers["Vary"]
        assert b"<h1>Sign in</h1>" in plain.data


@pytest.mark.parametrize(
    ("site", "expected"),
    [("same-origin", "gzip"), ("none", "gzip"), ("cross-site", None), ("same-site", None)],
)
def test_under_tls_pages_are_not_compressed_for_cross_site_requests(
    settings: Settings, make_app: Callable[[Settings], Flask], site: str, expected: str | None
) -> None:
    client = make_app(replace(settings, base_url=PUBLIC)).test_client()
    answer = asked(client, PAGE, Sec_Fetch_Site=site)
    assert answer.headers.get("Content-Encoding") == expected
    assert "Sec-Fetch-Site" in answer.headers["Vary"]
    assert "Content-Encoding" not in asked(client, PAGE).headers, "an old browser does not say"


def test_a_page_with_a_secret_is_never_compressed(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/credentials")
    assert endpoint.key in page.text
    assert "Content-Encoding" not in page.headers
    listed = browser.get(f"{gatebell.url}/{endpoint.project}")
    assert "Sign out" in listed.text
    assert listed.headers["Content-Encoding"] == "gzip"


def test_compressed_and_plain_files_can_be_cached(client: FlaskClient) -> None:
    packed, plain = asked(client, CSS), asked(client, CSS, Accept_Encoding="")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data == (ROOT / CSS[1:]).read_bytes()
    assert packed.cache_control.max_age == plain.cache_control.max_age
    for first in (packed, plain):
        assert "Accept-Encoding" in first.headers["Vary"]
        again = asked(client, CSS, If_None_Match=first.headers["ETag"])
        assert (again.status_code, again.data) == (304, b"")
    part = asked(client, CSS, Range="bytes=0-9")
    assert (part.status_code, part.data) == (206, plain.data[:10])


@pytest.mark.long
def test_other_responses_are_not_compressed(client: FlaskClient) -> None:
    for path in ("/healthz", "/.well-known/openid-configuration", "/api/v4/projects"):
        answer = asked(client, path)
        assert "Content-Encoding" not in answer.headers
        assert "Accept-Encoding" not in answer.headers.get("Vary", "")
