"""Follows the guide to sign in through another provider."""

import json

from tests.support.accounts.people import make_user, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.documents.guides import guide_for_project
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    running_provider,
    sign_in_through,
)
from tests.support.sign_in.second_factors import assert_signed_in


def test_the_guide_sets_a_provider_up(gatebell: LiveGatebell) -> None:
    root = make_user(gatebell, name="root", admin=True)
    token = make_token(gatebell, root, scopes="api").clear
    slug = unique("idp")
    with running_provider() as provider:
        said = guide_for_project("identity-providers", gatebell, "").run_shell(
            "create.sh",
            TOKEN=token,
            NAME=slug,
            ISSUER=provider.url,
            PROVIDER_CLIENT_ID=CLIENT_ID,
            PROVIDER_CLIENT_SECRET=CLIENT_SECRET,
        )
        made = json.loads(said)
        assert made["redirect_uri"] == f"{gatebell.url}/users/auth/{slug}/callback"
        assert_signed_in(sign_in_through(gatebell, provider, slug))
