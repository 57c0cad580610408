"""Tests of the changes that affect a caller: pages, API and command, before and after a release."""

import json
from html import unescape
from http import HTTPStatus
from typing import Any

import pytest
from flask.testing import FlaskClient

from domain.access.roles import Role
from domain.projects.members import OPERATOR_VIEWER, add_member
from domain.releases.changes import Certainty
from domain.releases.schedule import SCHEDULE
from domain.releases.usage.call_counts import ANONYMOUS_CONSUMER, Consumer, UsageSignature
from domain.releases.usage.usage_reports import MIN_CALLS_NEAR_LIMIT, find_affecting_changes
from models import Application, InstanceSetting, User
from tests.support.accounts.namespaces import get_namespace
from tests.support.releases.recorded_calls import Caller, RecordedService
from tests.support.wire.html_forms import HtmlForm, forms_in

pytestmark = [pytest.mark.spec("M5"), pytest.mark.one_database("sqlite")]
MINE = "/-/user_settings/api_changes"
ALL = "/admin/api_usage"
LEVEL = "operations_access_level"
WITHOUT_END = "tokens-without-expiry"


def used(caller: Caller, **query: str) -> list[dict[str, Any]]:
    """Return the usage that the API reports to a caller."""
    answer = caller("GET", "/releases/usage", query_string=query)
    assert answer.status_code == HTTPStatus.OK, answer.text
    found: list[dict[str, Any]] = json.loads(answer.text)
    return found


