"""Tests of `/api/v4/releases/changes`, the release schedule for programs, without a sign-in."""

from typing import Any

import pytest
import requests

from tests.support.accounts.people import make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("sqlite")

PATH = "/api/v4/releases/changes"
FIELDS = {
    *("id", "release", "interface", "title", "matches", "after", "replacement", "hosted"),
    *("announced", "end_of_support", "url"),
}
#: Rows of the specification: the release, and the names that each row must contain.
ROWS = (
    ("16.0", "external ReleaseAssetLink"),
    ("16.0", "operations_access_level releases_access_level monitor_access_level"),
    ("16.0", "/approvals /approval_rules"),
    ("16.0", "/jobs/request job_age"),
    ("16.0", "paused active"),
    ("16.0", "/-/"),
    ("16.7", "user_email_lookup_limit search_rate_limit"),
    ("17.0", "/users keyset"),
    ("17.0", "ci_job_token_scope_enabled"),
    ("17.0", "/feature_flags version"),
    ("17.0", "/api/v4/projects/:id/packages pipelines"),
    ("17.0", "sign_in_text help_text description"),
    ("17.0", "/-/jwks /oauth/discovery/keys"),
    ("17.0", "CI_JOB_JWT CI_JOB_JWT_V1 CI_JOB_JWT_V2"),
    ("17.0", "GraphQL token types"),
    ("17.0", "/api/v4/runners locked access_level run_untagged maximum_timeout tag_list 410"),
    ("17.0", "CiRunner.projects id_asc id_desc"),
    ("17.0", "/member_roles"),
    ("18.0", "/ci/lint ref sha content_ref dry_run_ref"),
    ("18.0", "/runners/reset_registration_token 410"),
    ("18.0", "/projects/:id/runners/reset_registration_token 410"),
    ("18.0", "/groups/:id/runners/reset_registration_token 410"),
    ("18.0", "/registry/repositories keyset"),
    ("18.0", "require_password_to_approve require_reauthentication_to_approve"),
    ("18.0", "Dependency proxy scopes"),
    ("18.0", "Protected variables downstream"),
    ("18.0", "active paused"),
    ("18.0", "previousStageJobsOrNeeds"),
    ("18.0", "add_on_purchase add_on_purchases"),
    ("18.0", "runnerPlatforms runnerSetup"),
    ("18.0", "confidential"),
)


def answer(gatebell: LiveGatebell, query: str = "", **headers: str) -> requests.Response:
    return gatebell.http().get(f"{gatebell.url}{PATH}{query}", headers=headers)


def changes(gatebell: LiveGatebell, query: str = "") -> list[dict[str, Any]]:
    found = answer(gatebell, query)
    assert found.status_code == 200, found.text
    listed: list[dict[str, Any]] = found.json()
    return listed


@pytest.mark.spec("M2")
@pytest.mark.both_databases
def test_every_row_of_the_specification_is_listed_with_its_names(gatebell: LiveGatebell) -> None:
    listed = changes(gatebell)
    texts = [
        (each["release"], " ".join([str(value) for value in each.values()])) for each in listed
    ]
    missing = [
        row
        for row in ROWS
        if not any(
            release == row[0] and all(name in text for name in row[1].split())
            for release, text in texts
        )
    ]
    assert missing == []
    assert all(set(each) >= FIELDS for each in listed)
    assert len({each["id"] for each in listed}) == len(listed)


@pytest.mark.long
@pytest.mark.spec("M5")
def test_a_change_has_a_state_a_date_and_a_link(gatebell: LiveGatebell) -> None:
    with changed_settings(gatebell, release="16.11", release_dates="17.0=2024-05-16"):
        found = {each["id"]: each for each in changes(gatebell)}
    users = found["users-offset-pagination"]
    assert (users["state"], users["date"], users["hosted"]) == ("announced", "2024-05-16", True)
    assert (users["announced"], users["end_of_support"]) == (None, None)
    assert users["url"] == f"{gatebell.url}/help/releases/users-offset-pagination"
    external = found["release-links-external"]
    assert (external["state"], external["date"]) == ("in_force", None)
    lint = found["ci-lint-ref"]
    assert (lint["state"], lint["hosted"]) == ("not_hosted", False)


def test_the_list_of_changes_can_be_filtered(gatebell: LiveGatebell) -> None:
    listed = changes(gatebell, "?release=17.0&interface=rest&state=in_force")
    assert "users-offset-pagination" in {each["id"] for each in listed}
    assert {(each["release"], each["interface"], each["state"]) for each in listed} == {
        ("17.0", "rest", "in_force")
    }
    assert changes(gatebell, "?release=99.0") == []


def test_an_invalid_filter_is_rejected(gatebell: LiveGatebell) -> None:
    for query, error in (
        ("?release=soon", "`release` must be a release such as 18.0"),
        ("?interface=soap", "`interface` must be one of rest, graphql, ci, settings, pages"),
        ("?state=gone", "`state` must be one of in_force, announced, not_hosted"),
        ("?colour=red", "`colour` is not a known parameter"),
    ):
        found = answer(gatebell, query)
        assert (found.status_code, error in found.json()["error"]) == (400, True), query


def test_all_changes_are_on_one_page_and_can_be_read_in_parts(gatebell: LiveGatebell) -> None:
    whole = answer(gatebell)
    assert whole.headers["X-Total-Pages"] == "1"
    parts = [changes(gatebell, f"?per_page=20&page={number}") for number in (1, 2)]
    assert parts[0] + parts[1] == whole.json()


@pytest.mark.long
def test_the_list_of_changes_can_be_cached_and_revalidated_by_anyone(
    gatebell: LiveGatebell,
) -> None:
    first = answer(gatebell)
    assert first.headers["Cache-Control"] == "public, max-age=300"
    assert first.headers["Access-Control-Allow-Origin"] == "*"
    again = answer(gatebell, **{"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    with changed_settings(gatebell, release_dates="18.0=2025-05-15"):
        later = answer(gatebell, **{"If-None-Match": first.headers["ETag"]})
    assert later.status_code == 200


def test_a_token_of_any_scope_is_accepted(gatebell: LiveGatebell) -> None:
    token = make_token(gatebell, make_user(gatebell), scopes="write_registry")
    found = answer(gatebell, **{"PRIVATE-TOKEN": token.clear})
    assert (found.status_code, found.json()) == (200, changes(gatebell))
    assert found.headers["Cache-Control"] == "private, no-cache"
