"""The Git program: its configuration, its processes, and checks of its installation.

Git processes use only the environment and configuration defined here. Neither the operator's home
directory, the system configuration nor pushed content can change their behavior.
"""

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from domain.git.errors import GitFailedError, GitTimeoutError, GitUnavailableError
from domain.git.subprocess import AnswerFunction, Argument, ChildProcess, ChildTimeoutError

_log = logging.getLogger("gatebell.git")
#: Oldest supported version of Git. It is the first version that reads GIT_CONFIG_COUNT and
#: GIT_CONFIG_GLOBAL.
MIN_GIT_VERSION = (2, 32)
DEFAULT_BRANCH = "main"
#: Timeout in seconds for commands other than transfers.
_COMMAND_TIMEOUT_SECONDS = 15.0
#: Timeout in seconds for checks of the installation. Pages and /readyz wait for them.
_CHECK_TIMEOUT_SECONDS = 3.0
#: Number of seconds for which the result of a check is cached.
_CHECK_CACHE_SECONDS = 30.0
#: Niceness of Git processes, which gives precedence to token and alert requests.
_NICENESS = 5
#: Directory of the hook that Git calls before a push changes a branch (githooks).
_HOOKS_DIRECTORY = Path(__file__).with_name("hooks")
#: Configuration for pushes. Other commands run no hooks.
PUSH_CONFIGURATION = (("core.hooksPath", str(_HOOKS_DIRECTORY)),)
_VERSION_PATTERN = re.compile(rb"git version (\d+)\.(\d+)")

GIT_CONFIGURATION: tuple[tuple[str, str], ...] = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    # Write pushed data to disk, so that it survives a power failure.
    ("core.fsync", "committed,reference"),
    # Stream large files, so that several Git processes fit into the memory of a small host.
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
    # Prevent Git processes from accessing anything except their repository.
    ("protocol.allow", "never"),
    ("transfer.fsckObjects", "true"),
    ("http.getanyfile", "false"),
    ("uploadpack.allowFilter", "true"),
    # Allow partial clones, which request objects by hash, in protocol version 0 as well.
    ("uploadpack.allowAnySHA1InWant", "true"),
    ("receive.fsckObjects", "true"),
    # Accept harmless flaws in old histories, which could otherwise not be pushed.
    ("receive.fsck.badTimezone", "ignore"),
    ("receive.fsck.missingSpaceBeforeDate", "ignore"),
    ("receive.fsck.zeroPaddedFilemode", "ignore"),
    ("receive.autogc", "false"),
    ("receive.advertisePushOptions", "false"),
)


@dataclass(frozen=True, kw_only=True)
class Git:
    """The Git program and the directory of the repositories."""

    program: str
    root: Path
    #: Number of seconds without progress after which a process is terminated.
    patience: float = 60.0

    def build_environment(
        self, repository: Path, *, configuration: Iterable[tuple[str, str]] = ()
    ) -> dict[str, str]:
        """Return the environment variables of a Git process, with additional configuration."""
        configured = [*GIT_CONFIGURATION, ("safe.directory", str(repository)), *configuration]
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

    def start_process(
        self,
        arguments: Sequence[Argument],
        environment: Mapping[str, str],
        *,
        timeout_seconds: float | None = None,
        answer: AnswerFunction | None = None,
    ) -> ChildProcess:
        """Start Git with a low priority.

        Raise GitUnavailableError if it cannot be started.
        """
        command = ("nice", "-n", str(_NICENESS), self.program, *arguments)
        try:
            return ChildProcess(
                command,
                environment,
                timeout_seconds=timeout_seconds or self.patience,
                answer=answer,
            )
        except OSError as error:
            raise GitUnavailableError("Git cannot be started on this server.") from error

    def start_command(
        self, repository: Path, *arguments: Argument, seconds: float = _COMMAND_TIMEOUT_SECONDS
    ) -> ChildProcess:
        """Start a command in a repository.

        The caller must terminate the process. `seconds` is the timeout of a single read or write.
        """
        located = ("--no-pager", f"--git-dir={repository}", *arguments)
        return self.start_process(
            located, self.build_environment(repository), timeout_seconds=seconds
        )

    def run_command(
        self,
        repository: Path,
        *arguments: Argument,
        seconds: float = _COMMAND_TIMEOUT_SECONDS,
        accepted_statuses: Sequence[int] = (0,),
    ) -> bytes:
        """Run a command in a repository and return its output.

        `seconds` is the timeout of the command, and `accepted_statuses` contains the exit statuses
        that indicate success. Raise GitFailedError for other statuses, and GitTimeoutError after
        the timeout.
        """
        child = self.start_command(repository, *arguments, seconds=seconds)
        deadline, output = monotonic() + seconds, bytearray()
        try:
            child.close_stdin()
            while piece := child.read_output():
                output += piece
            status = child.wait_for_exit(max(0.0, deadline - monotonic()))
        except ChildTimeoutError:
            status = None
        finally:
            child.terminate()
        name, said = os.fsdecode(arguments[0]), child.read_errors()
        if status is None:
            _log.warning(
                "Git command timed out.",
                extra={
                    "event": "git.command_timed_out",
                    "command": name,
                    "seconds": seconds,
                    "said": said,
                },
            )
            raise GitTimeoutError("Git took too long on this server. Try again in a moment.")
        if status not in accepted_statuses:
            _log.warning(
                "Git command failed.",
                extra={
                    "event": "git.command_failed",
                    "command": name,
                    "status": status,
                    "said": said,
                },
            )
            raise GitFailedError("Git failed. The reason is in the server's log.")
        return bytes(output)

    def find_problem(self) -> str | None:
        """Return a short description of the problem with Git on this host, or None."""
        checked_at, found = _cached_problems.get(self.program, (float("-inf"), None))
        if monotonic() - checked_at > _CHECK_CACHE_SECONDS:
            try:
                found = _find_problem(self)
            except GitTimeoutError:
                # A timeout means that the host is busy, not that Git is missing. Keep the previous
                # result.
                return found
            _cached_problems[self.program] = (monotonic(), found)
        return found


#: Cached check results with the times of the checks, by program.
_cached_problems: dict[str, tuple[float, str | None]] = {}


def _find_problem(git: Git) -> str | None:
    """Return the problem with a Git program: `missing`, `too old` or an incomplete installation.

    Raise GitTimeoutError if the program does not respond in time.
    """
    try:
        version = _VERSION_PATTERN.match(
            git.run_command(Path(os.devnull), "version", seconds=_CHECK_TIMEOUT_SECONDS)
        )
        found = git.run_command(Path(os.devnull), "--exec-path", seconds=_CHECK_TIMEOUT_SECONDS)
        folder = found.decode(errors="replace").strip()
    except GitTimeoutError:
        raise
    except (GitUnavailableError, GitFailedError):
        return "missing"
    if version is None or (int(version[1]), int(version[2])) < MIN_GIT_VERSION:
        return f"too old: version {MIN_GIT_VERSION[0]}.{MIN_GIT_VERSION[1]} or later is required"
    if not Path(folder, "git-http-backend").exists():
        return "incomplete: git-http-backend is not installed"
    # Git ignores a hook that it cannot run, so pushes would not be checked.
    if not os.access(_HOOKS_DIRECTORY / "pre-receive", os.X_OK):
        return "not usable: the pre-receive hook of this service is not executable"
    return None
