"""Tests that lists known from GitLab accept its parameters, and that other lists are strict."""

from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest
import requests

from domain.access.roles import Role
from tests.http.api.projects.test_projects_api import made, new_group
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import make_user, unique
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.team import give_role
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

IGNORED = "Gatebell-Ignored-Parameters"
PAGES = "page=1&per_page=100&pagination=offset&sort=asc"
PROJECTS = (
    "archived=false&visibility=private&order_by=similarity&search=shop&search_namespaces=true"
    "&simple=true&owned=false&membership=true&starred=false&statistics=true&imported=false"
    "&with_custom_attributes=true&with_issues_enabled=true&with_merge_requests_enabled=true"
    "&repository_checksum_failed=false&wiki_checksum_failed=false&min_access_level=30&id_after=1"
    "&id_before=9&include_hidden=true&include_pending_delete=true&repository_storage=default"
    "&topic=&active=true&license=true"
)
GROUPS = (
    "skip_groups[]=1&all_available=true&search=acme&order_by=similarity&statistics=true"
    "&visibility=private&with_custom_attributes=true&owned=false&min_access_level=5"
    "&top_level_only=false&repository_storage=default&active=true&archived=false"
)
MEMBERS = "query=a&user_ids[]=1&skip_users[]=2&show_seat_info=true&state=active"
TOKENS = "state=active&revoked=false&search=a&created_after=2026-01-01T00:00:00Z"
#: Parameters that GitLab documents for each list.
DOCUMENTED: Mapping[str, str] = {
    "/projects": PROJECTS,
    "/users/1/projects": PROJECTS.removesuffix("&license=true"),
    "/groups": GROUPS,
    "/groups/{group}/subgroups": GROUPS,
    "/groups/{group}/descendant_groups": GROUPS,
    "/groups/{group}/transfer_locations": "search=a",
    "/groups/{group}/projects": (
        "archived=false&visibility=private&order_by=name&search=a&simple=true&owned=true"
        "&starred=false&topic=&with_issues_enabled=true&with_merge_requests_enabled=true"
        "&with_shared=true&include_subgroups=true&min_access_level=10&with_custom_attributes=true"
        "&with_security_reports=true&include_ancestor_groups=true&active=true"
    ),
    "/groups/{group}/members": MEMBERS,
    "/groups/{group}/members/all": MEMBERS,
    "/groups/{group}/invitations": "query=a",
    "/groups/{group}/access_tokens": TOKENS,
    "/groups/{group}/registry/repositories": "",
    "/projects/{project}/members/all": MEMBERS,
    "/projects/{project}/transfer_locations": "search=a",
    "/projects/{project}/access_tokens": TOKENS,
    "/projects/{project}/environments": "name=a&states=available",
    "/projects/{project}/deployments": "order_by=id&environment=a&status=success",
    "/projects/{project}/releases": "order_by=created_at&include_html_description=true",
    "/projects/{project}/repository/commits/{sha}/statuses": (
        "ref=main&stage=test&name=x&pipeline_id=1&order_by=pipeline_id&all=true"
    ),
    "/projects/{project}/registry/repositories": "tags=true&tags_count=true",
    "/personal_access_tokens": f"{TOKENS}&user_id=1",
    "/applications": "",
    "/audit_events": "created_after=2026-01-01T00:00:00Z&entity_type=User&entity_id=1",
    "/users": (
        "username=a&search=a&active=true&external=false&exclude_external=true&blocked=false"
        "&exclude_internal=true&exclude_active=false&exclude_humans=false&humans=true"
        "&without_project_bots=true&created_after=2026-01-01T00:00:00Z&order_by=name"
        "&two_factor=disabled&without_projects=true&admins=true&auditors=false&skip_ldap=true"
        "&extern_uid=&provider=x&saml_provider_id=&public_email=&with_custom_attributes=true"
    ),
}
#: Lists whose sort orders have other names in GitLab, or are not documented.
_OTHER_SORTS = ("/access_tokens", "_tokens", "/applications", "/audit_events")
#: Lists that exist only in Gatebell.
STRICT = (
    "/projects/{project}/alert_management_alerts",
    "/projects/{project}/alert_management_integrations",
    "/projects/{project}/incidents",
    "/projects/{project}/on_call/schedules",
    "/projects/{project}/escalation_policies",
    "/projects/{project}/silences",
    "/projects/{project}/webhooks",
    "/projects/{project}/heartbeats",
    "/releases/changes",
    "/releases/usage",
)


