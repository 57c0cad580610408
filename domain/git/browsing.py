"""Reads branches, commits, folders and files of a repository with Git's plumbing commands.

Names of files and branches are bytes, because Git accepts nearly all byte sequences. Every list and
every file is truncated before a page would become too long.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from stat import S_IFMT, S_IFREG

from domain.core.errors import NotFoundError
from domain.git.errors import GitFailedError
from domain.git.program import Git
from domain.git.storage import default_branch
from domain.git.subprocess import Argument, ChildTimeoutError

MOST_BRANCHES = 100
MOST_ENTRIES = 1_000
#: Maximum size of a displayed file in bytes.
LARGEST_SHOWN = 512 * 1024
#: Maximum number of commits before a page. Git reads all the commits that it skips.
MOST_COMMITS = 10_000
#: Byte that marks a file as binary if it occurs near the start.
_BINARY = b"\x00"
_LOOKED_AT = 8_192
_LONGEST_TITLE = 500
_HEADS = b"refs/heads/"
#: Maximum length of a commit message in bytes. Longer messages are truncated.
_LONGEST_MESSAGE = 1024 * 1024
_FULL_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT_HASH = re.compile(r"[0-9a-fA-F]{7,64}")
#: Characters that names of branches and tags cannot contain (git check-ref-format). Git treats `^`,
#: `~`, `:` and `@{` as operators.
_NO_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|[/.]$")
_LONGEST_NAME = 255
_LINE_COUNTS = re.compile(rb"(\d+)\t(\d+)\t")


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A branch with its latest commit."""

    name: bytes
    tip: str

    @property
    def label(self) -> str:
        """Return the name as text."""
        return text_of(self.name)


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit."""

    id: str
    title: str
    author: str
    authored_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The author or committer of a commit, with the time."""

    name: str
    email: str
    #: Time of the signature. None if it is outside of the calendar.
    at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ChangedLines:
    """The numbers of lines that a commit adds and deletes compared with its first parent."""

    additions: int
    deletions: int


@dataclass(frozen=True, kw_only=True)
class CommitDetails:
    """A commit with its message, its parents, its author and its committer."""

    id: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str

    @property
    def title(self) -> str:
        """Return the first line of the message."""
        return self.message.partition("\n")[0].strip()[:_LONGEST_TITLE]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry of a folder."""

    name: bytes
    #: Full path in the repository.
    path: bytes
    id: str
    #: Kind of the entry: folder, file, link or submodule.
    kind: str
    #: Size in bytes. None unless the entry is a file.
    size: int | None

    @property
    def label(self) -> str:
        """Return the name as text."""
        return text_of(self.name)

    @property
    def can_be_opened(self) -> bool:
        """Return whether the entry has a page; URLs of pages cannot contain line breaks."""
        return self.kind != "submodule" and b"\n" not in self.path


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder with its entries, folders first."""

    entries: tuple[Entry, ...]
    #: Whether some entries were left out.
    is_cut: bool


@dataclass(frozen=True, kw_only=True)
class CommitPage:
    """A page of commits, newest first."""

    commits: tuple[Commit, ...]
    has_older: bool


def text_of(name: bytes) -> str:
    """Return a name as text; invalid UTF-8 and unprintable characters become U+FFFD."""
    text = name.decode("utf-8", "replace")
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


