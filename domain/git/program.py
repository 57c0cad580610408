"""Git's own program: how it is started, and whether it is here at all.

Children get an environment and a configuration of ours alone: nothing of the operator's home, of
the system, or of what was pushed can change what they do.
"""

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from domain.git.errors import GitFailedError, GitTimeoutError, GitUnavailableError
from domain.git.subprocess import Answer, Argument, Child, ChildTimeoutError

_log = logging.getLogger("gatebell.git")
#: The oldest Git that reads a configuration from GIT_CONFIG_COUNT and GIT_CONFIG_GLOBAL.
OLDEST = (2, 32)
DEFAULT_BRANCH = "main"
#: Seconds for a command that is no transfer.
_COMMAND_SECONDS = 15.0
#: Seconds for what only asks the program about itself: pages and /readyz wait for it.
_CHECK_PATIENCE = 3.0
#: Seconds until a missing Git is looked for again; a good one is trusted for as long.
_CHECK_SECONDS = 30.0
#: Lets tokens and alerts go first.
_NICENESS = 5
#: What Git asks before a push moves a branch (githooks).
_HOOKS = Path(__file__).with_name("hooks")
#: The configuration of a push. Others run no hook at all.
ASKING_BEFORE_REFS_MOVE = (("core.hooksPath", str(_HOOKS)),)
_VERSION = re.compile(rb"git version (\d+)\.(\d+)")

CONFIGURATION: tuple[tuple[str, str], ...] = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    # What was pushed survives a power failure.
    ("core.fsync", "committed,reference"),
    # Large files are streamed, and a few children fit into the memory of a small host.
    ("core.bigFileThreshold", "16m"),
    ("core.packedGitLimit", "256m"),
    ("core.packedGitWindowSize", "16m"),
    ("core.deltaBaseCacheLimit", "32m"),
    ("pack.threads", "1"),
    ("pack.windowMemory", "32m"),
    ("pack.deltaCacheSize", "32m"),
    ("gc.auto", "0"),
    ("gc.autoDetach", "false"),
    ("maintenance.auto", "false"),
    ("repack.writeBitmaps", "true"),
    # Children reach nothing but their repository.
    ("protocol.allow", "never"),
    ("transfer.fsckObjects", "true"),
    ("http.getanyfile", "false"),
    ("uploadpack.allowFilter", "true"),
    # A partial clone asks for objects by name, with version 0 of the protocol too.
    ("uploadpack.allowAnySHA1InWant", "true"),
    ("receive.fsckObjects", "true"),
    # Harmless flaws of old histories, which could not be pushed at all otherwise.
    ("receive.fsck.badTimezone", "ignore"),
    ("receive.fsck.missingSpaceBeforeDate", "ignore"),
    ("receive.fsck.zeroPaddedFilemode", "ignore"),
    ("receive.autogc", "false"),
    ("receive.advertisePushOptions", "false"),
)


@dataclass(frozen=True, kw_only=True)
class Git:
    """The program, and where the repositories lie."""

    program: str
    root: Path
    #: Seconds without any progress until a child is ended.
    patience: float = 60.0

    def environment(
        self, repository: Path, *, configuration: Iterable[tuple[str, str]] = ()
    ) -> dict[str, str]:
        """Return the environment of a child, with further configuration."""
        configured = [*CONFIGURATION, ("safe.directory", str(repository)), *configuration]
        given = {
            "PATH": os.pathsep.join(os.get_exec_path()),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_CONFIG_COUNT": str(len(configured)),
        }
        for number, (name, value) in enumerate(configured):
            given[f"GIT_CONFIG_KEY_{number}"] = name
            given[f"GIT_CONFIG_VALUE_{number}"] = value
        return given

    def start(
        self,
        arguments: Sequence[Argument],
        environment: Mapping[str, str],
        *,
        patience: float | None = None,
        answer: Answer | None = None,
    ) -> Child:
        """Start Git with a low priority; raise GitUnavailableError if it is not there."""
        command = ("nice", "-n", str(_NICENESS), self.program, *arguments)
        try:
            return Child(command, environment, patience=patience or self.patience, answer=answer)
        except OSError as error:
            raise GitUnavailableError("Git cannot be started on this server.") from error

    def open(
        self, repository: Path, *arguments: Argument, seconds: float = _COMMAND_SECONDS
    ) -> Child:
        """Start a command in a repository; the caller ends it.

        `seconds` is how long a single read or write may take.
        """
        located = ("--no-pager", f"--git-dir={repository}", *arguments)
        return self.start(located, self.environment(repository), patience=seconds)

    def run(
        self,
        repository: Path,
        *arguments: Argument,
        seconds: float = _COMMAND_SECONDS,
        accepted: Sequence[int] = (0,),
    ) -> bytes:
        """Run a command in a repository and return its output; raise GitFailedError.

        `seconds` is how long it may take; `accepted` are the exit statuses that are no error.
        """
        child = self.open(repository, *arguments, seconds=seconds)
        deadline, output = monotonic() + seconds, bytearray()
        try:
            child.end_input()
            while piece := child.read():
                output += piece
            status = child.wait(max(0.0, deadline - monotonic()))
        except ChildTimeoutError:
            status = None
        finally:
            child.end()
        name, said = os.fsdecode(arguments[0]), child.errors()
        if status is None:
            _log.warning("git timed out", extra={"command": name, "seconds": seconds, "said": said})
            raise GitTimeoutError("Git took too long on this server. Try again in a moment.")
        if status not in accepted:
            _log.warning(
                "git failed",
                extra={"command": name, "status": status, "said": said},
            )
            raise GitFailedError("Git failed; the server's log has the reason.")
        return bytes(output)

    def problem(self) -> str | None:
        """Return what is wrong with Git on this host, in a few words, or None."""
        checked_at, found = _known.get(self.program, (float("-inf"), None))
        if monotonic() - checked_at > _CHECK_SECONDS:
            try:
                found = _problem_of(self)
            except GitTimeoutError:
                # A busy host, not a host without Git: what was known stays true.
                return found
            _known[self.program] = (monotonic(), found)
        return found


#: What is known of programs, and since when, for half a minute each.
_known: dict[str, tuple[float, str | None]] = {}


def _problem_of(git: Git) -> str | None:
    """Return what is wrong with a program: `missing`, `too old` or without a part of it.

    Raises GitTimeoutError if it does not say so in time.
    """
    try:
        version = _VERSION.match(git.run(Path(os.devnull), "version", seconds=_CHECK_PATIENCE))
        found = git.run(Path(os.devnull), "--exec-path", seconds=_CHECK_PATIENCE)
        folder = found.decode(errors="replace").strip()
    except GitTimeoutError:
        raise
    except (GitUnavailableError, GitFailedError):
        return "missing"
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        return f"too old: {OLDEST[0]}.{OLDEST[1]} is the oldest that works"
    if not Path(folder, "git-http-backend").exists():
        return "without http-backend"
    # Git ignores a hook that it cannot run, and would ask nothing.
    return None if os.access(_HOOKS / "pre-receive", os.X_OK) else "without its pre-receive hook"
