"""The data of repository pages, which is read without holding a database connection."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes

from flask import request, url_for
from markupsafe import Markup

from domain.core import threads
from domain.core.database.locks import release_locks
from domain.core.errors import NotFoundError
from domain.git.access import may_push, may_read
from domain.git.browsing import (
    Branch,
    Commit,
    CommitPage,
    Entry,
    Folder,
    RepositoryReader,
    is_text,
    text_of,
)
from domain.git.errors import GitFailedError, GitUnavailableError, RepositoryBusyError
from domain.git.readme import LARGEST_RENDERED, is_markdown, readme_among, render_readme
from domain.git.storage import repository_path
from domain.projects.views import ProjectView
from web.extensions import db
from web.http.public_urls import public_url
from web.services import git

#: Semaphore that limits how many pages of a web process read repositories at the same time.
_READERS = BoundedSemaphore(4)
_PATIENCE_SECONDS = 3.0
_RETRY_AFTER = 5


def clone_url(project: ProjectView) -> str:
    """Return the URL that Git clones."""
    page = url_for("projects.show_namespace", full_path=project.path)
    return public_url(f"{page}.git")


def tail_of_request() -> bytes:
    """Return the part of the URL after `/-/tree/`, `/-/blob/` or `/-/commits/` as raw bytes.

    Flask decodes paths as UTF-8 and loses other bytes; WSGI has a character for each byte (PEP
    3333).
    """
    path = str(request.environ["PATH_INFO"]).encode("latin-1")
    return path.partition(b"/-/")[2].partition(b"/")[2].strip(b"/")


def links_of(project: ProjectView, branch: Branch) -> "RepositoryLinks":
    """Return the links to the pages of a branch. The result can be used without a request."""
    return RepositoryLinks(url_for("projects.show_namespace", full_path=project.path), branch)


class RepositoryLinks(NamedTuple):
    """Links to the pages of a branch."""

    #: URL of the project's page.
    project_url: str
    branch: Branch

    def folder(self, path: bytes = b"") -> str:
        """Return the URL of a folder, by default the root."""
        return self._url("tree", path)

    def file(self, path: bytes) -> str:
        """Return the URL of a file."""
        return self._url("blob", path)

    def entry(self, entry: Entry) -> str:
        """Return the URL of a folder or file."""
        return self._url("tree" if entry.kind == "folder" else "blob", entry.path)

    def commits(self) -> str:
        """Return the URL of the list of commits."""
        return self._url("commits", b"")

    def of(self, branch: Branch) -> "RepositoryLinks":
        """Return the links of another branch."""
        return self._replace(branch=branch)

    def _url(self, page: str, path: bytes) -> str:
        tail = self.branch.name + (b"/" + path if path else b"")
        return f"{self.project_url}/-/{page}/{quote_from_bytes(tail)}"


@dataclass(frozen=True, kw_only=True)
class Readme:
    """A README, either as sanitized HTML or as plain text."""

    name: str
    html: Markup | None
    text: str


@dataclass(frozen=True, kw_only=True)
class FolderPage:
    """A folder of a branch."""

    links: RepositoryLinks
    branches: tuple[Branch, ...]
    path: bytes
    folder: Folder
    latest: Commit | None
    readme: Readme | None

    @property
    def parts(self) -> tuple[tuple[str, bytes], ...]:
        """Folders from the root to this folder, each with its path."""
        return _parts(self.path)


@dataclass(frozen=True, kw_only=True)
class FilePage:
    """A file of a branch."""

    links: RepositoryLinks
    entry: Entry
    #: Text of the file, or None if the file is binary or too large to show.
    text: str | None
    is_binary: bool

    @property
    def parts(self) -> tuple[tuple[str, bytes], ...]:
        """Folders from the root to the file, and the file itself, each with its path."""
        return _parts(self.entry.path)


@dataclass(frozen=True, kw_only=True)
class CommitsPage:
    """A page of commits of a branch."""

    links: RepositoryLinks
    branches: tuple[Branch, ...]
    page: CommitPage


def _parts(path: bytes) -> tuple[tuple[str, bytes], ...]:
    names = path.split(b"/") if path else []
    return tuple((text_of(name), b"/".join(names[: count + 1])) for count, name in enumerate(names))


def read_folder(project: ProjectView, tail: bytes) -> FolderPage | None:
    """Return the folder at `branch/path`, or the root of the default branch if the tail is empty.

    Return None for a repository without commits, which has no default branch yet. Raise
    NotFoundError, or an error of `domain.git.errors`.
    """
    with open_reader(project) as reader:
        branches = reader.branches()
        if tail:
            branch, path = reader.find(tail)
        elif branches:
            branch, path = branches[0], b""
        else:
            return None
        entry = reader.entry(branch, path)
        if entry is not None and entry.kind != "folder":
            raise NotFoundError("Folder not found on this branch.")
        folder = reader.folder(branch, entry)
        links = links_of(project, branch)
        latest = reader.commits(branch, skip=0, count=1).commits
        return FolderPage(
            links=links,
            branches=branches,
            path=path,
            folder=folder,
            latest=latest[0] if latest else None,
            readme=_readme(reader, folder, path, links),
        )


def read_file(project: ProjectView, tail: bytes) -> FilePage:
    """Return the file at `branch/path`.

    Raise NotFoundError if the branch has no such file.
    """
    with open_reader(project) as reader:
        branch, path = reader.find(tail)
        entry = reader.entry(branch, path)
        if entry is None or entry.kind == "folder":
            raise NotFoundError("File not found on this branch.")
        content = reader.content(entry)
        is_binary = content is not None and not is_text(content)
        shown = None if content is None or is_binary else content.decode("utf-8", "replace")
        links = links_of(project, branch)
        return FilePage(links=links, entry=entry, text=shown, is_binary=is_binary)


def read_commits(project: ProjectView, tail: bytes, *, skip: int, count: int) -> CommitsPage:
    """Return a page of commits of a branch.

    Raise NotFoundError if there is no such branch.
    """
    with open_reader(project) as reader:
        branch, path = reader.find(tail)
        if path:
            raise NotFoundError("Branch not found.")
        return CommitsPage(
            links=links_of(project, branch),
            branches=reader.branches(),
            page=reader.commits(branch, skip=skip, count=count),
        )


@contextmanager
def open_reader(project: ProjectView) -> Iterator[RepositoryReader]:
    """Open a project's repository with one of a few reader slots, without a database connection.

    Raise GitUnavailableError or RepositoryBusyError if the repository cannot be opened.
    """
    own = git()
    if problem := own.problem():
        raise GitUnavailableError(f"Git on this server is {problem}.")
    path = repository_path(own.root, project.id, project.created_at)
    release_locks(db.session())
    if not _READERS.acquire(timeout=_PATIENCE_SECONDS):
        message = "The server is busy with other repositories. Try again in a moment."
        raise RepositoryBusyError(message, retry_after=_RETRY_AFTER)
    try:
        yield RepositoryReader(own, path)
    finally:
        _READERS.release()


def _readme(
    reader: RepositoryReader, folder: Folder, path: bytes, links: RepositoryLinks
) -> Readme | None:
    files = {each.name: each for each in folder.entries if each.kind == "file"}
    name = readme_among(list(files))
    content = reader.content(files[name]) if name is not None else None
    if name is None or not content or not is_text(content):
        return None
    text, html = content.decode("utf-8", "replace"), None
    if is_markdown(name) and len(content) <= LARGEST_RENDERED:
        rendered = threads.rendering.run(render_readme, text, folder=path, url_of=links.file)
        html = Markup(rendered)  # noqa: S704 - cleaned
    return Readme(name=files[name].label, html=html, text=text)


def overview_of(project: ProjectView) -> dict[str, Any]:
    """Return the template variables for the repository part of a project's page.

    If the repository cannot be read, `problem` contains the reason and the rest of the page still
    works.
    """
    found: dict[str, Any] = {"shown": None, "problem": "", "clone_url": clone_url(project)}
    found["may_push"] = may_push(project)
    if may_read(project):
        try:
            found["shown"] = read_folder(project, b"")
        except (GitFailedError, GitUnavailableError, RepositoryBusyError) as error:
            found["problem"] = str(error)
    return found
