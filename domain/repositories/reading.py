"""Reads branches, commits, folders and files of a repository by Git's plumbing.

Names of files and branches are bytes: Git takes nearly all. Every list and every file is cut where
a page would become too long.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from stat import S_IFMT, S_IFREG

from domain.errors import NotFoundError
from domain.repositories.child import Argument, ChildTimeoutError
from domain.repositories.errors import GitFailedError
from domain.repositories.program import Git
from domain.repositories.storage import default_branch

MOST_BRANCHES = 100
MOST_ENTRIES = 1_000
#: Larger files are not shown.
LARGEST_SHOWN = 512 * 1024
#: Pages of commits beyond this are refused: Git reads all that it skips.
MOST_COMMITS = 10_000
#: A file with one of these bytes among its first is no text.
_BINARY = b"\x00"
_LOOKED_AT = 8_192
_LONGEST_TITLE = 500
_HEADS = b"refs/heads/"


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A branch with its newest commit."""

    name: bytes
    tip: str

    @property
    def label(self) -> str:
        """Return the name for people."""
        return text_of(self.name)


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit."""

    id: str
    title: str
    author: str
    authored_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry of a folder."""

    name: bytes
    #: Its full path in the repository.
    path: bytes
    id: str
    #: folder, file, link or submodule.
    kind: str
    #: In bytes; None for what is no file.
    size: int | None

    @property
    def label(self) -> str:
        """Return the name for people."""
        return text_of(self.name)

    @property
    def can_be_opened(self) -> bool:
        """Return whether it has a page; URLs of pages hold no line break."""
        return self.kind != "submodule" and b"\n" not in self.path


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder with its entries, folders first."""

    entries: tuple[Entry, ...]
    #: Whether there are more entries than these.
    is_cut: bool


@dataclass(frozen=True, kw_only=True)
class CommitPage:
    """A page of commits, the newest first."""

    commits: tuple[Commit, ...]
    has_older: bool


def text_of(name: bytes) -> str:
    """Return a name for people; what is no UTF-8 and no character to print shows U+FFFD."""
    text = name.decode("utf-8", "replace")
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


class RepositoryReader:
    """The readable parts of a repository; a repository that does not exist is empty."""

    def __init__(self, git: Git, path: Path) -> None:
        """Take Git and the path of the repository."""
        self._git = git
        self._path = path

    def branches(self) -> tuple[Branch, ...]:
        """Return the default branch and those changed last, at most MOST_BRANCHES."""
        if not self._path.exists():
            return ()
        default = default_branch(self._path)
        listed = self._branches(f"--count={MOST_BRANCHES}", "--sort=-committerdate", "refs/heads/")
        if default not in {branch.name for branch in listed}:
            listed = (*self._branches(_HEADS + default), *listed)
        return tuple(sorted(listed, key=lambda branch: branch.name != default))

    def find(self, tail: bytes) -> tuple[Branch, bytes]:
        """Return the branch that `branch/path` begins with, and the path.

        Of several, as `a` and `a/b` cannot both exist, there is one. Raises NotFoundError.
        """
        parts = tail.split(b"/")
        if b"\0" in tail or {b".", b".."} & set(parts):
            raise NotFoundError("Branch not found.")
        names = [b"/".join(parts[: count + 1]) for count in range(min(len(parts), 20))]
        wanted = [_HEADS + name for name in names if name and not name.endswith((b"/", b"."))]
        found = self._branches(*wanted) if wanted and self._path.exists() else ()
        branch = next((each for each in found if each.name in names), None)
        if branch is None:
            raise NotFoundError("Branch not found.")
        return branch, tail[len(branch.name) + 1 :].strip(b"/")

    def commits(self, branch: Branch, *, skip: int, count: int) -> CommitPage:
        """Return a page of commits of a branch; raise NotFoundError far beyond the newest."""
        if skip > MOST_COMMITS:
            raise NotFoundError("Only the newest commits are shown: clone the repository instead.")
        output = self._git.run(
            self._path,
            "log",
            "-z",
            "--no-show-signature",
            "--no-decorate",
            "--encoding=UTF-8",
            "--format=%H%n%an%n%at%n%s",
            f"--skip={skip}",
            f"--max-count={count + 1}",
            "--end-of-options",
            branch.tip,
        )
        found = tuple(_commit(record) for record in output.split(b"\0") if record)
        return CommitPage(commits=found[:count], has_older=len(found) > count)

    def entry(self, branch: Branch, path: bytes) -> Entry | None:
        """Return the entry at a path, None for the root folder; raises NotFoundError."""
        if not path:
            return None
        found = list(self._entries(branch.tip, b"", "--", path))
        if not found or found[0].path != path:
            raise NotFoundError("File not found on this branch.")
        return found[0]

    def folder(self, branch: Branch, entry: Entry | None) -> Folder:
        """Return the entries of a folder; None is the root."""
        tree = branch.tip if entry is None else entry.id
        before = b"" if entry is None else entry.path + b"/"
        found: list[Entry] = []
        for each in self._entries(tree, before):
            if len(found) == MOST_ENTRIES:
                return Folder(entries=_in_order(found), is_cut=True)
            found.append(each)
        return Folder(entries=_in_order(found), is_cut=False)

    def content(self, entry: Entry) -> bytes | None:
        """Return the content of a file, or None if it is too large to show."""
        if entry.size is None or entry.size > LARGEST_SHOWN:
            return None
        return self._git.run(self._path, "cat-file", "blob", entry.id)

    def _branches(self, *arguments: Argument) -> tuple[Branch, ...]:
        output = self._git.run(
            self._path, "for-each-ref", "--format=%(objectname) %(refname)", *arguments
        )
        pairs = (line.partition(b" ") for line in output.splitlines())
        return tuple(
            Branch(name=name.removeprefix(_HEADS), tip=commit.decode()) for commit, _, name in pairs
        )

    def _entries(self, tree: str, before: bytes, *arguments: Argument) -> Iterator[Entry]:
        """Read entries one by one, so that the caller can stop."""
        child = self._git.open(self._path, "ls-tree", "-z", "--long", tree, *arguments)
        rest = b""
        try:
            child.end_input()
            while piece := child.read():
                *whole, rest = (rest + piece).split(b"\0")
                yield from (_entry(record, before) for record in whole)
            if child.wait(1.0) != 0:
                raise GitFailedError("The folder cannot be read.")
        except ChildTimeoutError as error:
            raise GitFailedError("The folder cannot be read in time.") from error
        finally:
            child.end()
            child.errors()


def is_text(content: bytes) -> bool:
    """Return whether a file can be shown as text."""
    return _BINARY not in content[:_LOOKED_AT]


def _in_order(entries: list[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda each: (each.kind != "folder", each.name.lower())))


def _entry(record: bytes, before: bytes) -> Entry:
    about, _, name = record.partition(b"\t")
    mode, _type, object_id, size = about.split()
    return Entry(
        name=name.rpartition(b"/")[2],
        path=before + name,
        id=object_id.decode(),
        kind=_kind(int(mode, 8)),
        size=int(size) if size != b"-" else None,
    )


def _kind(mode: int) -> str:
    kinds = {0o040000: "folder", 0o120000: "link", 0o160000: "submodule", S_IFREG: "file"}
    return kinds.get(S_IFMT(mode), "file")


def _commit(record: bytes) -> Commit:
    commit, author, seconds, title = (record.split(b"\n", 3) + [b""] * 3)[:4]
    return Commit(
        id=commit.decode(),
        title=text_of(title)[:_LONGEST_TITLE],
        author=text_of(author)[:_LONGEST_TITLE],
        authored_at=_moment(seconds),
    )


def _moment(seconds: bytes) -> datetime | None:
    """Return a time; None for one that no calendar has."""
    try:
        return datetime.fromtimestamp(int(seconds), tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
