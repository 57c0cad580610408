"""Where clients that register themselves may send people, and those that send nobody anywhere."""

import pytest
from flask.testing import FlaskClient

from tests.support.oauth.oauth_wire import PKCE
from tests.support.oauth.registrations import CALLBACK, DEVICE, GOOD, assert_wrong, register

pytestmark = pytest.mark.one_database("sqlite")


def test_a_client_for_devices_alone_needs_no_redirect_uri(visitor: FlaskClient) -> None:
    said = {"client_name": "Telly", "grant_types": [DEVICE], "token_endpoint_auth_method": "none"}
    answer = register(visitor, said)
    assert answer.status_code == 201, answer.text
    told = answer.get_json()
    assert told["redirect_uris"] == []
    form = {"client_id": told["client_id"], "scope": "read_user"}
    assert visitor.post("/oauth/authorize_device", data=form).status_code == 200
    query = {**form, "redirect_uri": CALLBACK, "response_type": "code", **PKCE}
    page = visitor.get("/oauth/authorize", query_string=query)
    assert (page.status_code, "Location" in page.headers) == (400, False)
    assert_wrong(visitor.post("/oauth/par", data=query), "invalid_request")
    for grants in (None, ["authorization_code", DEVICE]):
        wrong = {**said, "grant_types": grants}
        assert_wrong(register(visitor, wrong), "invalid_redirect_uri")


def test_a_client_cannot_send_people_where_no_application_is(visitor: FlaskClient) -> None:
    for scheme in ("filesystem", "view-source", "mailto", "jar", "feed", "chrome"):
        uri = f"{scheme}:https://client.example/"
        assert_wrong(register(visitor, {**GOOD, "redirect_uris": [uri]}), "invalid_redirect_uri")
