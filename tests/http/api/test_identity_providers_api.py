"""Tests of `/api/v4/admin/identity_providers`, and of the commands with the same actions."""

from typing import Any

import pytest
import requests

from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import alice, unique
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.openid_provider import FakeProvider, sign_in_through
from tests.support.sign_in.provider_groups import new_group
from tests.support.sign_in.second_factors import assert_signed_in

pytestmark = pytest.mark.one_database("postgres")


def call(
    gatebell: LiveGatebell, method: str, path: str = "", *, granted: str = "api", **body: Any
) -> requests.Response:
    """Send a request as the administrator."""
    script = api_caller(
        gatebell, get_shared_administrator(gatebell), "/admin/identity_providers", scopes=granted
    )
    return script(method, path, json=body or None)


def create(gatebell: LiveGatebell, **changes: Any) -> requests.Response:
    usual = {
        "slug": unique("idp"),
        "title": "Company",
        "issuer": "https://login.example.com",
        "client_id": "gatebell",
        "client_secret": unique("a secret of a provider"),
    }
    return call(gatebell, "POST", **{**usual, **changes})


@pytest.mark.long
@pytest.mark.both_databases
def test_a_provider_is_created_changed_tested_and_deleted(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    group = new_group(gatebell)
    roles = [f"sre = {group}: Developer"]
    answer = create(gatebell, issuer=provider.url, group_roles=roles, email_domains=["a.example"])
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert "secret" not in answer.text
    assert made["redirect_uri"] == f"{gatebell.url}/users/auth/{made['slug']}/callback"
    assert (made["scopes"], made["groups_claim"]) == ("openid profile email", "groups")
    assert (made["active"], made["creates_accounts"], made["identities"]) == (True, False, 0)
    assert (made["group_roles"], made["email_domains"]) == (roles, ["a.example"])
    one = f"/{made['id']}"
    changed = call(gatebell, "PUT", one, active=False, group_roles=[]).json()
    assert changed == {**made, "active": False, "group_roles": []}
    assert call(gatebell, "GET", one).json() == changed
    # The newest provider is on the last page.
    total = call(gatebell, "GET", "?per_page=1").headers["X-Total"]
    assert call(gatebell, "GET", f"?per_page=1&page={total}").json() == [changed]
    tested = call(gatebell, "POST", f"{one}/test").json()
    assert (tested["works"], tested["keys"]) == (True, 1)
    assert tested["jwks_uri"] == f"{provider.url}/keys"
    assert call(gatebell, "DELETE", one).status_code in {200, 204}
    assert call(gatebell, "GET", one).status_code == 404


def test_a_preset_fills_missing_fields(gatebell: LiveGatebell) -> None:
    made = create(gatebell, preset="google", issuer="").json()
    assert made["issuer"] == "https://accounts.google.com"
    assert create(gatebell, preset="entra").json()["vouches_for_email"] is True
    assert (
        create(gatebell, preset="entra", vouches_for_email=False).json()["vouches_for_email"]
        is False
    )
    assert create(gatebell, preset="keycloak", issuer="").status_code == 400


WRONG: tuple[dict[str, Any], ...] = (
    {"slug": "Über"},
    {"slug": ""},
    {"slug": "a" * 64},
    {"title": ""},
    {"title": "a\nb"},
    {"title": "x" * 101},
    {"preset": "myspace"},
    {"issuer": ""},
    {"issuer": "login.example.com"},
    {"issuer": "https://user:word@login.example.com"},
    {"issuer": "https://login.example.com/\x00"},
    {"client_id": ""},
    {"client_secret": ""},
    {"scopes": "email"},
    {"groups_claim": "a\x00b"},
    {"group_roles": ["x"]},
    {"group_roles": ["a = b: c"]},
    {"group_roles": [7]},
    {"group_roles": ["a = b: Guest"] * 201},
    {"email_domains": 7},
    {"active": "perhaps"},
)


def test_an_invalid_provider_is_rejected(gatebell: LiveGatebell) -> None:
    for changes in WRONG:
        answer = create(gatebell, **changes)
        assert answer.status_code in {400, 422}, (changes, answer.text)


def test_a_taken_slug_is_rejected(gatebell: LiveGatebell) -> None:
    slug = unique("idp")
    assert [create(gatebell, slug=slug).status_code for _ in range(2)] == [201, 400]


def test_the_test_of_an_unreachable_provider_returns_a_result(gatebell: LiveGatebell) -> None:
    made = create(gatebell, issuer="http://127.0.0.1:1").json()
    answer = call(gatebell, "POST", f"/{made['id']}/test")
    assert answer.status_code == 200
    assert answer.json()["works"] is False
    assert "127.0.0.1:1" in answer.json()["problem"]
    never = create(gatebell, issuer="http://169.254.169.254")
    assert never.status_code == 400
    assert "OUTGOING_PRIVATE_ADDRESSES" in never.text


def test_commands_create_change_show_and_delete_providers(gatebell: LiveGatebell) -> None:
    slug = unique("idp")
    made = gatebell.cli(
        *("identity-providers", "create", "--slug", slug, "--title", "By command"),
        *("--issuer", "https://login.example.com", "--client-id", "x", "--client-secret", "y"),
        *("--preset", "okta", "--email-domains", "a.example", "--no-active"),
    )
    assert (made["scopes"], made["active"]) == ("openid profile email groups offline_access", False)
    number = str(made["id"])
    changed = gatebell.cli("identity-providers", "change", number, "--active", "--title", "Other")
    assert changed == {**made, "active": True, "title": "Other"}
    assert gatebell.cli("identity-providers", "show", number) == changed
    assert gatebell.cli("identity-providers", "delete", number)["deleted"] is True


def test_administrators_can_find_users_by_their_identity(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    assert_signed_in(sign_in_through(gatebell, provider, slug))
    subject, name = provider.person["sub"], provider.person["preferred_username"]
    by = api_caller(gatebell, get_shared_administrator(gatebell), "/users")
    for query, expected in (
        ({"extern_uid": subject, "provider": slug}, [name]),
        ({"extern_uid": subject}, [name]),
        ({"extern_uid": subject, "provider": "another"}, []),
        ({"extern_uid": "unknown", "provider": slug}, []),
    ):
        assert [each["username"] for each in by.done("GET", params=query)] == expected
    # Other users do not find anyone by identity.
    others = api_caller(gatebell, alice(gatebell), "/users")
    assert others.done("GET", params={"extern_uid": subject, "provider": slug}) == []
