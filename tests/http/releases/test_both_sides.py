"""Changes of the release schedule, before and after their releases, over HTTP.

The tests iterate over the schedule of the service. Each change that this service hosts has a `Use`
here, or `SHOWN_ELSEWHERE` names its test. Other changes only appear in the schedule.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from domain.releases.changes import Change, ReleaseChangeKind
from domain.releases.schedule import CHANGES_BY_ID, SCHEDULE
from tests.support.accounts.administration import forget_settings, get_shared_administrator
from tests.support.accounts.api_caller import ApiCaller
from tests.support.accounts.people import make_project, signed_in, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.registry.notifications import notify, pushed, seconds
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.spec("M2", "M5")

ROOT = Path(__file__).resolve().parents[3]
SHA = "0123456789abcdef0123456789abcdef01234567"
LINK = {"name": "shop.tar.gz", "url": "https://files.example/shop.tar.gz"}
#: Changes that follow the running release and that no header can relax.
SHOWN_ELSEWHERE = {
    "tokens-without-expiry": "tests/http/releases/test_tokens_without_expiry.py",
    "public-download-events": "tests/stories/gitlab/test_git.py",
    "tls-versions": "tests/operations/test_tls.py",
    "api-rate-limits": "tests/web/test_api_limits.py",
}


class Use(NamedTuple):
    """A call that a change affects."""

    method: str
    path: str
    sent: Mapping[str, Any] = {}
    #: Status before the release.
    before: int = 200


@dataclass
class World:
    """An administrator who owns the objects that the schedule mentions."""

    gatebell: LiveGatebell
    api: ApiCaller
    project: str
    names: Iterator[str] = field(default_factory=lambda: iter(unique("v") for _ in range(99)))

    @property
    def group(self) -> str:
        return self.project.partition("/")[0]

    @property
    def at(self) -> str:
        return f"/projects/{self.project.replace('/', '%2F')}"

    def send(self, use: Use, release: str) -> requests.Response:
        headers = {"Platform-Release": release}
        if use.path.startswith(("/api", "/-/")) or not use.path.startswith(f"/{self.project}"):
            url = use.path if use.path.startswith("/-/") else f"/api/v4{use.path}"
            called = ApiCaller(url=f"{self.gatebell.url}{url}", token=self.api.token)
            return called(use.method, headers=headers, **use.sent)
        browser = signed_in(self.gatebell, get_shared_administrator(self.gatebell))
        return browser.get(f"{self.gatebell.url}{use.path}", headers=headers, allow_redirects=False)


@pytest.fixture
def world(gatebell: LiveGatebell) -> Iterator[World]:
    owner = get_shared_administrator(gatebell)
    token = make_token(gatebell, owner, scopes="api").clear
    yield World(
        gatebell=gatebell,
        api=ApiCaller(url=f"{gatebell.url}/api/v4", token=token),
        project=make_project(gatebell, owner),
    )
    forget_settings(gatebell)


def external(world: World) -> list[Use]:
    tag = next(world.names)
    release = {"tag_name": tag, "assets": {"links": [LINK]}}
    world.api.done("POST", f"{world.at}/releases", json=release, status=201)
    return [
        Use("GET", f"{world.at}/releases"),
        Use("GET", f"{world.at}/releases/{tag}"),
        Use("GET", f"{world.at}/releases/permalink/latest"),
        Use("GET", f"{world.at}/releases/{tag}/assets/links"),
    ]


def of_project(name: str) -> Callable[[World], list[Use]]:
    def uses(world: World) -> list[Use]:
        return [
            Use("GET", world.at),
            Use("GET", "/projects?membership=true"),
            Use("GET", f"/groups/{world.group}/projects"),
            Use("PUT", world.at, {"json": {"description": name}}),
        ]

    return uses


def tags(world: World) -> list[Use]:
    events = [pushed(world.project, f"v{n}", content=str(n), at=seconds(n)) for n in (1, 2)]
    assert notify(world.gatebell, *events).status_code == 200
    (found,) = world.api.done("GET", f"{world.at}/registry/repositories")
    path = f"{world.at}/registry/repositories/{found['id']}/tags?per_page=1&page=2"
    return [Use("GET", path)]


def confidential_note(world: World) -> list[Use]:
    made = world.api.done("POST", f"{world.at}/incidents", json={"title": "Down"}, status=201)
    notes = f"{world.at}/incidents/{made['iid']}/notes"
    note = world.api.done("POST", notes, json={"body": "Mine", "internal": True}, status=201)
    return [
        Use("PUT", f"{notes}/{note['id']}", {"json": {name: value}})
        for name in ("confidential", "internal")
        for value in (False, True)
    ]


def one(method: str, path: str, before: int = 200, **sent: Any) -> Callable[[World], list[Use]]:
    return lambda world: [
        Use(method, path.format(at=world.at, group=world.group, page=world.project), sent, before)
    ]


def long_status(world: World) -> list[Use]:
    report = {"state": "running", "name": "build"}
    long = "https://ci.example/".ljust(256, "x")
    return [
        Use("POST", f"{world.at}/statuses/{SHA}", {"json": {**report, name: long}}, before=201)
        for name in ("stage", "ref", "description", "target_url")
    ]


#: Calls that are rejected from the release on.
REFUSED: Mapping[str, Callable[[World], list[Use]]] = {
    "release-links-external": lambda world: (
        [
            Use(
                "POST",
                each.path,
                {"json": {"name": "b", "url": f"{LINK['url']}.sig", "external": True}},
                before=201,
            )
            for each in external(world)[3:]
        ]
        + [
            Use(
                "POST",
                f"{world.at}/releases",
                {
                    "json": {
                        "tag_name": next(world.names),
                        "assets": {"links": [{**LINK, "external": True}]},
                    }
                },
                before=201,
            )
        ]
    ),
    "operations-access-level": one("PUT", "{at}", json={"operations_access_level": "private"}),
    "ci-job-token-scope-enabled": one("PUT", "{at}", json={"ci_job_token_scope_enabled": True}),
    "user-email-lookup-limit": one(
        "PUT", "/application/settings", json={"user_email_lookup_limit": 61}
    ),
    "sign-in-text": lambda _world: [
        Use("PUT", "/application/settings", {"json": {name: "Welcome"}})
        for name in ("sign_in_text", "help_text")
    ],
    "legacy-page-urls": one("GET", "/{page}/alerts?status=open", before=302),
    "deployments-updated-at": lambda world: [
        Use("GET", f"{world.at}/deployments?{query}")
        for query in (
            "updated_after=2027-01-01T00:00:00Z",
            "updated_before=2027-01-01T00:00:00Z&order_by=id",
            "order_by=updated_at",
        )
    ],
    "environment-search": one("GET", "{at}/environments?search=pr"),
    "external-status-length": long_status,
    "users-offset-pagination": one("GET", "/users?page=2&per_page=1"),
    "jwks-alias": one("GET", "/-/jwks"),
    "runner-registration": lambda _world: [
        Use("POST", "/runners", {"json": {name: value}}, before=404)
        for name, value in (
            ("token", "GR1348941"),
            ("locked", True),
            ("access_level", "ref_protected"),
            ("run_untagged", False),
            ("maximum_timeout", 3600),
            ("paused", True),
            ("tag_list", ["ruby"]),
            ("maintenance_note", "mine"),
        )
    ],
    "group-member-roles": one("GET", "/groups/{group}/member_roles"),
    "instance-runners-reset-registration-token": one(
        "POST", "/runners/reset_registration_token", 404
    ),
    "project-runners-reset-registration-token": one(
        "POST", "{at}/runners/reset_registration_token", 404
    ),
    "group-runners-reset-registration-token": one(
        "POST", "/groups/{group}/runners/reset_registration_token", 404
    ),
    "registry-tags-offset-pagination": tags,
    "notes-confidentiality": confidential_note,
}
#: Calls whose response has fields only before the release, with the names of the fields.
SHOWN: Mapping[str, tuple[Callable[[World], list[Use]], tuple[str, ...]]] = {
    "release-links-external": (external, ("external",)),
    "operations-access-level": (of_project("a"), ("operations_access_level",)),
    "ci-job-token-scope-enabled": (of_project("b"), ("ci_job_token_scope_enabled",)),
    "user-email-lookup-limit": (
        one("GET", "/application/settings"),
        ("user_email_lookup_limit",),
    ),
    "sign-in-text": (one("GET", "/application/settings"), ("sign_in_text", "help_text")),
}


def before(change: Change) -> str:
    """Return the release before the release of a change."""
    release = change.effective_release
    if release.minor:
        return f"{release.major}.{release.minor - 1}"
    return f"{release.major - 1}.11"


def assert_announced(answer: requests.Response, change: Change, gatebell: LiveGatebell) -> None:
    assert re.fullmatch(r"@\d{9,}", answer.headers["Deprecation"])
    assert "Sunset" not in answer.headers, "no date of the release was entered"
    page = f"<{gatebell.url}/help/releases/{change.id}>"
    for relation in ("deprecation", "sunset"):
        assert f'{page}; rel="{relation}"' in answer.headers["Link"]


def test_every_hosted_change_has_a_test() -> None:
    hosted = {change.id for change in SCHEDULE if change.hosted}
    assert hosted - set(SHOWN_ELSEWHERE) == set(REFUSED) | set(SHOWN)
    gone = {
        change.id
        for change in SCHEDULE
        if change.hosted and change.kind is ReleaseChangeKind.FIELD_GONE
    }
    assert gone == set(SHOWN)
    for change_id, file in SHOWN_ELSEWHERE.items():
        assert CHANGES_BY_ID[change_id].is_strict
        assert (ROOT / file).is_file()


@pytest.mark.spec("M3")
@pytest.mark.parametrize("change_id", REFUSED)
def test_a_call_is_deprecated_and_then_rejected(world: World, change_id: str) -> None:
    change = CHANGES_BY_ID[change_id]
    for use in REFUSED[change_id](world):
        answer = world.send(use, before(change))
        assert answer.status_code == use.before, (use, answer.text)
        assert_announced(answer, change, world.gatebell)
        if use.method == "GET":
            head = world.send(use._replace(method="HEAD"), change.release)
            assert head.status_code == change.status, use
        answer = world.send(use, change.release)
        assert answer.status_code == change.status, (use, answer.text)
        assert "Deprecation" not in answer.headers
        assert "Platform-Release" in answer.headers["Vary"]
        if "json" in answer.headers["Content-Type"]:
            said = answer.json()
            assert change.replacement in (said.get("error") or said["message"])
        else:
            assert "Insert /-/ after the path of the project" in answer.text


@pytest.mark.parametrize("change_id", SHOWN)
def test_a_field_is_deprecated_and_then_removed(world: World, change_id: str) -> None:
    change = CHANGES_BY_ID[change_id]
    uses, names = SHOWN[change_id]
    for use in uses(world):
        answer = world.send(use, before(change))
        assert answer.status_code == use.before, (use, answer.text)
        assert all(f'"{name}":' in answer.text for name in names), use
        assert_announced(answer, change, world.gatebell)
        answer = world.send(use, change.release)
        assert answer.status_code == use.before, (use, answer.text)
        assert not any(f'"{name}":' in answer.text for name in names), use


def test_unaffected_calls_are_not_deprecated(world: World) -> None:
    for path in ("/user", "/groups", "/users?username=nobody", f"{world.at}/deployments"):
        answer = world.api("GET", path, headers={"Platform-Release": "15.11"})
        assert answer.status_code == 200
        assert "Deprecation" not in answer.headers, path


def test_old_names_set_their_replacements(world: World) -> None:
    earlier = {"Platform-Release": "15.11"}
    shown = world.api.done(
        "PUT",
        world.at,
        json={"operations_access_level": "private", "releases_access_level": "disabled"},
        headers=earlier,
    )
    assert shown["operations_access_level"] == shown["monitor_access_level"] == "private"
    assert shown["releases_access_level"] == "disabled"
    world.api.done("PUT", world.at, json={"ci_job_token_scope_enabled": True}, headers=earlier)
    scope = world.api.done("GET", f"{world.at}/job_token_scope")
    assert scope == {"inbound_enabled": True, "outbound_enabled": True}
    world.api.done(
        "PATCH", f"{world.at}/job_token_scope", json={"outbound_enabled": False}, status=204
    )
    assert not world.api.done("GET", world.at, headers=earlier)["ci_job_token_scope_enabled"]
    world.api.done(
        "PUT",
        "/application/settings",
        json={"user_email_lookup_limit": 67, "sign_in_text": "Welcome"},
        headers=earlier,
    )
    assert world.api.done("GET", "/application/settings")["search_rate_limit"] == 67
    assert world.api.done("GET", "/application/appearance")["description"] == "Welcome"


def test_a_legacy_url_redirects_with_its_query(world: World) -> None:
    answer = world.send(Use("GET", f"/{world.project}/alerts?status=open"), "15.11")
    assert answer.headers["Location"] == f"/{world.project}/-/alerts?status=open"
    assert world.send(Use("GET", f"/{world.project}/nothing"), "15.11").status_code == 404


def test_a_malformed_release_is_rejected_wherever_releases_differ(world: World) -> None:
    user = "/api/v4/user"
    for path, release in (
        *((user, release) for release in ("", "18", "18.0.0", "-1.0", "18.0\t18.0")),
        *((path, "x") for path in (user, "/oauth/token/info", "/-/jwks", "/api/v4/projects")),
    ):
        caller = ApiCaller(url=f"{world.gatebell.url}{path}", token=world.api.token)
        answer = caller("GET", headers={"Platform-Release": release})
        assert answer.status_code == 400, (path, release)
        assert "Platform-Release" in answer.text


@pytest.mark.spec("M3")
def test_a_runner_registers_with_only_the_token_in_the_body(world: World) -> None:
    url = f"{world.gatebell.url}/api/v4/runners"
    sent = {"token": "GR1348941registration", "description": "ci-1", "tag_list": "ruby,linux"}
    bodies: tuple[dict[str, Any], ...] = ({"json": sent}, {"data": sent})
    for (release, status), body in itertools.product((("16.11", 404), ("17.0", 410)), bodies):
        answer = requests.post(url, headers={"Platform-Release": release}, timeout=30, **body)
        assert answer.status_code == status, answer.text
        assert ("Deprecation" in answer.headers) == (status == 404)
        assert "WWW-Authenticate" not in answer.headers
    plain = requests.post(url, json={"description": "x"}, timeout=30)
    assert plain.status_code == 404


@pytest.mark.spec("M3")
def test_a_reset_of_a_registration_token_needs_authentication(world: World) -> None:
    for place in ("", world.at, f"/groups/{world.group}"):
        path = f"{place}/runners/reset_registration_token"
        for release, status in (("17.11", 404), ("18.0", 410)):
            headers = {"Platform-Release": release}
            url = f"{world.gatebell.url}/api/v4{path}"
            assert requests.post(url, headers=headers, timeout=30).status_code == 401
            assert world.send(Use("POST", path), release).status_code == status
