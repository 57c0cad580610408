"""What people see of a repository on pages: files, commits, a README."""

import os
import re
from html import unescape
from pathlib import Path

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.people import Person, make_project, make_user, signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import browser_of, give_role
from tests.support.git.client import GitClient
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

README = (
    b"# Shop\n\n<script>alert(1)</script>\n\n[Read on](docs/more.md) ![badge](http://x.example/b)\n"
)
#: Names that are no UTF-8, or hard to write in a URL or in HTML.
ODD = (b"caf\xe9.txt", b"a b&c?d#e%20.txt", b"<b>.txt", b":(top)x", b"--help", b"\xf0\x9f\x98\x80")


@pytest.fixture
def git(gatebell: LiveGatebell, alice: Person, tmp_path: Path) -> GitClient:
    token = make_token(gatebell, alice, scopes="write_repository").clear
    return GitClient(gatebell=gatebell, home=tmp_path / "home", token=token)


def pushed(git: GitClient, project: str, files: dict[str, bytes]) -> Path:
    """Push files to the project and return the working tree."""
    work = git.new_work(files)
    assert git.push(work, project).status == 0
    return work


def page(browser: requests.Session, gatebell: LiveGatebell, path: str) -> requests.Response:
    return browser.get(f"{gatebell.url}/{path}", allow_redirects=False)


