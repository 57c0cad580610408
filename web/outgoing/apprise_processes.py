"""Sends messages through apprise in child processes, which are started as needed.

A child handles several requests at the same time (`web/outgoing/apprise_child.py`). If a request
takes too long, the child receives no further requests, and is killed once its other requests have
finished. A hung request therefore does not affect other requests. An idle child ends after a while.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from subprocess import DEVNULL, PIPE, Popen, SubprocessError, run
from threading import Lock, Thread, Timer
from typing import Any

from domain.core.errors import InvalidError
from domain.delivery.outgoing.errors import OutgoingError
from domain.paging.notifications.contact_types.base import ParsedServiceUrl, SendProblem
from web.settings.environment import Settings

#: Seconds to wait for a child to start. Loading all services takes half a second on an idle
#: processor.
_START_TIMEOUT_SECONDS = 20.0
_IDLE_TIMEOUT_SECONDS = 120.0
_MAX_REQUESTS_PER_CHILD = 16
_MAX_URL_LENGTH = 1_000
_ROOT = Path(__file__).parents[2]
_PROCESS_ENDED_RESULT = {"problem": "the Apprise process ended unexpectedly"}


def check_apprise_url(url: str, settings: Settings) -> ParsedServiceUrl:
    """Return the service that a URL refers to.

    Raise InvalidError for the `address` field if the URL cannot be used.
    """
    if not url.isprintable() or not 0 < len(url) <= _MAX_URL_LENGTH:
        message = f"Enter a URL of at most {_MAX_URL_LENGTH} characters, such as ntfys://topic."
        raise InvalidError(message, field="address")
    request = json.dumps({"id": 1, "op": "check", "url": url}) + "\n"
    try:
        done = run(  # noqa: S603 - this program
            _build_command_line(settings),
            input=request,
            stdout=PIPE,
            stderr=DEVNULL,
            text=True,
            env=_build_environment(settings),
            cwd=_ROOT,
            timeout=_START_TIMEOUT_SECONDS,
            check=False,
        )
        answer = json.loads(done.stdout.splitlines()[-1])
    except (OSError, SubprocessError, ValueError, IndexError) as error:
        raise InvalidError("The URL could not be checked. Try again.", field="address") from error
    if answer.get("shown") is None:
        problem = answer.get("problem") or "Apprise cannot parse this URL"
        raise InvalidError(f"{problem[:1].upper()}{problem[1:]}.", field="address")
    return ParsedServiceUrl(answer["service"], answer["shown"], answer["lane"])


class AppriseProcesses:
    """Child processes of one worker, which several threads may use."""

    def __init__(self, settings: Settings, *, idle_seconds: float = _IDLE_TIMEOUT_SECONDS) -> None:
        """Store the settings without starting a process."""
        self._settings = settings
        self._idle_seconds = idle_seconds
        self._children: list[_AppriseChild] = []
        self._lock = Lock()

    def send_message(
        self,
        url: str,
        title: str,
        body: str,
        *,
        short_body: str,
        is_alarm: bool,
        deadline: float,
    ) -> SendProblem | None:
        """Send a message within the given time and return the problem, or None if it was sent.

        Services with a low length limit receive `short_body`.
        """
        message = {"title": title, "body": body, "short_body": short_body, "is_alarm": is_alarm}
        request = {"op": "send", "url": url, **message}
        try:
            child = self._take_child()
        except OutgoingError as error:
            return SendProblem(str(error))
        try:
            answer = child.send_request(request, deadline)
        finally:
            self._return_child(child)
        if answer is None:
            return SendProblem(f"no response was received within {deadline:.0f} seconds")
        problem = answer.get("problem")
        return None if problem is None else SendProblem(str(problem), answer.get("words", ""))

    def start_child(self) -> None:
        """Start a child if there is none, without waiting for it."""
        with self._lock:
            if not any(each.is_alive for each in self._children):
                self._children = [child := _AppriseChild(self._settings)]
                self._schedule_idle_end(child)

    @property
    def process_ids(self) -> Sequence[int]:
        """IDs of the running child processes."""
        with self._lock:
            return [each.process.pid for each in self._children]

    def end_children(self) -> None:
        """End all child processes."""
        with self._lock:
            children, self._children = self._children, []
        for child in children:
            child.kill_process()

    def _take_child(self) -> "_AppriseChild":
        """Return a child that can take another request."""
        with self._lock:
            self._children = [each for each in self._children if each.is_alive]
            for child in self._children:
                if child.accepts_more_requests:
                    child.begin_request()
                    return child
            child = _AppriseChild(self._settings)
            self._children.append(child)
            child.begin_request()
            return child

    def _return_child(self, child: "_AppriseChild") -> None:
        with self._lock:
            if child.end_request() and child.has_hung:
                child.kill_process()
                self._children = [each for each in self._children if each is not child]
        if child.is_idle:
            self._schedule_idle_end(child)

    def _schedule_idle_end(self, child: "_AppriseChild") -> None:
        """End a child after a while if it receives no work."""
        timer = Timer(self._idle_seconds, self._end_child_if_idle, (child, child.served))
        timer.daemon = True
        timer.start()

    def _end_child_if_idle(self, child: "_AppriseChild", served: int) -> None:
        with self._lock:
            if child.is_idle and child.served == served:
                child.kill_process()
                self._children = [each for each in self._children if each is not child]


class _AppriseChild:
    """Child process that sends messages through apprise, with its requests in progress."""

    def __init__(self, settings: Settings) -> None:
        self.process: Popen[str] = Popen(  # noqa: S603 - this program
            _build_command_line(settings),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            text=True,
            env=_build_environment(settings),
            cwd=_ROOT,
            # The child must finish its messages even if the worker receives a signal.
            start_new_session=True,
        )
        if self.process.stdin is None or self.process.stdout is None:
            raise TypeError  # cannot happen, because both are pipes
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        #: Total number of requests that the child has received, and number of requests in progress.
        self.served = self._active = 0
        #: `True` if a request has hung in the child.
        self.has_hung = False
        self._ids = count(1)
        self._ready: SimpleQueue[Mapping[str, Any]] = SimpleQueue()
        self._waiting: dict[int, SimpleQueue[Mapping[str, Any]]] = {0: self._ready}
        self._has_ended = False
        self._lock = Lock()
        Thread(target=self._read_responses, name="apprise results", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        return not self._has_ended

    @property
    def accepts_more_requests(self) -> bool:
        return self.is_alive and not self.has_hung and self._active < _MAX_REQUESTS_PER_CHILD

    @property
    def is_idle(self) -> bool:
        return self._active == 0

    def begin_request(self) -> None:
        self._active += 1
        self.served += 1

    def end_request(self) -> bool:
        """Record the end of a request and return whether no other request is in progress."""
        self._active -= 1
        return self._active == 0

    def send_request(self, request: Mapping[str, Any], deadline: float) -> Mapping[str, Any] | None:
        """Return the result of a request, or None after the deadline."""
        if not self._is_ready():
            return {"problem": "the Apprise process did not start in time"}
        answers: SimpleQueue[Mapping[str, Any]] = SimpleQueue()
        with self._lock:
            if self._has_ended:
                return _PROCESS_ENDED_RESULT
            number = next(self._ids)
            self._waiting[number] = answers
            try:
                self._stdin.write(json.dumps({"id": number, **request}) + "\n")
                self._stdin.flush()
            except OSError:
                return _PROCESS_ENDED_RESULT
        try:
            return answers.get(timeout=deadline)
        except Empty:
            self.has_hung = True
            return None

    def _is_ready(self) -> bool:
        try:
            # The ready message is put back for the next request.
            self._ready.put(self._ready.get(timeout=_START_TIMEOUT_SECONDS))
        except Empty:
            self.has_hung = True
            return False
        return True

    def kill_process(self) -> None:
        """Kill the process, even if requests are in progress."""
        self.process.kill()
        self.process.wait()
        with suppress(OSError):
            self._stdin.close()

    def _read_responses(self) -> None:
        with suppress(OSError, ValueError):
            for line in self._stdout:
                answer = json.loads(line)
                waiting = self._waiting.pop(answer["id"], None)
                if waiting is not None:
                    waiting.put(answer)
        with self._lock:
            self._has_ended = True
            waiting_still, self._waiting = self._waiting, {}
        for each in waiting_still.values():
            each.put(_PROCESS_ENDED_RESULT)
        self._stdout.close()
        self.process.wait()


def _build_command_line(settings: Settings) -> list[str]:
    child = ("-X", "utf8", "-m", "web.outgoing.apprise_child")
    return [sys.executable, *child, settings.outgoing_contact_hosts]


def _build_environment(settings: Settings) -> dict[str, str]:
    """Return a child's environment, which contains nothing from the service's environment."""
    if settings.trusted_ca_file is None:
        return {}
    bundle = _write_ca_bundle(settings.trusted_ca_file, settings.instance_path)
    return {"REQUESTS_CA_BUNDLE": str(bundle)}


def _write_ca_bundle(trusted_ca_file: Path, folder: Path) -> Path:
    """Return a file with the usual certificate authorities and TRUSTED_CA_FILE's authorities."""
    import certifi  # noqa: PLC0415 - only where that is set

    text = f"{certifi.contents()}\n{trusted_ca_file.read_text(encoding='utf-8')}"
    bundle = folder / "apprise-certificates.pem"
    if not bundle.exists() or bundle.read_text(encoding="utf-8") != text:
        part = bundle.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(bundle)
    return bundle
