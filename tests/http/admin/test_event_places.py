"""Tests that audit events about a project or group are listed in its own audit events."""

from pathlib import Path
from urllib.parse import quote

import pytest

from domain.audit.events import NAMESPACE_KIND_PREFIXES, Event, EventKind, EventSource, store_event
from tests.support.accounts.api_caller import ApiCaller
from tests.support.accounts.people import database_of, make_project, make_user, now
from tests.support.accounts.personal_tokens import make_token
from tests.support.git.client import GitClient
from tests.support.registry.notifications import notify, pushed, seconds
from tests.support.service.live import LiveGatebell

pytestmark = [pytest.mark.spec("G4"), pytest.mark.one_database("sqlite")]


def kinds_of(api: ApiCaller, at: str) -> list[str]:
    found = api.done("GET", f"{at}/audit_events?per_page=100")
    number = api.done("GET", at)["id"]
    noun = "Project" if at.startswith("/projects") else "Group"
    for each in found:
        # Events about an account of the project have that account as their entity.
        is_of_user = each["entity_type"] == "User"
        assert is_of_user or (each["entity_type"], each["entity_id"]) == (noun, number), each
    return sorted(each["event_name"] for each in found)


def use(api: ApiCaller, at: str) -> None:
    """Create and delete objects that both projects and groups have."""
    channel = api.done(
        "POST",
        f"{at}/notification_channels",
        json={"type": "email", "address": "team@acme.example"},
        status=201,
    )
    api.done("DELETE", f"{at}/notification_channels/{channel['id']}", status=204)
    new = {"name": "ci", "scopes": ["read_api"]}
    token = api.done("POST", f"{at}/access_tokens", json=new, status=201)
    rotated = api.done("POST", f"{at}/access_tokens/{token['id']}/rotate", status=200)
    api.done("DELETE", f"{at}/access_tokens/{rotated['id']}", status=204)


def test_events_of_projects_and_groups_are_listed_there(
    gatebell: LiveGatebell, tmp_path: Path
) -> None:
    owner = make_user(gatebell)
    project, token = make_project(gatebell, owner), make_token(gatebell, owner).clear
    api = ApiCaller(url=f"{gatebell.url}/api/v4", token=token)
    at, group = f"/projects/{quote(project, safe='')}", f"/groups/{project.partition('/')[0]}"
    before = {place: kinds_of(api, place) for place in (at, group)}
    for place in (at, group):
        use(api, place)
    git = GitClient(gatebell=gatebell, home=tmp_path / "home", token=token)
    assert git.push(git.new_work({"a": b"a"}), project).status == 0
    git.clone(project)
    assert notify(gatebell, pushed(project, "v1", content="1", at=seconds(1))).status_code == 200
    (image,) = api.done("GET", f"{at}/registry/repositories")
    here = f"{at}/registry/repositories/{image['id']}"
    api.done("DELETE", f"{here}/tags?name_regex_delete=v9", status=202)
    api.done("DELETE", here, status=202)

    shared = ["notification_channel.created", "notification_channel.removed"]
    shared += ["token.issued", "token.revoked", "token.rotated"]
    own = ["registry_repository.removed", "registry_tags.removed", "repository_download_operation"]
    assert kinds_of(api, group) == sorted(before[group] + shared)
    assert kinds_of(api, at) == sorted(before[at] + shared + own)


def test_a_project_event_without_a_project_is_rejected(gatebell: LiveGatebell) -> None:
    kinds = [kind for kind in EventKind if kind.startswith(NAMESPACE_KIND_PREFIXES)]
    assert len(kinds) > 50
    named = ("project.", "group.", "member.", "invitation.")
    with database_of(gatebell) as session:
        for kind in kinds:
            if kind.startswith(named):
                continue
            with pytest.raises(ValueError, match="must name a project"):
                store_event(Event(kind=kind), EventSource(), session=session, now=now())
