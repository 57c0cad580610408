"""Deployments of an environment beside the alerts that began after them."""

import pytest

from domain.accounts.roles import Role
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import signed_in
from tests.support.accounts.team import give_role, person_for
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.page_text import words

SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.both_databases
def test_the_page_shows_which_alerts_began_after_a_deployment(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    owner = person_for(gatebell, Role.OWNER)
    give_role(gatebell, endpoint.project, owner, Role.OWNER)
    script = api_caller(gatebell, owner, f"/projects/{endpoint.project}")

    def deploy(ref: str, **changes: object) -> None:
        body = {"environment": "production", "sha": SHA, "ref": ref, "tag": True, **changes}
        script.done("POST", "/deployments", json=body, status=201)

    def send(title: str, **fields: object) -> None:
        endpoint.accepted(title=title, platform_environment_name="production", **fields)

    send("before everything", start_time="2026-01-01T00:00:00Z")
    deploy("v1.0.0", status="success")
    send("slow")
    send("slower", end_time="2100-01-01T00:00:00Z")
    endpoint.accepted(title="elsewhere")
    deploy("v1.1.0", status="failed")
    browser = signed_in(gatebell, owner)
    environments = f"{gatebell.url}/{endpoint.project}/-/environments"
    page = words(browser.get(f"{environments}/production"))
    _, _, shown = page.partition("Latest deployments")
    newest, _, older = shown.partition("v1.0.0")
    assert "v1.1.0 01234567 Failed" in newest
    assert newest.rstrip().endswith("none")
    assert "Success" in older
    assert "slow after" in older
    assert "and 1 more" in older
    assert "v1.1.0 Failed" in words(browser.get(environments))
