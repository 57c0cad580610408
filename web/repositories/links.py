"""URLs of the pages of a repository; names of files and branches are bytes."""

from typing import NamedTuple
from urllib.parse import quote_from_bytes

from flask import request, url_for

from domain.projects.views import ProjectView
from domain.repositories.reading import Branch, Entry
from web.http.public_urls import public_url


def clone_url(project: ProjectView) -> str:
    """Return the address that Git clones."""
    page = url_for("projects.show_namespace", full_path=project.path)
    return public_url(f"{page}.git")


def tail_of_request() -> bytes:
    """Return what follows `/-/tree/`, `/-/blob/` or `/-/commits/` in the URL, as it was sent.

    Flask decodes paths as UTF-8 and loses other bytes; WSGI has a character for each (PEP 3333).
    """
    path = str(request.environ["PATH_INFO"]).encode("latin-1")
    return path.partition(b"/-/")[2].partition(b"/")[2].strip(b"/")


def links_of(project: ProjectView, branch: Branch) -> "RepositoryLinks":
    """Return the pages of a branch; what it returns needs no request."""
    return RepositoryLinks(url_for("projects.show_namespace", full_path=project.path), branch)


class RepositoryLinks(NamedTuple):
    """The pages of one branch of a repository."""

    #: URL of the project's page.
    project_url: str
    branch: Branch

    def folder(self, path: bytes = b"") -> str:
        """Return the URL of a folder, by default of the root."""
        return self._url("tree", path)

    def file(self, path: bytes) -> str:
        """Return the URL of a file."""
        return self._url("blob", path)

    def entry(self, entry: Entry) -> str:
        """Return the URL of an entry."""
        return self._url("tree" if entry.kind == "folder" else "blob", entry.path)

    def commits(self) -> str:
        """Return the URL of the commits."""
        return self._url("commits", b"")

    def of(self, branch: Branch) -> "RepositoryLinks":
        """Return the links of another branch."""
        return self._replace(branch=branch)

    def _url(self, page: str, path: bytes) -> str:
        tail = self.branch.name + (b"/" + path if path else b"")
        return f"{self.project_url}/-/{page}/{quote_from_bytes(tail)}"
