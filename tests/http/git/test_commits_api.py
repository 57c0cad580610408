"""GET /api/v4/projects/:id/repository/commits/:revision shows a pushed commit."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests

from domain.access.roles import Role
from domain.ci_cd.combined_status import combine_job_states
from tests.support.accounts.people import Person, make_project, make_user, signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role
from tests.support.git.client import GitClient
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
ABSENT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def git(gatebell: LiveGatebell, alice: Person, tmp_path: Path) -> GitClient:
    token = make_token(gatebell, alice, scopes="api").clear
    dates = {"GIT_AUTHOR_DATE": "2026-03-01T12:00:00+0200", "GIT_COMMITTER_NAME": "Bob"}
    return GitClient(gatebell=gatebell, home=tmp_path / "home", token=token, variables=dates)


def ask(
    gatebell: LiveGatebell, project: str, revision: str, token: str = "", **query: str
) -> requests.Response:
    at = f"/projects/{quote(project, safe='')}/repository/commits/{quote(revision, safe='')}"
    headers = {"PRIVATE-TOKEN": token} if token else {}
    return requests.get(f"{gatebell.url}/api/v4{at}", headers=headers, params=query, timeout=30)


def test_a_commit_is_shown_by_hash_branch_and_tag(
    gatebell: LiveGatebell, alice: Person, git: GitClient
) -> None:
    project = make_project(gatebell, alice)
    assert ask(gatebell, project, "main", git.token).status_code == 404
    work = git.new_work({"a.txt": b"one\ntwo\n", "image": b"\x00\xff"})
    first = git.head(work)
    message = "Change a\n\nBecause of <b>.\n"
    second = git.commit(work, {"a.txt": b"one\n2\n3\n"}, message=message)
    git.do("-C", str(work), "tag", "--annotate", "--message", "v1", "v1")
    git.do("-C", str(work), "branch", "feature/x", first)
    assert git.push(work, project, "main", "feature/x", "v1").status == 0

    shown = ask(gatebell, project, second, git.token)
    assert shown.status_code == 200, shown.text
    body = shown.json()
    committed = body["committed_date"]
    assert body.pop("created_at") == committed
    assert body == {
        "id": second,
        "short_id": second[:8],
        "title": "Change a",
        "message": message,
        "author_name": "Alice",
        "author_email": "alice@people.example",
        "authored_date": "2026-03-01T10:00:00.000Z",
        "committer_name": "Bob",
        "committer_email": "alice@people.example",
        "committed_date": committed,
        "parent_ids": [first],
        "web_url": f"{gatebell.url}/{project}",
        "project_id": body["project_id"],
        "status": None,
        "last_pipeline": None,
        "stats": {"additions": 2, "deletions": 1, "total": 3},
    }
    names = {second[:7]: second, "main": second, "HEAD": second, "v1": second, "feature/x": first}
    for revision, commit in names.items():
        found = ask(gatebell, project, revision, git.token, stats="false").json()
        assert (found["id"], found["stats"]) == (commit, None), revision
    root = ask(gatebell, project, first, git.token).json()
    assert root["parent_ids"] == []
    assert root["stats"] == {"additions": 2, "deletions": 0, "total": 2}

    assert signed_in(gatebell, alice).get(body["web_url"]).status_code == 200
    missing = (ABSENT, second[:6], "nothing", "main~1", "main:a.txt", "--all", "feature", "@{-1}")
    for revision in (*missing, "a..b", "-n", "x" * 300, "é", "a\x00b", "refs/heads/main"):
        answer = ask(gatebell, project, revision, git.token)
        assert answer.status_code == 404, (revision, answer.text)


def test_the_status_of_a_commit_combines_its_jobs(
    gatebell: LiveGatebell, alice: Person, git: GitClient
) -> None:
    project = make_project(gatebell, alice)
    work = git.new_work({"a": b"a"})
    sha = git.head(work)
    at = f"{gatebell.url}/api/v4/projects/{quote(project, safe='')}/statuses/{sha}"

    def report(**sent: Any) -> None:
        headers = {"PRIVATE-TOKEN": git.token}
        assert requests.post(at, json=sent, headers=headers, timeout=30).status_code == 201

    report(state="running", name="build")
    # Statuses can be stored for a commit that is not pushed yet.
    assert ask(gatebell, project, sha, git.token).status_code == 404
    assert git.push(work, project).status == 0
    assert ask(gatebell, project, sha, git.token).json()["status"] == "running"
    report(state="success", name="build")
    report(state="failed", name="lint", allow_failure=True)
    assert ask(gatebell, project, "main", git.token).json()["status"] == "success"


@pytest.mark.parametrize(
    ("jobs", "state"),
    [
        ([], None),
        ([("skipped", False)], "skipped"),
        ([("skipped", False), ("success", False)], "success"),
        ([("success", False), ("canceled", False)], "canceled"),
        ([("failed", True)], "success"),
        ([("pending", False)], "pending"),
        ([("pending", False), ("success", False)], "running"),
        ([("running", False), ("failed", False)], "running"),
        ([("success", False), ("failed", False)], "failed"),
    ],
)
def test_states_of_jobs_are_combined(jobs: list[tuple[str, bool]], state: str | None) -> None:
    assert combine_job_states(jobs) == state


def test_only_users_with_read_access_see_commits(
    gatebell: LiveGatebell, alice: Person, git: GitClient
) -> None:
    work = git.new_work({"a": b"a"})
    people = {}
    for role in (Role.GUEST, Role.REPORTER, None):
        person = make_user(gatebell)
        people[role] = person, make_token(gatebell, person, scopes="read_api").clear
    statuses: dict[tuple[str, Role | str | None], int] = {}
    for visibility in ("private", "internal", "public"):
        project = make_project(gatebell, alice, visibility=visibility)
        assert git.push(work, project).status == 0
        for role, (person, token) in people.items():
            if role is not None:
                give_role(gatebell, project.partition("/")[0], person, role)
            statuses[visibility, role] = ask(gatebell, project, "main", token).status_code
        statuses[visibility, "nobody"] = ask(gatebell, project, "main").status_code
    assert statuses == {
        ("private", Role.REPORTER): 200,
        ("private", Role.GUEST): 403,
        ("private", None): 404,
        ("private", "nobody"): 404,
        ("internal", Role.REPORTER): 200,
        ("internal", Role.GUEST): 200,
        ("internal", None): 200,
        ("internal", "nobody"): 404,
        ("public", Role.REPORTER): 200,
        ("public", Role.GUEST): 200,
        ("public", None): 200,
        ("public", "nobody"): 200,
    }
