"""Deployments of an environment, with the alerts that began after them."""

import re
from datetime import timedelta

import pytest
from sqlalchemy import insert, select, update

from domain.access.roles import Role
from models import Alert, Deployment, Project
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import database_of, now, signed_in
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


@pytest.mark.long
@pytest.mark.both_databases
def test_the_page_shows_the_limit_of_its_count_of_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    owner = person_for(gatebell, Role.OWNER)
    give_role(gatebell, endpoint.project, owner, Role.OWNER)
    script = api_caller(gatebell, owner, f"/projects/{endpoint.project}")
    moment = now()
    for ref, seconds in (("v1", 9_000), ("v2", 8_000), ("v3", 700), ("v4", 100)):
        body = {"environment": "production", "sha": SHA, "ref": ref, "tag": True}
        made = script.done("POST", "/deployments", json={**body, "status": "success"}, status=201)
        with database_of(gatebell) as session:
            begin = moment - timedelta(seconds=seconds)
            changed = update(Deployment).where(Deployment.id == made["id"])
            session.execute(changed.values(created_at=begin))
    with database_of(gatebell) as session:
        project_id = session.scalar(select(Project.id).where(Project.path == endpoint.project))
        common = {"project_id": project_id, "item_index": 0, "hosts": "", "events": 1}
        session.execute(
            insert(Alert),
            [
                {
                    **common,
                    **dict.fromkeys(("created_at", "last_event_at"), moment),
                    "started_at": moment - timedelta(seconds=number),
                    "iid": number,
                    "title": f"alert {number}",
                    "status": "resolved",
                    "severity": 1,
                    "environment": "production",
                }
                for number in range(1, 602)
            ],
        )
    page = words(
        signed_in(gatebell, owner).get(
            f"{gatebell.url}/{endpoint.project}/-/environments/production"
        )
    )
    _, _, shown = page.partition("Latest deployments")
    newest, third, second, first = re.split(r"v[123] 0123", shown)
    assert "alert 100 after" in newest
    assert "and 99 more" in newest
    assert "400 or more" in third
    assert "not counted" in second
    assert "not counted" in first
