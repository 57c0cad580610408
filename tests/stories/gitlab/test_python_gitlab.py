"""python-gitlab manages personal access tokens, CI reports, users and groups."""

from datetime import timedelta
from pathlib import Path

import pytest
from gitlab.exceptions import GitlabAuthenticationError, GitlabGetError, GitlabUserApproveError

from tests.stories.conftest import OpenGitlab
from tests.support.accounts.people import Person, make_project, make_user, now, set_state
from tests.support.accounts.personal_tokens import make_token
from tests.support.git.client import GitClient
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture
def alice(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell)


@pytest.mark.spec("G1", "G4")
@pytest.mark.parametrize("credential", ["private_token", "oauth_token"])
def test_it_signs_in_with_a_token(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab, alice: Person, credential: str
) -> None:
    library = open_gitlab(**{credential: make_token(gatebell, alice).clear})

    library.auth()

    assert library.user is not None
    assert library.user.username == alice.username
    assert library.version()[0].startswith("18.")


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_it_follows_all_pages_of_a_list(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab, alice: Person
) -> None:
    made = [make_token(gatebell, alice).id for _ in range(5)]
    library = open_gitlab(private_token=make_token(gatebell, alice, scopes="read_api").clear)

    pages = library.personal_access_tokens.list(iterator=True, per_page=2)

    assert (pages.total, pages.total_pages, pages.per_page) == (6, 3, 2)
    assert [token.id for token in pages][1:] == made[::-1]
    active = library.personal_access_tokens.list(get_all=True, state="active", sort="created_asc")
    assert [token.id for token in active][:5] == made
    assert all(token.active for token in active)


@pytest.mark.spec("G4")
def test_it_rotates_its_own_token_and_uses_the_new_one(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab, alice: Person
) -> None:
    library = open_gitlab(private_token=make_token(gatebell, alice, name="nightly").clear)
    own = library.personal_access_tokens.get("self")
    until = (now() + timedelta(days=60)).date().isoformat()

    new = own.rotate(self_rotate=True, expires_at=until)

    with pytest.raises(GitlabAuthenticationError):
        library.auth()
    renewed = open_gitlab(private_token=new["token"])
    seen = renewed.personal_access_tokens.get("self")
    assert (seen.name, seen.expires_at, seen.revoked) == ("nightly", until, False)


@pytest.mark.spec("G4")
def test_it_rotates_and_revokes_other_tokens(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab, alice: Person
) -> None:
    library = open_gitlab(private_token=make_token(gatebell, alice).clear)
    other = make_token(gatebell, alice, name="other")

    token = library.personal_access_tokens.get(other.id)
    token.rotate()
    assert open_gitlab(private_token=token.token).personal_access_tokens.get("self").id == token.id
    token.delete()

    revoked = library.personal_access_tokens.list(get_all=True, revoked=True)
    assert {each.id for each in revoked} == {other.id, token.id}
    with pytest.raises(GitlabGetError) as refused:
        library.personal_access_tokens.get(999_999_999)
    assert refused.value.response_code == 404


@pytest.mark.spec("G4")
def test_an_administrators_script_makes_tokens_for_users(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab, alice: Person
) -> None:
    root = make_token(gatebell, make_user(gatebell, name="root", admin=True))
    user_id = make_token(gatebell, alice).user_id

    user = open_gitlab(private_token=root.clear).users.get(user_id, lazy=True)
    made = user.personal_access_tokens.create({"name": "ci", "scopes": ["read_user"]})

    library = open_gitlab(private_token=made.token)
    library.auth()
    assert library.user is not None
    assert library.user.username == alice.username


