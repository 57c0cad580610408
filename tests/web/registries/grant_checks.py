"""Checks that `test_additions.py` runs with a made-up grant."""

from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from prometheus_client import REGISTRY

from domain.oauth.applications.rejected_requests import find_rejected_requests
from domain.oauth.error_help import OAUTH_ERRORS
from domain.oauth.grants.registry import list_registrable_grant_types
from domain.oauth.registration import parse_client_metadata
from forms.applications import InstanceApplicationForm
from tests.support.service.commands import operate
from web.extensions import db
from web.services import get_services
from web.settings.policies import oauth as policies

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def application(app: Flask) -> dict[str, Any]:
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    options = ("--owner", "alice", "--scopes", "read_user", "--allow-grant", "handshake")
    return dict(operate(app, "applications", "create", "Board", *options))


@pytest.fixture
def visitor(app: Flask) -> FlaskClient:
    return app.test_client()


def shake(visitor: FlaskClient, application: dict[str, Any], *handshakes: str) -> tuple[int, Any]:
    form = {"grant_type": "handshake", "handshake": list(handshakes)}
    auth = (application["application_id"], application["secret"])
    answer = visitor.post("/oauth/token", data=form, auth=auth)
    return answer.status_code, answer.json


def test_the_token_endpoint_accepts_the_grant(
    visitor: FlaskClient, application: dict[str, Any]
) -> None:
    assert shake(visitor, application, "firm") == (200, {"access_token": "firm Board"})


def test_a_repeated_parameter_of_the_grant_is_rejected(
    visitor: FlaskClient, application: dict[str, Any]
) -> None:
    status, body = shake(visitor, application, "firm", "firm")
    assert (status, body["error"]) == (400, "invalid_request")
    assert "handshake" in body["error_description"]


def test_owners_see_why_the_grant_was_rejected(
    app: Flask, visitor: FlaskClient, application: dict[str, Any]
) -> None:
    status, body = shake(visitor, application, "limp")
    assert (status, body["error_description"]) == (400, "The handshake is too weak.")
    with app.app_context():
        (refused,) = find_rejected_requests(application["id"], session=db.session())
    assert (refused.title, refused.advice) == ("Weak handshake", "Press harder.")


def test_the_grant_has_to_be_allowed(
    app: Flask, visitor: FlaskClient, application: dict[str, Any]
) -> None:
    operate(app, "applications", "change", str(application["id"]), "--forbid-grants")
    status, body = shake(visitor, application, "firm")
    assert (status, body["error"]) == (400, "unauthorized_client")


def test_the_grant_is_offered_to_administrators(app: Flask) -> None:
    with app.test_request_context():
        names = [each.title for each in InstanceApplicationForm().grant_choices]
    assert "Handshakes" in names


def test_discovery_lists_the_grant(visitor: FlaskClient) -> None:
    document = visitor.get("/.well-known/oauth-authorization-server").json
    assert document is not None
    assert "handshake" in document["grant_types_supported"]


def test_the_api_description_contains_the_parameters_of_the_grant(visitor: FlaskClient) -> None:
    description = visitor.get("/api/openapi.json").json
    assert description is not None
    assert "handshake" in description["components"]["schemas"]["HandshakeExchange"]["properties"]


def test_clients_can_register_for_the_grant(app: Flask) -> None:
    with app.app_context():
        policy = get_services().live_settings.get_derived_value(policies.build_oauth_policy)
    offered = list_registrable_grant_types(policy)
    read = parse_client_metadata(
        {"grant_types": ["handshake"]}, offered=offered, require_https=False
    )
    assert read.own_words["grant_types"] == ["refresh_token", "handshake"]


def test_the_help_page_describes_errors_of_the_grant(visitor: FlaskClient) -> None:
    (found,) = (each for each in OAUTH_ERRORS if each.code == "invalid_grant")
    assert "handshake" in found.meaning
    assert "A handshake has to be firm." in visitor.get("/help/errors").text


def test_metrics_count_requests_of_the_grant(
    visitor: FlaskClient, application: dict[str, Any]
) -> None:
    labels = {"grant_type": "handshake", "outcome": "issued"}
    before = REGISTRY.get_sample_value("gatebell_token_requests_total", labels) or 0
    shake(visitor, application, "firm")
    assert REGISTRY.get_sample_value("gatebell_token_requests_total", labels) == before + 1