def links_in(text: str) -> dict[str, str]:
    """Return the links of a page by their words."""
    found = re.findall(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', text, re.DOTALL)
    return {re.sub(r"<[^>]*>", "", words).strip(): unescape(href) for href, words in found}


@pytest.mark.long
def test_a_pushed_branch_is_on_the_page_of_the_project(
    gatebell: LiveGatebell, alice: Person, git: GitClient
) -> None:
    project = make_project(gatebell, alice)
    browser = signed_in(gatebell, alice)
    empty = page(browser, gatebell, project).text
    assert "The repository is empty" in empty
    assert f"git remote add origin {gatebell.url}/{project}.git" in empty
    work = pushed(git, project, {"README.md": README, "docs/more.md": b"# More\n"})
    git.do("-C", str(work), "checkout", "--quiet", "-b", "feature/new")
    git.commit(work, {"only/here.txt": b"hello <b>\n"}, message="Add <i>words</i>")
    assert git.push(work, project, "feature/new").status == 0
    shown = page(browser, gatebell, project).text
    assert f"{gatebell.url}/{project}.git" in shown
    assert "Begin" in shown
    assert "<h3>Shop</h3>" in shown
    assert "alert(1)" not in shown
    assert "x.example" not in shown
    links = links_in(shown)
    assert page(browser, gatebell, links["Read on"].lstrip("/")).status_code == 200
    branch = page(browser, gatebell, links["feature/new"].lstrip("/"))
    assert "only" in links_in(branch.text)
    folder = page(browser, gatebell, f"{project}/-/tree/feature/new/only")
    file = page(browser, gatebell, links_in(folder.text)["here.txt"].lstrip("/"))
    assert "hello &lt;b&gt;" in file.text
    commits = page(browser, gatebell, f"{project}/-/commits/feature/new")
    assert "Add &lt;i&gt;words&lt;/i&gt;" in commits.text
    assert git.head(work)[:10] in commits.text
    assert "script-src 'self'" in file.headers["Content-Security-Policy"]


@pytest.mark.long
def test_names_of_any_bytes_are_shown_and_lead_to_their_files(
    gatebell: LiveGatebell, alice: Person, git: GitClient
) -> None:
    project = make_project(gatebell, alice)
    work = git.new_work({"a": b"a"})
    for number, name in enumerate(ODD):
        (work / os.fsdecode(name)).write_bytes(b"content %d" % number)
    git.commit(work, {"line\nbreak": b"x"}, message="Add odd names")
    assert git.push(work, project).status == 0
    browser = signed_in(gatebell, alice)
    links = links_in(page(browser, gatebell, f"{project}/-/tree/main").text)
    found = {
        page(browser, gatebell, href.lstrip("/")).text.partition("content ")[2][:1]
        for href in links.values()
        if "/-/blob/" in href
    }
    assert found >= {str(number) for number, _ in enumerate(ODD)}
    assert not any("line" in words for words in links)


@pytest.mark.long
def test_large_and_binary_files_are_named_and_not_shown(
    gatebell: LiveGatebell, alice: Person, git: GitClient
) -> None:
    project = make_project(gatebell, alice)
    files = {"large.txt": b"word\n" * 200_000, "image": b"\x89PNG\x00\x00", "empty": b""}
    files |= {"latin": b"caf\xe9", "README.md": b"x" * 200_000}
    work = git.new_work(files)
    (work / "link").symlink_to("latin")
    git.commit(work, {}, message="Link")
    assert git.push(work, project).status == 0
    browser = signed_in(gatebell, alice)
    said = {
        name: page(browser, gatebell, f"{project}/-/blob/main/{name}").text
        for name in ("large.txt", "image", "empty", "latin", "link")
    }
    assert "too large to show" in said["large.txt"]
    assert "word" not in said["large.txt"].partition("too large")[0].partition("<h1")[2]
    assert "Binary file" in said["image"]
    assert "The file is empty" in said["empty"]
    assert "caf\ufffd" in said["latin"]
    assert "Symbolic link" in said["link"]
    # A README that would take long to render is a text.
    assert "<pre" in page(browser, gatebell, project).text


@pytest.mark.long
def test_what_is_not_there_is_not_found_and_never_an_error_of_ours(
    gatebell: LiveGatebell, alice: Person, git: GitClient
) -> None:
    project = make_project(gatebell, alice)
    pushed(git, project, {"lib/a": b"a"})
    browser = signed_in(gatebell, alice)
    for path in (
        *("tree/nope", "tree/main/nope", "tree/main/lib/a", "blob/main", "blob/main/lib"),
        *("blob/main/..%2f..%2fx", "blob/main/%00", "tree/%ff%fe", "tree/--help", "tree/main%0a"),
        *("commits/nope", "commits/main/lib", "commits/main?page=2", "blob/HEAD/lib/a"),
        *("tree/refs/heads/main", "tree/main..main", "tree/main~1", "tree/main@{0}", "tree/*"),
        f"tree/{'a/' * 3000}",
    ):
        answer = page(browser, gatebell, f"{project}/-/{path}")
        assert answer.status_code == 404, path
    for query in ("page=0", "page=x", "page=99999", "page=%D9%A1", "nonsense=1", "page=1&page=2"):
        answer = page(browser, gatebell, f"{project}/-/commits/main?{query}")
        assert answer.status_code in {400, 404}, query


@pytest.mark.long
def test_commits_come_in_pages(gatebell: LiveGatebell, alice: Person, git: GitClient) -> None:
    project = make_project(gatebell, alice)
    work = git.new_work({"a": b"a"})
    for number in range(30):
        git.do("-C", str(work), "commit", "--quiet", "--allow-empty", "-m", f"Number {number}.")
    assert git.push(work, project).status == 0
    browser = signed_in(gatebell, alice)
    first = page(browser, gatebell, f"{project}/-/commits/main").text
    assert "Number 29." in first
    assert "Begin" not in first
    older = page(browser, gatebell, links_in(first)["Older"].lstrip("/")).text
    assert "Begin" in older
    assert "Newer" in links_in(older)
    assert "Older" not in links_in(older)


def test_who_may_clone_sees_files_and_others_are_told_what_they_need(
    gatebell: LiveGatebell, alice: Person, git: GitClient
) -> None:
    hidden, public = (
        make_project(gatebell, alice, visibility=each) for each in ("private", "public")
    )
    for project in (hidden, public):
        work = git.home / "work"
        if not work.exists():
            git.new_work({"secret-file": b"x"})
        assert git.push(work, project).status == 0
    nobody = gatebell.http()
    assert "secret-file" in page(nobody, gatebell, public).text
    assert "secret-file" in page(nobody, gatebell, f"{public}/-/tree/main").text
    for path in ("tree", "tree/main", "blob/main/secret-file", "commits/main"):
        asked = page(nobody, gatebell, f"{hidden}/-/{path}")
        assert asked.status_code == 302
        assert "/users/sign_in" in asked.headers["Location"]
        stranger = browser_of(gatebell, hidden, None)
        assert page(stranger, gatebell, f"{hidden}/-/{path}").status_code == 404
    guest = browser_of(gatebell, hidden, Role.GUEST)
    assert "You need the Reporter role to see the repository." in page(guest, gatebell, hidden).text
    assert page(guest, gatebell, f"{hidden}/-/tree/main").status_code == 403
    reporter = make_user(gatebell)
    give_role(gatebell, hidden, reporter, Role.REPORTER)
    seen = page(signed_in(gatebell, reporter), gatebell, hidden).text
    assert "secret-file" in seen
    assert "git push" not in seen