@cache
def script_of_root(gatebell: LiveGatebell) -> Api:
    return Api(gatebell, make_token(gatebell, get_shared_administrator(gatebell)).clear)


@cache
def shared_place(gatebell: LiveGatebell) -> dict[str, Any]:
    """Return the names of a group and its project, which no test changes."""
    script = script_of_root(gatebell)
    group = new_group(script)
    body = {"name": "Shop", "path": "shop", "namespace_id": group["id"]}
    project = made(script.send_request("POST", "/projects", json=body))
    return {"group": group["id"], "project": project["id"], "sha": "a" * 40}


@pytest.fixture
def script(gatebell: LiveGatebell) -> Api:
    return script_of_root(gatebell)


@pytest.fixture
def place(gatebell: LiveGatebell) -> dict[str, Any]:
    return shared_place(gatebell)


def get(script: Api, path: str, query: str = "", **headers: str) -> requests.Response:
    return script.send_request(
        "GET", f"{path}?{query}", headers={"Platform-Release": "16.11", **headers}
    )


def ids(answer: requests.Response) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()]


@pytest.mark.parametrize("path", DOCUMENTED)
def test_a_gitlab_list_accepts_documented_parameters_and_names_ignored_parameters(
    script: Api, place: dict[str, Any], path: str
) -> None:
    pages = PAGES.removesuffix("&sort=asc") if path.endswith(_OTHER_SORTS) else PAGES
    answer = get(script, path.format(**place), f"{DOCUMENTED[path]}&{pages}")
    assert answer.status_code == 200, answer.text
    assert IGNORED not in answer.headers
    query = f"colour=red&colour=blue&{quote('größe,')}[]=1&per_page=5"
    answer = get(script, path.format(**place), query)
    assert answer.status_code == 200, answer.text
    assert answer.headers[IGNORED] == "colour, gr%C3%B6%C3%9Fe%2C[]"
    assert answer.headers["X-Per-Page"] == "5"
    assert IGNORED.lower() in answer.headers["Access-Control-Expose-Headers"].lower()


@pytest.mark.parametrize("path", STRICT)
def test_a_list_that_gitlab_lacks_rejects_unknown_parameters(
    script: Api, place: dict[str, Any], path: str
) -> None:
    assert get(script, path.format(**place)).status_code == 200
    answer = get(script, path.format(**place), "sevrity=critical")
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error.startswith("`sevrity` is not a known parameter. Known parameters: ")
    assert ("per_page" in error, "token" in error) == (True, False)
    assert IGNORED not in answer.headers


def test_a_single_resource_ignores_unknown_parameters(script: Api, place: dict[str, Any]) -> None:
    query = "statistics=true&license=true&with_custom_attributes=true&with_projects=false&x=1&x=2"
    for path in (
        *("/projects/{project}", "/groups/{group}", "/users/1", "/version", "/user", "/metadata"),
        *("/application/settings", "/projects/{project}/job_token_scope"),
    ):
        answer = get(script, path.format(**place), query)
        assert answer.status_code == 200, answer.text


def test_an_invalid_value_of_a_known_parameter_is_rejected(
    script: Api, place: dict[str, Any]
) -> None:
    wrong = ("min_access_level=7", "archived=perhaps", "order_by=colour", "page=x", "id_after=x")
    for query in (*wrong, "visibility=secret", "search=a&search=b"):
        answer = get(script, "/projects", query)
        assert (answer.status_code, set(answer.json())) == (400, {"error", "errors"}), query
        assert answer.json()["error"].startswith(f"`{query.partition('=')[0]}`")
    states = get(script, f"/projects/{place['project']}/environments", "states=gone")
    assert states.json()["error"] == "`states` must be one of available, stopping, stopped."


@pytest.mark.both_databases
def test_filters_by_unsupported_attributes_find_nothing(script: Api, place: dict[str, Any]) -> None:
    of_group = f"/groups/{place['group']}"
    everything = {
        "/projects": ("topic=x", "starred=true", "imported=true", "with_programming_language=c"),
        f"{of_group}/projects": ("topic=x", "starred=true"),
        "/groups": ("archived=true", "active=false", "marked_for_deletion_on=2026-01-01"),
        f"{of_group}/members/all": ("state=awaiting",),
        "/users": ("external=true", "auditors=true", "extern_uid=7&provider=x"),
        f"/projects/{place['project']}/environments": ("states=stopped",),
    }
    made(
        script.send_request(
            "POST", f"/projects/{place['project']}/environments", json={"name": "p"}
        )
    )
    for path, queries in everything.items():
        assert ids(get(script, path)) != [], path
        for query in queries:
            answer = get(script, path, query)
            assert ids(answer) == [], (path, query)
            assert answer.headers["X-Total"] == "0"
    by_key = get(script, "/projects", "topic=x&pagination=keyset&order_by=id")
    assert (ids(by_key), by_key.headers.get("X-Total")) == ([], None)


