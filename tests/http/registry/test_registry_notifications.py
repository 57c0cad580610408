"""Notifications of the registry: stored with the same result in any order and any number."""

import itertools
import random
from typing import Any

import pytest

from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import alice, make_project
from tests.support.accounts.resource_tokens import script_of
from tests.support.oauth.oauth_wire import machine
from tests.support.registry.notifications import (
    ADDRESS,
    authorization,
    deleted,
    digest_of,
    notify,
    pushed,
    seconds,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture
def project(gatebell: LiveGatebell) -> str:
    return make_project(gatebell, alice(gatebell))


def listed(gatebell: LiveGatebell, project: str) -> dict[str, list[str]]:
    """Return the repositories of a project with their tags."""
    path = f"/projects/{project.replace('/', '%2F')}/registry/repositories"
    answer = script_of(gatebell, alice(gatebell)).send_request("GET", path, params={"tags": "true"})
    assert answer.status_code == 200, answer.text
    return {each["path"]: [tag["name"] for tag in each["tags"]] for each in answer.json()}


def registry_events(gatebell: LiveGatebell, outcome: str) -> float:
    text = machine(gatebell).get(f"{gatebell.url}/metrics").text
    name = f'gatebell_registry_events_total{{outcome="{outcome}"}}'
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


@pytest.mark.both_databases
@pytest.mark.spec("K4")
@pytest.mark.parametrize("seed", [None, 7, 8])
def test_pushes_and_deletions_have_the_same_result_in_any_order(
    gatebell: LiveGatebell, project: str, seed: int | None
) -> None:
    story = [
        pushed(project, "v1", content="a", at=seconds(1)),
        pushed(project, "v2", content="a", at=seconds(2)),
        pushed(project, "v1", content="b", at=seconds(3)),
        deleted(project, content="a", at=seconds(4)),
        pushed(f"{project}/deep/er", "v1", content="c", at=seconds(5)),
        deleted(f"{project}/deep/er", tag="v1", at=seconds(6)),
        pushed(f"{project}/gone", "v1", content="d", at=seconds(7)),
        deleted(f"{project}/gone", at=seconds(8)),
        pushed(f"{project}/back", "v1", content="e", at=seconds(9)),
        deleted(f"{project}/back", at=seconds(10)),
        pushed(f"{project}/back", "v2", content="e", at=seconds(11)),
    ]
    expected = {project: ["v1"], f"{project}/deep/er": [], f"{project}/back": ["v2"]}
    if seed is not None:
        random.Random(seed).shuffle(story)  # noqa: S311 - for an order
    # Each notification is sent twice, with its predecessor and with its successor.
    for first, second in itertools.pairwise([story[-1], *story]):
        assert notify(gatebell, first, second).status_code == 200
    assert listed(gatebell, project) == expected


@pytest.mark.long
@pytest.mark.both_databases
def test_a_new_project_does_not_get_images_of_a_deleted_project(gatebell: LiveGatebell) -> None:
    owner = api_caller(gatebell, alice(gatebell))
    project = make_project(gatebell, alice(gatebell))
    group, _, name = project.rpartition("/")
    notify(gatebell, pushed(project, "v1", content="a", at=seconds(1)))
    owner.done("DELETE", f"/projects/{project.replace('/', '%2F')}", status=202)
    group_id = owner.done("GET", f"/groups/{group}")["id"]
    owner.done("POST", "/projects", json={"name": name, "namespace_id": group_id}, status=201)

    # The registry sends this while the worker deletes the images.
    answer = notify(gatebell, deleted(project, content="b", at=seconds(2)))

    assert answer.status_code == 200
    assert listed(gatebell, project) == {}


@pytest.mark.long
def test_events_of_unknown_projects_are_counted_and_dropped(
    gatebell: LiveGatebell, project: str
) -> None:
    before = registry_events(gatebell, "unknown_project")
    group = project.partition("/")[0]
    for name in ("nobody/knows", group, f"{group}/other", project.partition("/")[2]):
        assert notify(gatebell, pushed(name)).status_code == 200
    assert registry_events(gatebell, "unknown_project") == before + 4
    assert listed(gatebell, project) == {}


@pytest.mark.long
def test_malformed_events_are_skipped_and_the_others_are_stored(
    gatebell: LiveGatebell, project: str
) -> None:
    pull = {**pushed(project), "action": "pull"}
    broken: list[Any] = [
        *(None, 7, "push", [], {}, {"action": "push"}, {"target": None}),
        pull,
        {**pushed(project), "timestamp": "yesterday"},
        {**pushed(project), "timestamp": 12},
        {**pushed(project), "timestamp": "2026-01-01T00:00:00"},
        {**pushed(project), "timestamp": "0001-01-01T00:00:00+23:59"},
        pushed(project.upper()),
        pushed(f"{project}\x00"),
        pushed("a/" * 200 + "b"),
        pushed(project, "not a tag"),
    ]
    for name, value in (("digest", "x"), ("digest", 1), ("tag", ["v1"]), ("repository", {})):
        event = pushed(project)
        event["target"][name] = value
        broken.append(event)
    for references in ("x", [1], [{"size": -1}], [{"size": 2**70}], [{"size": True}]):
        event = pushed(project, "odd", content="odd")
        event["target"] |= {"references": references, "mediaType": "a" * 300}
        broken.append(event)
    assert notify(gatebell, *broken, pushed(project, "good")).status_code == 200
    assert listed(gatebell, project) == {project: ["good", "odd"]}
    events = [pushed(project, f"v{number}", content=str(number)) for number in range(100)]
    assert notify(gatebell, *reversed(events)).status_code == 200
    assert len(listed(gatebell, project)[project]) == 102


NO_ENVELOPES: tuple[tuple[dict[str, Any], int], ...] = (
    *(({"data": text}, 400) for text in (b"", b"{", b"[]", b"null", b'{"events": {}}')),
    *(({"data": text}, 400) for text in (b'{"events": [NaN]}', b"[" * 100_000, b"\xff\xfe{")),
    ({"json": {"events": [{}] * 201}}, 400),
    ({"data": b" " * (1024 * 1024 + 1)}, 413),
    ({"data": b"{}", "headers": {"Content-Type": "text/plain"}}, 415),
    ({"data": b"x", "headers": {"Content-Encoding": "gzip"}}, 400),
)


def test_a_malformed_envelope_is_rejected(gatebell: LiveGatebell) -> None:
    for options, status in NO_ENVELOPES:
        answer = notify(gatebell, **options)
        assert answer.status_code == status, options
        assert answer.json()["message"]


@pytest.mark.both_databases
def test_notifications_need_the_secret_of_the_registry(
    gatebell: LiveGatebell, project: str
) -> None:
    secret = authorization(gatebell).removeprefix("Bearer ")
    for header in ("", "Bearer ", "Bearer wrong", secret[:-1], f"Basic {secret}", "Bearer é"):
        answer = notify(gatebell, pushed(project), headers={"Authorization": header.encode()})
        assert answer.status_code == 401, header
        assert "administrators" in answer.json()["message"]
    huge = b" " * (2 * 1024 * 1024)
    assert notify(gatebell, data=huge, headers={"Authorization": "no"}).status_code == 401
    assert listed(gatebell, project) == {}
    # Some configurations send only the secret.
    assert notify(gatebell, pushed(project), headers={"Authorization": secret}).status_code == 200
    assert listed(gatebell, project) == {project: ["v1"]}
    assert machine(gatebell).get(f"{gatebell.url}{ADDRESS}").status_code in {404, 405}


def test_a_project_with_capitals_has_lowercase_images(gatebell: LiveGatebell) -> None:
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    gatebell.cli("projects", "create", f"{group}/BiG", "--owner", alice(gatebell).username)
    assert notify(gatebell, pushed(f"{group}/big")).status_code == 200
    assert list(listed(gatebell, f"{group}/BiG")) == [f"{group}/big"]


def test_layers_without_a_manifest_create_a_repository_without_tags(
    gatebell: LiveGatebell, project: str
) -> None:
    layer = pushed(project, "", content="layer")
    layer["target"] |= {"mediaType": "application/octet-stream"}
    mount = {**pushed(f"{project}/b", ""), "action": "mount"}
    mount["target"] |= {"mediaType": "application/octet-stream", "fromRepository": project}
    assert notify(gatebell, layer, mount).status_code == 200
    assert listed(gatebell, project) == {project: [], f"{project}/b": []}
    assert digest_of("layer").startswith("sha256:")