@pytest.mark.both_databases
@pytest.mark.spec("L3", "M4")
def test_external_ci_reports_statuses_and_deployments(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab
) -> None:
    owner = make_user(gatebell)
    path = make_project(gatebell, owner)
    library = open_gitlab(private_token=make_token(gatebell, owner).clear)
    project = library.projects.get(path, lazy=True)
    sha = "0123456789abcdef0123456789abcdef01234567"

    status = project.commits.get(sha, lazy=True).statuses.create(
        {"state": "running", "name": "build", "ref": "main"}
    )
    assert status.status == "running"
    deployment = project.deployments.create(
        {"environment": "production", "sha": sha, "ref": "main", "tag": False, "status": "running"}
    )
    deployment.status = "success"
    deployment.save()
    found = project.deployments.list(
        get_all=True,
        status="success",
        finished_after="2026-01-01T00:00:00Z",
        order_by="finished_at",
    )
    assert [(each.id, each.environment["name"]) for each in found] == [
        (deployment.id, "production")
    ]
    environment = project.environments.get(found[0].environment["id"])
    environment.external_url = "https://shop.example"
    environment.save()
    environment.stop()
    assert project.environments.list(states="stopped")[0].id == environment.id
    release = project.releases.create({"tag_name": "v1.0", "description": "First"})
    release.links.create({"name": "shop.tar.gz", "url": "https://files.example/shop.tar.gz"})
    (link,) = project.releases.get("v1.0").assets["links"]
    assert (link["name"], link["link_type"]) == ("shop.tar.gz", "other")
    statuses = project.commits.get(sha, lazy=True).statuses.list(get_all=True)
    assert [each.name for each in statuses] == ["build"]
    library.http_delete(f"/projects/{project.encoded_id}/deployments/{deployment.id}")
    assert project.deployments.list(get_all=True) == []


@pytest.mark.spec("G4")
def test_an_administrator_deactivates_and_approves(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab
) -> None:
    token = make_token(gatebell, make_user(gatebell, admin=True)).clear
    library = open_gitlab(private_token=token)
    person, waiting = make_user(gatebell), make_user(gatebell)
    set_state(gatebell, waiting, "pending")
    user, new = (library.users.list(username=each.username)[0] for each in (person, waiting))
    assert new.state == "blocked_pending_approval"
    assert user.deactivate()
    assert library.users.get(user.id).state == "deactivated"
    assert user.activate()
    assert library.users.get(user.id).state == "active"
    new.approve()
    assert library.users.get(new.id).state == "active"
    with pytest.raises(GitlabUserApproveError, match="is not pending approval"):
        new.approve()
    set_state(gatebell, waiting, "pending")
    new.reject()
    with pytest.raises(GitlabGetError):
        library.users.get(new.id)


@pytest.mark.spec("G4")
def test_an_owner_requires_a_second_factor(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab, alice: Person
) -> None:
    path = make_project(gatebell, alice).partition("/")[0]
    library = open_gitlab(private_token=make_token(gatebell, alice).clear)
    group = library.groups.get(path)
    assert not group.require_two_factor_authentication
    group.require_two_factor_authentication = True
    group.two_factor_grace_period = 24
    group.save()
    group = library.groups.get(path)
    assert group.require_two_factor_authentication
    assert group.two_factor_grace_period == 24


@pytest.mark.spec("M4")
def test_external_ci_reports_for_a_commit_that_was_pushed(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab, tmp_path: Path
) -> None:
    owner = make_user(gatebell)
    path, token = make_project(gatebell, owner), make_token(gatebell, owner).clear
    git = GitClient(gatebell=gatebell, home=tmp_path / "home", token=token)
    work = git.new_work({"a.txt": b"a\n"})
    assert git.push(work, path).status == 0

    project = open_gitlab(private_token=token).projects.get(path)
    commit = project.commits.get(git.head(work))
    commit.statuses.create({"state": "success", "name": "build", "ref": "main"})
    assert [each.name for each in commit.statuses.list(get_all=True)] == ["build"]
    seen = project.commits.get("main")
    assert (seen.id, seen.status, seen.last_pipeline) == (commit.id, "success", None)
    with pytest.raises(GitlabGetError) as missing:
        project.commits.get("0123456789abcdef0123456789abcdef01234567")
    assert missing.value.response_code == 404
