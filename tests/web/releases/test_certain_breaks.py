"""Tests that usage, rehearsals, notices and the checker report the same certain breaks.

One call of each kind that a release rejects is made once. A single call is enough for every report
and for every kind of change.
"""

import json
from dataclasses import replace
from http import HTTPStatus
from typing import Any, NamedTuple

import pytest

from domain.releases.changes import Certainty
from domain.releases.checker.text_checks import check_text
from domain.releases.schedule import CHANGES_BY_ID, SCHEDULE
from domain.releases.version import parse_release
from tests.support.mail.stored_texts import list_stored_mails
from tests.support.releases.recorded_calls import Caller, RecordedService
from web.jobs.mail import queue_release_removal_mail

pytestmark = [pytest.mark.spec("M5"), pytest.mark.one_database("sqlite")]
AT = "/projects/acme%2Fshop"
SHA = "0123456789abcdef0123456789abcdef01234567"
#: These changes break no single API call: rate limits need many calls, Git and TLS are no API
#: calls, and a signed-in browser has no token.
WITHOUT_A_CALL = {
    "api-rate-limits",
    "public-download-events",
    "tls-versions",
    "legacy-page-urls",
    "jwks-alias",
}


class Break(NamedTuple):
    """Describes a call whose result changes with a release."""

    change: str
    method: str
    path: str
    body: dict[str, Any] | None = None


LINK = {"name": "a", "url": "https://files.example/a"}
BREAKS = (
    Break(
        "release-links-external",
        "POST",
        f"{AT}/releases/v1/assets/links",
        {**LINK, "external": True},
    ),
    Break(
        "release-links-external",
        "POST",
        f"{AT}/releases",
        {"tag_name": "v1", "assets": {"links": [{**LINK, "external": False}]}},
    ),
    Break("operations-access-level", "PUT", AT, {"operations_access_level": "private"}),
    Break("deployments-updated-at", "GET", f"{AT}/deployments?order_by=updated_at"),
    Break("environment-search", "GET", f"{AT}/environments?search=ab"),
    Break(
        "external-status-length",
        "POST",
        f"{AT}/statuses/{SHA}",
        {"state": "running", "description": "x" * 256},
    ),
    Break("tokens-without-expiry", "POST", f"{AT}/access_tokens", {"name": "a", "scopes": ["api"]}),
    Break(
        "user-email-lookup-limit", "PUT", "/application/settings", {"user_email_lookup_limit": 1}
    ),
    Break("users-offset-pagination", "GET", "/users?page=2"),
    Break("ci-job-token-scope-enabled", "PUT", AT, {"ci_job_token_scope_enabled": True}),
    Break("sign-in-text", "PUT", "/application/settings", {"help_text": "Welcome"}),
    Break("runner-registration", "POST", "/runners", {"token": "GR1348941"}),
    Break("group-member-roles", "GET", "/groups/acme/member_roles"),
    *(
        Break(
            f"{of}-runners-reset-registration-token",
            "POST",
            f"{path}/runners/reset_registration_token",
        )
        for of, path in (("instance", ""), ("project", AT), ("group", "/groups/acme"))
    ),
    Break("registry-tags-offset-pagination", "GET", f"{AT}/registry/repositories/1/tags?page=2"),
    Break("notes-confidentiality", "PUT", f"{AT}/incidents/1/notes/1", {"internal": True}),
)


def test_every_change_that_breaks_calls_has_a_case() -> None:
    hosted = {change.id for change in SCHEDULE if change.hosted}
    assert hosted - WITHOUT_A_CALL == {each.change for each in BREAKS}


@pytest.mark.parametrize("each", BREAKS, ids=lambda each: f"{each.change} {each.path}")
def test_the_checker_reports_the_break_as_certain(each: Break) -> None:
    body = f" --json '{json.dumps(each.body)}'" if each.body else ""
    line = f'curl --request {each.method} "$CI_API_V4_URL{each.path}"{body}\n'
    found = check_text("a.sh", line, parse_release("18.0")).findings
    assert [(one.change.id, one.certainty) for one in found] == [(each.change, Certainty.SURE)]


def test_each_single_call_is_in_usage_rehearsals_and_notices(service: RecordedService) -> None:
    root = service.person("root", admin=True)
    service.project_of(root)
    nightly = service.token_of(root)
    for each in BREAKS:
        answer = nightly(each.method, each.path, json=each.body)
        assert answer.status_code in {200, 201, 404}, (each, answer.text)
    service.flush()

    expected = {each.change for each in BREAKS}
    assert used(nightly) == expected
    for release in sorted(
        {CHANGES_BY_ID[change].release for change in expected}, key=parse_release
    ):
        until = {
            each
            for each in expected
            if not CHANGES_BY_ID[each].effective_release > parse_release(release)
        }
        assert rehearsed(service, release) == until
    assert titles_in_email(service) == {CHANGES_BY_ID[change].title for change in expected}


def used(caller: Caller) -> set[str]:
    answer = caller("GET", "/releases/usage?per_page=100")
    assert answer.status_code == HTTPStatus.OK, answer.text
    return {each["change"] for each in json.loads(answer.text) if each["certainty"] == "sure"}


def rehearsed(service: RecordedService, release: str) -> set[str]:
    found = service.app.test_cli_runner().invoke(args=["releases", "rehearse", release])
    changes = json.loads(found.stdout)["changes"]
    return {
        each["change"]
        for each in changes
        if any(one["certainty"] == "sure" for one in each["consumers"])
    }


def titles_in_email(service: RecordedService) -> set[str]:
    """Return the titles of the changes in the message to the owner."""
    releases = {change.release for change in SCHEDULE if change.release != "17.5"}
    dates = ", ".join(f"{each}=2026-03-2{n}" for n, each in enumerate(sorted(releases)))
    settings = replace(service.settings, release_dates=dates)
    assert queue_release_removal_mail(settings, clock=lambda: service.now) == 1
    with service.session() as session:
        (mail,) = list_stored_mails(session, service.settings.secret_key)
        lines = mail.text.splitlines()
    return {line.removeprefix("* ") for line in lines if line.startswith("* ")}
