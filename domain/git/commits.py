"""Reads commits from a repository with Git's plumbing commands."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from domain.core.errors import NotFoundError
from domain.git.program import Git

_MAX_TITLE_LENGTH = 500
#: Maximum number of bytes in a commit message. Longer messages are truncated.
_MAX_MESSAGE_LENGTH = 1024 * 1024
_FULL_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT_HASH = re.compile(r"[0-9a-fA-F]{7,64}")
#: Pattern that matches invalid branch and tag names (git check-ref-format). Git interprets `^`,
#: `~`, `:` and `@{` as operators.
_INVALID_REF_NAME_PATTERN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|[/.]$")
_MAX_REF_NAME_BYTES = 255
_LINE_COUNTS_PATTERN = re.compile(rb"(\d+)\t(\d+)\t")


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The author or committer of a commit, with the time."""

    name: str
    email: str
    #: Time of the signature, or None if the stored time is out of range.
    at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ChangedLines:
    """The numbers of lines that a commit adds and deletes, compared with its first parent."""

    additions: int
    deletions: int


@dataclass(frozen=True, kw_only=True)
class CommitDetails:
    """A commit with its message, parents, author and committer."""

    id: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str

    @property
    def title(self) -> str:
        """First line of the message."""
        return self.message.partition("\n")[0].strip()[:_MAX_TITLE_LENGTH]


def _decode_name(name: bytes) -> str:
    """Return a displayable name, with U+FFFD for invalid UTF-8 and nonprintable characters."""
    text = name.decode("utf-8", "replace")
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


class CommitReader:
    """Reader of the commits in a repository, which might not exist."""

    def __init__(self, git: Git, path: Path) -> None:
        """Store the Git program and the path of the repository."""
        self._git = git
        self._path = path

    def find_commit(self, revision: str) -> CommitDetails:
        """Return the commit that a hash, branch or tag refers to.

        An abbreviated hash has at least 7 digits. As in Git, full hashes take precedence over tags,
        tags over branches, and branches over abbreviated hashes.

        Raise NotFoundError if the repository has no such commit.
        """
        found = self._find_hash(revision) if self._path.exists() else b""
        if not found:
            raise NotFoundError("Commit not found.")
        output = self._git.run_command(
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
        return _parse_commit(output)

    def count_changed_lines(self, commit: CommitDetails) -> ChangedLines:
        """Return the numbers of lines that a commit adds and deletes, excluding binary files."""
        output = self._git.run_command(
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
        counts = [_LINE_COUNTS_PATTERN.match(record) for record in output.split(b"\0")]
        return ChangedLines(
            additions=sum(int(each[1]) for each in counts if each),
            deletions=sum(int(each[2]) for each in counts if each),
        )

    def _find_hash(self, revision: str) -> bytes:
        """Return the hash of the commit that a revision names, or empty bytes."""
        names = [f"refs/tags/{revision}", f"refs/heads/{revision}"]
        if _FULL_HASH.fullmatch(revision):
            candidates = [revision]
        elif revision == "HEAD":
            candidates = ["HEAD"]
        else:
            is_hash = _SHORT_HASH.fullmatch(revision)
            candidates = [
                *(names if _is_ref_name(revision) else ()),
                *([revision] if is_hash else ()),
            ]
        for candidate in candidates:
            output = self._git.run_command(
                self._path,
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                f"{candidate}^{{commit}}",
                accepted_statuses=(0, 1, 128),
            )
            if output:
                return output.split()[-1]
        return b""


def _is_ref_name(revision: str) -> bool:
    """Return whether a branch or tag can have this name."""
    return (
        len(revision.encode()) <= _MAX_REF_NAME_BYTES
        and _INVALID_REF_NAME_PATTERN.search(revision) is None
    )


def _parse_commit(record: bytes) -> CommitDetails:
    parts = (record.split(b"\0", 8) + [b""] * 8)[:9]
    commit, parents, *people, message = parts
    author, committer = (
        Signature(name=_decode_name(name), email=_decode_name(email), at=_parse_timestamp(seconds))
        for name, email, seconds in (people[:3], people[3:])
    )
    return CommitDetails(
        id=commit.decode(),
        parents=tuple(parents.decode().split()),
        author=author,
        committer=committer,
        # Git adds a line break to the end of its output.
        message=message.removesuffix(b"\n")[:_MAX_MESSAGE_LENGTH].decode("utf-8", "replace"),
    )


def _parse_timestamp(seconds: bytes) -> datetime | None:
    """Convert a Unix timestamp to a time, or return None if it is out of range."""
    try:
        return datetime.fromtimestamp(int(seconds), tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
