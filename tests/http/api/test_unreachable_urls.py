"""Tests that URLs at excluded addresses are rejected when they are entered."""

from typing import Any

import pytest

from domain.core.errors import InvalidError
from domain.delivery.outgoing.ip_address_policy import check_outgoing_url_allowed
from domain.delivery.outgoing.urls import parse_outgoing_url
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import make_project, make_user
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
#: Address outside of 127.0.0.0/8, the only private network that the settings of the tests allow.
EXCLUDED = "https://10.1.2.3/in"


def callers(gatebell: LiveGatebell) -> dict[str, tuple[ApiCaller, dict[str, Any], str]]:
    """Return clients that create objects with a URL, other values, and the name of its field."""
    alice = make_user(gatebell)
    shop = f"/projects/{make_project(gatebell, alice).replace('/', '%2F')}"
    provider = {"slug": "inside", "title": "Inside", "client_id": "a", "client_secret": "b" * 20}
    by_root = get_shared_administrator(gatebell)
    return {
        "webhook": (api_caller(gatebell, alice, f"{shop}/webhooks"), {}, "url"),
        "audit stream": (api_caller(gatebell, by_root, "/audit_streams"), {}, "url"),
        "identity provider": (
            api_caller(gatebell, by_root, "/admin/identity_providers"),
            provider,
            "issuer",
        ),
    }


def test_unreachable_urls_are_rejected_for_all_kinds_of_objects(gatebell: LiveGatebell) -> None:
    for kind, (call, values, field) in callers(gatebell).items():
        said = call.refused("POST", json={**values, field: EXCLUDED}, status=400)
        assert "The URL cannot be reached: 10.1.2.3 is a private address." in said, kind
        assert "OUTGOING_PRIVATE_ADDRESSES" in said, kind


def test_a_webhook_cannot_be_changed_to_an_unreachable_url(gatebell: LiveGatebell) -> None:
    call, _, _ = callers(gatebell)["webhook"]
    made = call.done("POST", json={"url": "https://hooks.example/in"}, status=201)
    said = call.refused("PUT", f"/{made['id']}", json={"url": EXCLUDED}, status=400)
    assert "cannot be reached" in said


@pytest.mark.parametrize(
    ("url", "networks", "is_allowed"),
    [
        ("http://localhost:9000/", "", False),
        ("http://a.localhost/", "", False),
        ("http://127.1/", "", False),
        ("http://2130706433/", "", False),
        ("http://0x7f000001/", "", False),
        ("http://[::1]/", "", False),
        ("http://[::ffff:10.0.0.1]/", "", False),
        ("http://169.254.169.254/", "127.0.0.0/8", False),
        ("http://localhost:9000/", "127.0.0.0/8", True),
        ("http://10.1.2.3/", "10.0.0.0/8", True),
        ("http://8.8.8.8/", "", True),
        # The addresses of these names depend on DNS, and can change.
        ("http://chat.internal/", "", True),
        ("http://3com.example/", "", True),
    ],
)
def test_a_url_is_rejected_only_if_it_contains_an_excluded_address(
    url: str, networks: str, is_allowed: object
) -> None:
    parsed = parse_outgoing_url(url)
    if is_allowed:
        check_outgoing_url_allowed(parsed, networks)
        return
    with pytest.raises(InvalidError, match="cannot be reached") as caught:
        check_outgoing_url_allowed(parsed, networks)
    assert caught.value.field == "url"