@pytest.mark.long
@pytest.mark.both_databases
def test_supported_filters_restrict_the_list(script: Api) -> None:
    group = new_group(script)
    path = group["path"]
    bodies = ({"path": "open", "visibility": "public"}, {"path": "old"}, {"path": "shut"})
    open_, old, shut = (
        made(script.send_request("POST", "/projects", json={**body, "namespace_id": group["id"]}))[
            "id"
        ]
        for body in bodies
    )
    made(script.send_request("POST", f"/projects/{old}/archive"))
    inside = f"/groups/{group['id']}/projects"
    assert ids(get(script, inside, "active=true&sort=asc")) == [open_, shut]
    assert ids(get(script, inside, "active=false")) == [old]
    assert ids(get(script, "/projects", f"search={path}")) == []
    named = ids(get(script, "/projects", f"search={path}&search_namespaces=true&sort=asc"))
    assert named == [open_, old, shut]
    assert ids(get(script, "/groups", f"search={path}&visibility=public")) == [group["id"]]
    assert ids(get(script, "/groups", f"search={path}&visibility=private")) == []


@pytest.mark.both_databases
def test_an_access_level_known_only_to_gitlab_means_the_next_role(
    gatebell: LiveGatebell, script: Api
) -> None:
    group, person = new_group(script), make_user(gatebell)
    give_role(gatebell, group["full_path"], person, Role.DEVELOPER)
    own = Api(gatebell, make_token(gatebell, person).clear)
    for level, groups in ((5, 1), (10, 1), (25, 1), (40, 0)):
        found = ids(get(own, "/groups", f"min_access_level={level}"))
        assert found == [group["id"]] * groups, level


@pytest.mark.both_databases
def test_members_and_users_can_be_excluded_by_attributes(
    gatebell: LiveGatebell, script: Api
) -> None:
    group = new_group(script)
    name = unique("narrow")
    member, alone = (make_user(gatebell, name=name) for _ in range(2))
    give_role(gatebell, group["full_path"], member, Role.GUEST)
    (member_id,) = ids(get(script, "/users", f"username={member.username}"))
    (alone_id,) = ids(get(script, "/users", f"username={alone.username}"))
    members = f"/groups/{group['id']}/members"
    assert member_id in ids(get(script, members))
    assert member_id not in ids(get(script, members, f"skip_users[]={member_id}"))
    assert ids(get(script, "/users", f"search={name}&without_projects=true")) == [alone_id]
    assert ids(get(script, "/users", f"search={name}&exclude_humans=true")) == []
    assert ids(get(script, "/users", f"search={name}&exclude_active=true")) == []
    by_name = ids(get(script, "/users", f"search={name}&order_by=username&sort=asc"))
    expected = sorted([(member.username, member_id), (alone.username, alone_id)])
    assert by_name == [number for _, number in expected]


def test_page_zero_and_size_zero_mean_the_defaults(script: Api, place: dict[str, Any]) -> None:
    for path in ("/projects", "/projects/{project}/alert_management_alerts", "/releases/changes"):
        usual = get(script, path.format(**place))
        zero = get(script, path.format(**place), "page=0&per_page=0")
        assert (zero.status_code, zero.json()) == (200, usual.json())
        for name in ("X-Page", "X-Per-Page", "X-Total", "X-Next-Page"):
            assert zero.headers.get(name) == usual.headers.get(name), (path, name)


@pytest.mark.spec("M2")
def test_a_second_page_is_rejected_in_every_spelling(script: Api) -> None:
    for number in ("%2B2", "2.0", "%202", "02", "2"):
        last = script.send_request(
            "GET", f"/users?page={number}", headers={"Platform-Release": "17.0"}
        )
        assert last.status_code == 400, last.text
        before = get(script, "/users", f"page={number}&per_page=1")
        assert (before.status_code, before.headers["X-Page"]) == (200, "2")
