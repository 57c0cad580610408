"""Checks that `test_additions.py` runs with a made-up alert format."""

import json
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from domain.alerts.formats.registry import INTEGRATION_TYPE_NAMES
from domain.alerts.matching.alert_labels import find_alert_labels
from tests.support.oauth.registrations import token_of
from tests.support.service.commands import operate
from web.extensions import db
from web.services import get_parser_settings

pytestmark = pytest.mark.one_database("sqlite")
_PASSWORD = "the very first of them"
_SEEN = {"ships": ["Argo", "Pequod"], "keeper": "Sostratus"}
_PAGES = "/acme/shop/-/settings/integrations"
_API = "/api/v4/projects/acme%2Fshop/alert_management_integrations"


@pytest.fixture
def visitor(app: Flask) -> FlaskClient:
    """Return the browser of alice, who is an administrator and owns the project acme/shop."""
    app.config.update(WTF_CSRF_ENABLED=False, WTF_CSRF_METHODS=frozenset())
    person = ("users", "create", "alice", "--email", "alice@people.example", "--admin")
    done = app.test_cli_runner().invoke(args=(*person, "--password-stdin"), input=f"{_PASSWORD}\n")
    assert done.exit_code == 0, done.output
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop", "--owner", "alice")
    browser = app.test_client()
    form = {"login": "alice", "password": _PASSWORD}
    assert browser.post("/users/sign_in", data=form).status_code == 302
    return browser


def made(app: Flask) -> dict[str, Any]:
    arguments = ("acme/shop", "--type", "lighthouse", "--name", "Pharos")
    return operate(app, "integrations", "create", *arguments)


def send(
    visitor: FlaskClient,
    integration: dict[str, Any],
    *lines: str,
    content_type: str = "text/x-lighthouse",
) -> Any:
    headers = {"Authorization": f"Bearer {integration['key']}"}
    path = "/" + integration["url"].split("/", 3)[3]
    return visitor.post(path, data="\n".join(lines), content_type=content_type, headers=headers)


def test_pages_offer_the_format_and_show_how_to_send(visitor: FlaskClient) -> None:
    page = visitor.get(f"{_PAGES}/new").text
    assert "Lighthouse takes what a keeper sees." in page
    form = {"type": "lighthouse", "name": "", "active": "y"}
    added = visitor.post(f"{_PAGES}/new", data=form, follow_redirects=True)
    assert "Integration added." in added.text
    assert "Argo" in added.text  # The name is part of the snippets.
    assert "The keeper&#39;s curl" in added.text
    configure = visitor.get(added.request.path.replace("credentials", "configure")).text
    assert "API URL" not in configure
    assert "Custom mapping" not in configure
    assert "Severity words" in configure
    assert "Lighthouse" in visitor.get(_PAGES).text
    test = visitor.get(added.request.path.replace("credentials", "test")).text
    assert "Sostratus" in test


def test_the_api_accepts_and_documents_the_format(visitor: FlaskClient) -> None:
    who = token_of(visitor, "alice")
    body = {"type": "lighthouse", "name": "Pharos"}
    answer = visitor.post(_API, json=body, headers=who)
    assert answer.status_code == 201, answer.text
    found: Any = answer.json
    assert (found["type"], found["api_url"]) == ("lighthouse", None)
    refused = visitor.post(_API, json={**body, "type": "fog"}, headers=who)
    names = [*INTEGRATION_TYPE_NAMES]
    assert f"must be one of {', '.join(names)}" in refused.text
    tried: Any = visitor.post(f"{_API}/{found['id']}/test", json={"dry_run": True}, headers=who)
    assert [each["title"] for each in tried.json["alerts"]] == ["Argo is in danger"]
    assert visitor.put(f"{_API}/{found['id']}/mapping", json={}, headers=who).status_code >= 400
    description = visitor.get("/api/openapi.json").json
    assert description is not None
    schemas = description["components"]["schemas"]
    assert "lighthouse" in names
    assert schemas["MappedIntegration"]["properties"]["type"]["enum"] == names
    assert schemas["Integration"]["properties"]["type"]["enum"] == names
    ships = {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
    }
    assert ships in schemas["AnyAlerts"]["anyOf"]


def test_payloads_of_the_format_are_recognized(
    app: Flask, visitor: FlaskClient, tmp_path: Path
) -> None:
    form = {"sample": json.dumps(_SEEN)}
    page = visitor.post(f"{_PAGES}/new", data={**form, "do": "recognize"}).text
    assert "Recognized: Pharos." in page
    assert "Tell the keeper." in page
    assert '<option selected value="lighthouse">' in page
    answer: Any = visitor.post(f"{_API}/recognize", json=form, headers=token_of(visitor, "alice"))
    assert (answer.json["tool"], answer.json["type"]) == ("Pharos", "lighthouse")
    file = tmp_path / "seen.json"
    file.write_text(form["sample"])
    assert operate(app, "integrations", "recognize", str(file))["type"] == "lighthouse"


def test_alerts_of_the_format_are_parsed_shown_and_labeled(
    app: Flask, visitor: FlaskClient
) -> None:
    integration = made(app)
    seen = ("keeper Sostratus", "Argo", "Pequod")
    answer = send(visitor, integration, *seen)
    assert [each["title"] for each in answer.json] == ["Argo is in danger", "Pequod is in danger"]
    assert send(visitor, integration, "fog").status_code == 400
    assert send(visitor, integration, "keeper Sostratus").status_code == 422
    refused = send(visitor, integration, *seen, content_type="application/json")
    assert refused.status_code == 415
    assert "text/x-lighthouse" in refused.text
    page = visitor.get("/acme/shop/-/alerts/2").text
    assert "in the format of Lighthouse" in page
    assert "Pequod" in page
    assert "Argo" not in page
    assert "grouped into one alert by the fingerprint field" in page
    deliveries = visitor.get(f"{_PAGES}/{integration['id']}/deliveries").text
    assert "2 opened" in deliveries
    with app.app_context():
        found = find_alert_labels([1, 2], session=db.session(), reading=get_parser_settings())
    assert [each.labels["ship"] for each in found.values()] == ["Argo", "Pequod"]
