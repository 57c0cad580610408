"""Git's own client clones, fetches and pushes with each kind of token."""

from collections.abc import Callable
from pathlib import Path

import pytest

from domain.access.roles import Role
from domain.audit.events import EventKind
from tests.support.accounts.people import (
    Person,
    bob,
    make_application,
    make_project,
    make_user,
    open_browser,
)
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.resource_tokens import get_namespace, make_bot_token
from tests.support.accounts.team import give_role
from tests.support.database.audit_log import list_events_with_subject
from tests.support.git.client import GitClient
from tests.support.oauth.oauth_wire import (
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    submit_decision,
)
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

SCOPES = "read_repository write_repository"
FILES = {"README.md": b"# Shop\n", "lib/a.py": b"print(1)\n", "big": bytes(range(256)) * 4096}


def personal(gatebell: LiveGatebell, owner: Person, project: str) -> str:
    del project
    return make_token(gatebell, owner, scopes=SCOPES).clear


def of_resource(kind: str) -> Callable[[LiveGatebell, Person, str], str]:
    def make(gatebell: LiveGatebell, owner: Person, project: str) -> str:
        script = Api(gatebell, make_token(gatebell, owner).clear)
        namespace = get_namespace(gatebell, kind, project)
        made = make_bot_token(script, namespace, scopes=SCOPES.split(), access_level=30)
        return made.clear

    return make


def of_application(gatebell: LiveGatebell, owner: Person, project: str) -> str:
    del project
    client = make_application(gatebell, bob(gatebell), scopes=SCOPES)
    browser = open_browser(gatebell, owner)
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, client)))[
        "code"
    ]
    return parse_token_pair(redeem(gatebell, client, code)).access


KINDS: dict[str, Callable[[LiveGatebell, Person, str], str]] = {
    "personal": personal,
    "project": of_resource("projects"),
    "group": of_resource("groups"),
    "application": of_application,
}


@pytest.fixture
def owner(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell)


@pytest.fixture
def project(gatebell: LiveGatebell, owner: Person) -> str:
    return make_project(gatebell, owner)


@pytest.fixture
def git(gatebell: LiveGatebell, owner: Person, tmp_path: Path) -> GitClient:
    token = make_token(gatebell, owner, scopes=SCOPES).clear
    return GitClient(gatebell=gatebell, home=tmp_path / "home", token=token)


@pytest.mark.long
@pytest.mark.spec("G2")
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_token_pushes_fetches_and_clones(
    gatebell: LiveGatebell, owner: Person, project: str, tmp_path: Path, kind: str
) -> None:
    git = GitClient(gatebell=gatebell, home=tmp_path, token=KINDS[kind](gatebell, owner, project))
    empty = git.clone(project, into="empty")
    assert [file.name for file in empty.iterdir()] == [".git"]
    work = git.new_work(FILES)
    assert "[new branch]      main -> main" in git.push(work, project).said
    copy = git.clone(project)
    assert {path: (copy / path).read_bytes() for path in FILES} == FILES
    second = git.commit(work, {"lib/a.py": b"print(2)\n"}, message="Print another number")
    assert git.push(work, project).status == 0
    git.do("-C", str(copy), "pull", "--quiet")
    assert git.head(copy) == second


@pytest.mark.spec("G2")
@pytest.mark.one_database("sqlite")
def test_git_works_with_the_application_token_of_a_credential_helper(
    gatebell: LiveGatebell, owner: Person, project: str, tmp_path: Path
) -> None:
    """Helpers such as git-credential-oauth give Git the username `oauth2`."""
    token = of_application(gatebell, owner, project)
    helper = f"!f() {{ echo username=oauth2; echo password={token}; }}; f"
    options = ("-c", f"credential.helper={helper}")
    git = GitClient(gatebell=gatebell, home=tmp_path, options=options)
    assert git.push(git.new_work(FILES), project).status == 0
    assert (git.clone(project) / "README.md").exists()