def page_of(browser: FlaskClient, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == HTTPStatus.OK, answer.text
    return unescape(answer.text)


def use_level(service: RecordedService, caller: Caller) -> None:
    """Change a project with an attribute that 16.0 removes, and list projects."""
    changed = caller("PUT", "/projects/acme%2Fshop", json={LEVEL: "enabled"})
    assert changed.status_code == HTTPStatus.OK
    caller("GET", "/projects")
    service.flush()


@pytest.mark.parametrize(
    ("shape", "change_id", "certainty"),
    [
        (
            UsageSignature("PUT", "/api/v4/projects/:id", (LEVEL,), ()),
            "operations-access-level",
            "sure",
        ),
        (UsageSignature("GET", "/api/v4/projects", (), ()), "operations-access-level", "possible"),
        (
            UsageSignature("GET", "/api/v4/projects", (), ("api-rate-limits",)),
            "api-rate-limits",
            "possible",
        ),
        (UsageSignature("GET", "/api/v4/users", ("page",), ()), "users-offset-pagination", None),
        (
            UsageSignature("GET", "/api/v4/users", ("page",), ("users-offset-pagination",)),
            "users-offset-pagination",
            "sure",
        ),
        (
            UsageSignature("POST", "/api/v4/runners/reset_registration_token", (), ()),
            "instance-runners-reset-registration-token",
            "sure",
        ),
        (
            UsageSignature("POST", "/api/v4/projects/:id/access_tokens", ("name",), ()),
            WITHOUT_END,
            "sure",
        ),
        (
            UsageSignature("POST", "/api/v4/groups/:id/access_tokens", ("expires_at",), ()),
            WITHOUT_END,
            None,
        ),
        (
            UsageSignature("POST", "/api/v4/projects/:id/access_tokens", ("…",), ()),
            WITHOUT_END,
            "possible",
        ),
        (UsageSignature("GET", "/-/jwks", (), ("jwks-alias",)), "jwks-alias", "sure"),
        (UsageSignature("GET", "/api/v4/groups/:id/members", (), ()), "legacy-page-urls", None),
        (
            UsageSignature("GET", "/acme/shop/alerts", (), ("legacy-page-urls",)),
            "legacy-page-urls",
            "sure",
        ),
        (
            UsageSignature("GET", "/api/v4/users", (), ("of-a-former-schedule",)),
            "of-a-former-schedule",
            None,
        ),
    ],
)
@pytest.mark.spec("M2")
def test_parameter_names_and_recorded_values_determine_the_certainty(
    shape: UsageSignature, change_id: str, certainty: str | None
) -> None:
    expected = None if certainty is None else Certainty(certainty)
    assert find_affecting_changes(shape).get(change_id) is expected


@pytest.mark.long
@pytest.mark.both_databases
def test_users_see_the_usage_of_their_tokens_and_applications(service: RecordedService) -> None:
    alice, bob = service.person("alice"), service.person("bob")
    service.project_of(alice)
    nightly, bobs = service.token_of(alice), service.token_of(bob)
    use_level(service, nightly)
    service.wait(hours=3)
    use_level(service, nightly)

    sure, possible = [each for each in used(nightly) if each["change"] == "operations-access-level"]
    assert sure == {
        "change": "operations-access-level",
        "release": "16.0",
        "title": "Project attribute operations_access_level removed",
        "replacement": sure["replacement"],
        "certainty": "sure",
        "consumer": {
            "kind": "personal_access_token",
            "id": sure["consumer"]["id"],
            "name": "nightly",
            "owner": "alice",
        },
        "calls": 2,
        "operations": ["PUT /api/v4/projects/:id"],
        "first_called_at": "2026-03-01T12:00:00.000Z",
        "last_called_at": "2026-03-01T15:00:00.000Z",
        "last_address": "127.0.0.1",
    }
    assert (possible["certainty"], possible["calls"]) == ("possible", 2)
    assert used(bobs) == []

    page = page_of(service.browser_of(alice), MINE)
    assert "Project attribute operations_access_level removed" in page
    assert "PUT /api/v4/projects/:id" in page
    assert "Maybe affected" in page
    assert "No affected calls" in page_of(service.browser_of(bob), MINE)


@pytest.mark.long
@pytest.mark.both_databases
def test_an_owner_sees_an_application_s_calls_without_addresses_of_its_users(
    service: RecordedService,
) -> None:
    alice, bob = service.person("alice"), service.person("bob")
    service.project_of(alice)
    board = service.application_of(bob)
    use_level(service, service.grant(board, alice))

    (sure,) = [each for each in used(service.token_of(bob)) if each["certainty"] == "sure"]
    assert sure["consumer"] == {
        "kind": "application",
        "id": board,
        "name": "Deploy Board",
        "owner": "bob",
    }
    assert sure["last_address"] is None
    assert used(service.token_of(alice)) == []

    # After the transfer, only the new owner can see the calls.
    with service.session() as session:
        session.get_one(Application, board).owner_id = alice.id
    assert used(service.token_of(bob)) == []
    assert used(service.token_of(alice))[0]["consumer"]["owner"] == "alice"


@pytest.mark.long
@pytest.mark.both_databases
def test_only_current_maintainers_see_the_tokens_of_their_project(
    service: RecordedService,
) -> None:
    alice, bob, carol = (service.person(name) for name in ("alice", "bob", "carol"))
    service.project_of(alice)
    with service.session() as session:
        shop = get_namespace("acme/shop", session=session)
        for name, role in (("bob", Role.MAINTAINER), ("carol", Role.DEVELOPER)):
            add_member(shop, name, role, viewer=OPERATOR_VIEWER, session=session, now=service.now)
    use_level(service, service.resource_token_of("acme/shop"))

    seen = {
        person.username: {each["consumer"]["name"] for each in used(service.token_of(person))}
        for person in (alice, bob, carol)
    }
    assert seen == {"alice": {"exporter"}, "bob": {"exporter"}, "carol": set()}
    assert used(service.token_of(bob))[0]["consumer"]["owner"] == "acme/shop"


@pytest.mark.long
def test_a_rotated_token_is_the_same_consumer(service: RecordedService) -> None:
    alice = service.person("alice")
    service.project_of(alice)
    nightly = service.token_of(alice)
    use_level(service, nightly)
    rotated = json.loads(nightly("POST", "/personal_access_tokens/self/rotate").text)["token"]
    newer = Caller(service, rotated)
    use_level(service, newer)

    (sure,) = [each for each in used(newer) if each["certainty"] == "sure"]
    assert sure["calls"] == 2


@pytest.mark.long
def test_after_a_release_only_calls_that_are_still_affected_are_reported(
    service: RecordedService,
) -> None:
    alice = service.person("alice")
    service.project_of(alice)
    nightly = service.token_of(alice)
    use_level(service, nightly)
    service.change_release("16.0")

    told = {(each["change"], each["certainty"]) for each in used(nightly)}
    assert ("operations-access-level", "sure") in told
    assert ("operations-access-level", "possible") not in told
    assert ("ci-job-token-scope-enabled", "possible") in told
    assert "In effect since 16.0" in page_of(service.browser_of(alice), MINE)


@pytest.mark.long
@pytest.mark.both_databases
def test_only_administrators_see_all_consumers(service: RecordedService) -> None:
    root, alice = service.person("root", admin=True), service.person("alice")
    service.project_of(alice)
    nightly = service.token_of(alice)
    use_level(service, nightly)
    service.count(ANONYMOUS_CONSUMER, "GET", "/-/jwks", "jwks-alias", calls=7)
    service.flush()

    assert nightly("GET", "/releases/usage?scope=all").status_code == HTTPStatus.FORBIDDEN
    told = used(service.token_of(root), scope="all", per_page="100")
    (anonymous,) = [each for each in told if each["change"] == "jwks-alias"]
    assert (anonymous["consumer"]["kind"], anonymous["calls"]) == ("anonymous", 7)
    assert "nightly" in {each["consumer"]["name"] for each in told}

    assert service.browser_of(alice).get(ALL).status_code == HTTPStatus.NOT_FOUND
    browser = service.browser_of(root)
    page = page_of(browser, ALL)
    assert "Alias /-/jwks of /oauth/discovery/keys removed" in page
    assert "Requests without a token" in page
    of_change = page_of(browser, f"{ALL}?change=operations-access-level&search=NIGHT")
    assert "nightly" in of_change
    assert "Requests without a token" not in of_change
    assert "No matching consumers" in page_of(browser, f"{ALL}?search=nobody")
    for wrong in ("change=none", "page=0", "page=x", "sort=a"):
        assert browser.get(f"{ALL}?{wrong}").status_code == HTTPStatus.BAD_REQUEST


@pytest.mark.long
def test_a_release_can_be_rehearsed_on_the_command_line(service: RecordedService) -> None:
    alice = service.person("alice")
    service.project_of(alice)
    runner = service.app.test_cli_runner()
    quiet = runner.invoke(args=["releases", "rehearse", "18.0"])
    assert (quiet.exit_code, json.loads(quiet.stdout)["breaks"]) == (0, 0)

    use_level(service, service.token_of(alice))
    found = runner.invoke(args=["releases", "rehearse", "16.0"])
    told = json.loads(found.stdout)
    assert found.exit_code == 1
    assert (told["running"], told["release"], told["breaks"]) == ("15.11", "16.0", 1)
    (change,) = [each for each in told["changes"] if each["change"] == "operations-access-level"]
    assert {(each["name"], each["certainty"], each["calls"]) for each in change["consumers"]} == {
        ("nightly", "sure", 1),
        ("nightly", "possible", 1),
    }
    text = runner.invoke(args=["releases", "rehearse", "16.0", "--format", "text"])
    assert "breaks: nightly of alice, 1 call, last" in text.stdout
    assert text.stdout.count("operations-access-level (16.0)") == 1
    # GraphQL is not hosted, so its changes have no effect here.
    hosted = [each for each in SCHEDULE if each.hosted and each.release == "16.0"]
    assert f"From release 15.11 to 16.0: {len(hosted)} changes." in text.stdout
    assert runner.invoke(args=["releases", "rehearse", "soon"]).exit_code == 2


def settings_form(page: str, release: str) -> dict[str, str]:
    form = next(each for each in forms_in(page) if each.has("release"))
    return dict(form.filled(release=release, page_size="33"))


def confirmation_in(page: str) -> HtmlForm:
    return next(each for each in forms_in(page) if each.has("confirmed_release"))


SETTINGS = "/admin/settings/interfaces-and-records"


@pytest.mark.long
def test_the_running_release_changes_after_a_confirmation_page_with_the_breaks(
    service: RecordedService,
) -> None:
    root, alice = service.person("root", admin=True), service.person("alice")
    service.project_of(alice)
    use_level(service, service.token_of(alice))
    browser = service.browser_of(root)
    sent = settings_form(browser.get(SETTINGS).text, "17.0")
    asked = browser.post(SETTINGS, data=sent)
    assert asked.status_code == HTTPStatus.OK
    page = unescape(asked.text)
    assert "Change the running release to 17.0?" in page
    assert "1 consumer would break" in page
    assert "nightly" in page
    assert "Offset pagination of /users removed" in page
    assert "Field external of ReleaseAssetLink removed" not in page, "not hosted here"
    with service.session() as session:
        assert session.get(InstanceSetting, "release") is None

    # A different release needs another confirmation page.
    again = dict(confirmation_in(asked.text).fields)
    other = browser.post(SETTINGS, data={**again, "release": "18.0"})
    assert "Change the running release to 18.0?" in unescape(other.text)

    assert browser.post(SETTINGS, data=again).status_code == HTTPStatus.FOUND
    with service.session() as session:
        stored = {row.name: row.value for row in session.query(InstanceSetting)}
    assert stored == {"release": "17.0", "page_size": "33"}

    reset = browser.post(f"{SETTINGS}/release/reset", data={"csrf_token": again["csrf_token"]})
    assert "Change the running release to 15.11?" in unescape(reset.text)
    assert "would be reverted" in unescape(reset.text)
    confirmed = dict(confirmation_in(reset.text).fields)
    assert browser.post(f"{SETTINGS}/release/reset", data=confirmed).status_code == HTTPStatus.FOUND
    with service.session() as session:
        assert session.get(InstanceSetting, "release") is None


@pytest.mark.long
def test_metrics_count_calls_by_change(service: RecordedService) -> None:
    alice = service.person("alice")
    service.count(Consumer(alice.id, None, None), "GET", "/-/jwks", "jwks-alias", calls=4)
    before = counted_in(service)
    service.flush()

    assert counted_in(service) - before == 4


def counted_in(service: RecordedService) -> float:
    wanted = 'gatebell_deprecated_calls_total{certainty="sure",change="jwks-alias"} '
    lines = service.app.test_client().get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(wanted))


def test_counts_of_a_deleted_user_are_deleted(service: RecordedService) -> None:
    alice = service.person("alice")
    service.count(Consumer(alice.id, None, None), "GET", "/-/jwks", "jwks-alias")
    service.flush()
    with service.session() as session:
        session.delete(session.get_one(User, alice.id))

    assert service.rows() == []


@pytest.mark.long
@pytest.mark.both_databases
def test_only_users_near_a_rate_limit_see_its_change(service: RecordedService) -> None:
    quiet, busy = (service.token_of(service.person(name)) for name in ("alice", "bob"))
    for _ in range(MIN_CALLS_NEAR_LIMIT):
        busy("GET", "/users")
    for _ in range(MIN_CALLS_NEAR_LIMIT - 1):
        quiet("GET", "/users")
    service.flush()
    service.wait(hours=24)
    quiet("GET", "/users")
    service.flush()

    told = {
        who: [each["change"] for each in used(caller)]
        for who, caller in {"quiet": quiet, "busy": busy}.items()
    }
    assert told == {"quiet": [], "busy": ["api-rate-limits"]}