class RepositoryReader:
    """Read access to a repository. A repository that does not exist is treated as empty."""

    def __init__(self, git: Git, path: Path) -> None:
        """Store Git and the path of the repository."""
        self._git = git
        self._path = path

    def branches(self) -> tuple[Branch, ...]:
        """Return the default branch and the most recently changed ones, at most MOST_BRANCHES."""
        if not self._path.exists():
            return ()
        default = default_branch(self._path)
        listed = self._branches(f"--count={MOST_BRANCHES}", "--sort=-committerdate", "refs/heads/")
        if default not in {branch.name for branch in listed}:
            listed = (*self._branches(_HEADS + default), *listed)
        return tuple(sorted(listed, key=lambda branch: branch.name != default))

    def find(self, tail: bytes) -> tuple[Branch, bytes]:
        """Return the branch at the start of `branch/path`, and the path.

        The full hash of a commit stands for a branch that ends with this commit. The branch is
        unambiguous, because `a` and `a/b` cannot both exist. Raise NotFoundError if there is no
        such branch.
        """
        parts = tail.split(b"/")
        if b"\0" in tail or {b".", b".."} & set(parts):
            raise NotFoundError("Branch not found.")
        names = [b"/".join(parts[: count + 1]) for count in range(min(len(parts), 20))]
        wanted = [_HEADS + name for name in names if name and not name.endswith((b"/", b"."))]
        found = self._branches(*wanted) if wanted and self._path.exists() else ()
        branch = next((each for each in found if each.name in names), None)
        if branch is None:
            branch = self._commit_as_branch(parts[0])
        if branch is None:
            raise NotFoundError("Branch not found.")
        return branch, tail[len(branch.name) + 1 :].strip(b"/")

    def _commit_as_branch(self, name: bytes) -> Branch | None:
        is_hash = self._path.exists() and _FULL_HASH.fullmatch(name.decode("latin-1"))
        tip = self._commit_named(name.decode("latin-1")) if is_hash else b""
        return Branch(name=name, tip=tip.decode()) if tip and tip == name else None

    def commits(self, branch: Branch, *, skip: int, count: int) -> CommitPage:
        """Return a page of commits of a branch.

        Raise NotFoundError beyond MOST_COMMITS.
        """
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

    def find_commit(self, revision: str) -> CommitDetails:
        """Return the commit of a hash, branch or tag.

        An abbreviated hash has at least 7 digits. As in Git, a full hash takes precedence over a
        tag, a tag over a branch, and both over an abbreviated hash. Raise NotFoundError if there is
        no such commit.
        """
        found = self._commit_named(revision) if self._path.exists() else b""
        if not found:
            raise NotFoundError("Commit not found.")
        output = self._git.run(
            self._path,
            "log",
            "--max-count=1",
            "--no-show-signature",
            "--no-decorate",
            "--encoding=UTF-8",
            "--format=%H%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B",
            "--end-of-options",
            found,
        )
        return _details(output)

    def changed_lines(self, commit: CommitDetails) -> ChangedLines:
        """Return the number of lines that a commit changes, not counting binary files."""
        output = self._git.run(
            self._path,
            "show",
            "--format=",
            "--numstat",
            "-z",
            "--no-renames",
            "--diff-merges=first-parent",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--end-of-options",
            commit.id,
        )
        counts = [_LINE_COUNTS.match(record) for record in output.split(b"\0")]
        return ChangedLines(
            additions=sum(int(each[1]) for each in counts if each),
            deletions=sum(int(each[2]) for each in counts if each),
        )

    def _commit_named(self, revision: str) -> bytes:
        """Return the hash of the commit that a revision refers to, or an empty value."""
        names = [f"refs/tags/{revision}", f"refs/heads/{revision}"]
        if _FULL_HASH.fullmatch(revision):
            candidates = [revision]
        elif revision == "HEAD":
            candidates = ["HEAD"]
        else:
            is_hash = _SHORT_HASH.fullmatch(revision)
            candidates = [*(names if _is_name(revision) else ()), *([revision] if is_hash else ())]
        for candidate in candidates:
            output = self._git.run(
                self._path,
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                f"{candidate}^{{commit}}",
                accepted=(0, 1, 128),
            )
            if output:
                return output.split()[-1]
        return b""

    def entry(self, branch: Branch, path: bytes) -> Entry | None:
        """Return the entry at a path, or None for the root folder.

        Raise NotFoundError if there is none.
        """
        if not path:
            return None
        found = list(self._entries(branch.tip, b"", "--", path))
        if not found or found[0].path != path:
            raise NotFoundError("File not found on this branch.")
        return found[0]

    def folder(self, branch: Branch, entry: Entry | None) -> Folder:
        """Return the entries of a folder; None stands for the root folder."""
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
        """Yield entries one by one, so that the caller can stop early."""
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


def _is_name(revision: str) -> bool:
    """Return whether a branch or tag can have this name."""
    return len(revision.encode()) <= _LONGEST_NAME and _NO_NAME.search(revision) is None


def _details(record: bytes) -> CommitDetails:
    parts = (record.split(b"\0", 8) + [b""] * 8)[:9]
    commit, parents, *people, message = parts
    author, committer = (
        Signature(name=text_of(name), email=text_of(email), at=_moment(seconds))
        for name, email, seconds in (people[:3], people[3:])
    )
    return CommitDetails(
        id=commit.decode(),
        parents=tuple(parents.decode().split()),
        author=author,
        committer=committer,
        # Git adds a line break at the end of its output.
        message=message.removesuffix(b"\n")[:_LONGEST_MESSAGE].decode("utf-8", "replace"),
    )


def _moment(seconds: bytes) -> datetime | None:
    """Return a time, or None if it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(int(seconds), tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