@pytest.mark.long
@pytest.mark.one_database("sqlite")
@pytest.mark.parametrize("version", ["0", "1", "2"])
def test_every_protocol_version_supports_shallow_and_partial_clones(
    git: GitClient, project: str, version: str
) -> None:
    work = git.new_work(FILES)
    git.commit(work, {"README.md": b"# Shop 2\n"}, message="Rename")
    assert git.push(work, project).status == 0
    spoken = GitClient(
        gatebell=git.gatebell,
        home=git.home,
        token=git.token,
        options=("-c", f"protocol.version={version}"),
    )
    shallow = spoken.clone(project, "--depth=1", into="shallow")
    assert spoken.do("-C", str(shallow), "rev-list", "--count", "HEAD").strip() == "1"
    spoken.do("-C", str(shallow), "fetch", "--quiet", "--unshallow")
    assert spoken.do("-C", str(shallow), "rev-list", "--count", "HEAD").strip() == "2"
    part = spoken.clone(project, "--filter=blob:none", "--no-checkout", into="part")
    missing = spoken.do("-C", str(part), "rev-list", "--all", "--objects", "--missing=print")
    assert missing.count("\n?") == 4
    spoken.do("-C", str(part), "checkout", "--quiet", "main")
    assert (part / "big").read_bytes() == FILES["big"]


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_a_public_project_can_be_cloned_but_only_members_can_push(
    gatebell: LiveGatebell, owner: Person, git: GitClient, tmp_path: Path
) -> None:
    project = make_project(gatebell, owner, visibility="public")
    work = git.new_work(FILES)
    assert git.push(work, project).status == 0
    nobody = GitClient(gatebell=gatebell, home=tmp_path / "nobody")
    assert (nobody.clone(project) / "README.md").read_bytes() == FILES["README.md"]
    told = nobody.push(nobody.home / "clone", project)
    assert "could not read Username" in told.said
    reporter = make_user(gatebell)
    give_role(gatebell, project, reporter, Role.REPORTER)
    token = make_token(gatebell, reporter, scopes=SCOPES).clear
    reader = GitClient(gatebell=gatebell, home=tmp_path / "reader", token=token)
    copy = reader.clone(project)
    told = reader.push(copy, project)
    assert "remote: You need the Developer role" in told.said
    assert "403" in told.said


@pytest.mark.one_database("sqlite")
def test_git_shows_the_reason_of_a_rejection(
    gatebell: LiveGatebell, git: GitClient, project: str, tmp_path: Path
) -> None:
    wrong = GitClient(gatebell=gatebell, home=tmp_path / "wrong", token="gbp-wrong")
    told = wrong.run("clone", wrong.url(project))
    assert told.status != 0
    assert "remote: The access token is invalid. Use a valid access token" in told.said
    gone = git.run("clone", git.url("acme/nowhere"))
    assert "remote: Project not found, or you do not have access." in gone.said
    small = GitClient(
        gatebell=gatebell,
        home=tmp_path / "small",
        token=make_token(gatebell, make_user(gatebell), scopes="read_api").clear,
    )
    told = small.run("clone", small.url(project))
    assert "remote: The access token must have one of these scopes: api, read" in told.said


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_the_first_pushed_branch_is_the_default_branch(git: GitClient, project: str) -> None:
    work = git.new_work(FILES, branch="trunk")
    assert git.push(work, project, "trunk").status == 0
    copy = git.clone(project)
    assert git.do("-C", str(copy), "symbolic-ref", "--short", "HEAD").strip() == "trunk"
    told = git.push(work, project, ":trunk")
    assert "refusing to delete the current branch" in told.said


@pytest.mark.long
@pytest.mark.spec("K2", "K3")
def test_downloads_are_recorded_once_except_for_public_projects(
    gatebell: LiveGatebell, owner: Person, git: GitClient
) -> None:
    for visibility, stored in (("private", 1), ("internal", 1), ("public", 0)):
        project = make_project(gatebell, owner, visibility=visibility)
        git.push(git.new_work(FILES, name=visibility), project)
        copy = git.clone(project, into=f"{visibility}-copy")
        # A fetch without new commits downloads nothing.
        git.do("-C", str(copy), "fetch", "--quiet")
        events = list_events_with_subject(gatebell, project)
        assert [event.kind for event in events] == ["repository_download_operation"] * stored
        for event in events:
            assert event.actor_name == owner.username
            assert event.details["visibility"] == visibility
            assert event.user_agent is not None
            assert event.user_agent.startswith("git/")


@pytest.mark.long
@pytest.mark.spec("K2")
@pytest.mark.one_database("sqlite")
def test_before_release_17_downloads_of_public_projects_are_stored(
    gatebell: LiveGatebell, owner: Person, git: GitClient
) -> None:
    project = make_project(gatebell, owner, visibility="public")
    git.push(git.new_work(FILES), project)
    with changed_settings(gatebell, release="16.11"):
        # A rehearsed release does not hide the download.
        hidden = ("-c", "http.extraHeader=Platform-Release: 17.0")
        GitClient(gatebell=gatebell, home=git.home, options=hidden).clone(project)
    (event,) = list_events_with_subject(gatebell, project)
    assert event.kind == EventKind.REPOSITORY_DOWNLOADED
    assert event.actor_id is None
