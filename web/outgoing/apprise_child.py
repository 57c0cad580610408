"""A child process that sends messages through apprise, and can do nothing else.

apprise opens connections of its own, so an audit hook (PEP 578) checks every address that it
connects to, and refuses other programs, Unix sockets and files outside Python's own. People write
the URLs, so a request goes to a public address, or to a host and port that the administrator has
named, and has neither a method nor headers of theirs. The process gets no environment of the
service. It reads requests from standard input and writes results to standard output, both as lines
of JSON; several requests may be under way at once.

Run `python -m web.outgoing.apprise_child HOSTS` with what OUTGOING_CONTACT_HOSTS allows.
"""

import json
import logging
import mimetypes
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from threading import Lock, Thread
from time import monotonic
from typing import Any, NoReturn, TextIO
from urllib.parse import unquote, urlsplit
from zoneinfo import TZPATH

from domain.delivery.outgoing.addresses import AddressPolicy, literal_address
from domain.delivery.outgoing.errors import AddressRefusedError, problem_with_status
from domain.delivery.outgoing.hosts import NamedHosts

#: Text messages, and push messages of which a telephone shows the beginning.
_FEW_CHARACTERS = 1_024
#: What services take as a call to everybody, which no sender of an alert may make.
_MENTIONS = re.compile(r"@(?=everyone|here|channel|room|all)|(?<=<)(?=[@!#])", re.IGNORECASE)
#: Services that act on this machine, or read what lies on it.
_OF_THIS_MACHINE = frozenset(
    {"blink1", "dbus", "glib", "gnome", "macosx", "syslog", "vapid", "windows"}
)
#: Services whose URL says what is sent to which path: they could speak to anything inside.
_GENERIC = frozenset({"custom_form", "custom_json", "custom_xml"})
#: Requests whose addresses are refused, by the event of the audit hook and where the address is.
_TO_ADDRESSES = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
_FORBIDDEN = (
    "ctypes.",
    "os.chmod",
    "os.chown",
    "os.exec",
    "os.fork",
    "os.kill",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.spawn",
    "os.symlink",
    "os.system",
    "os.truncate",
    "pty.",
    "shutil.",
    "socket.bind",
    "subprocess.",
    "syslog.",
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PYTHON = (sys.prefix, sys.base_prefix)
_LONGEST_WORDS = 300
#: Where e-mail keeps them.
_KEY_FILES = ("pgp_key", "pgp_privkey")
#: What was begun when the service stopped may still end well.
_LAST_SECONDS = 15.0
#: Shorter parts of a URL are no secrets, and would tear holes into other words.
_SHORTEST_SECRET = 5
#: What apprise logs of the answer of a service, or of a connection that failed.
_SOCKET = "Socket Exception"
_DETAILS = re.compile(rf"(Response Details|{_SOCKET}):\s*(b(?='))?")
#: How apprise tells the status of a response.
_STATUS = re.compile(r"\berror=([1-5][0-9]{2})\b")
#: What urllib3 says of a connection that failed, around the one thing that is of interest.
_CAUSE = re.compile(r".*Caused by \w+\([\"'](?:[^:]*: )?(.*?)[\"']\)+$", re.DOTALL)


@dataclass
class _Request:
    """A request under way, as the audit hook has to know it."""

    #: The hosts on addresses that are not public that it may reach.
    hosts: NamedHosts = field(default_factory=NamedHosts)
    #: What allows further ones.
    remedy: str = "contacts reach public addresses only"
    #: Why the hook refused what it wanted.
    refused: list[str] = field(default_factory=list)


#: The request of this thread. apprise hands it on to most of the threads that it starts; others
#: reach public addresses only.
_request: ContextVar[_Request] = ContextVar("request")
#: The host and port that were looked up last, before a connection to what was found.
_looked_up: ContextVar[tuple[str, int]] = ContextVar("looked_up")
_PUBLIC = AddressPolicy()


class Sandbox:
    """The audit hook."""

    def __init__(self) -> None:
        """Find the files that may be read, which are those that Python is made of."""
        # Not the folder of the service, whose modules are loaded: its database may lie there.
        own = os.path.realpath(Path.cwd())
        places = {os.path.realpath(each) for each in (*sys.path, *TZPATH, *_PYTHON) if each}
        self._readable = tuple(places - {own})

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """Raise PermissionError for what is refused."""
        if event == "socket.getaddrinfo":
            _note_lookup(args[0], args[1])
        elif event in _TO_ADDRESSES:
            self._check_address(args[0], args[_TO_ADDRESSES[event]])
        elif event == "open":
            self._check_file(args[0], args[1], args[2])
        elif event.startswith(_FORBIDDEN) and not self._is_own_bind(event, args):
            _refuse(f"it wanted to do what only programs of this machine may ({event})")

    def _check_address(self, opened: socket.socket, address: Any) -> None:
        if address is None:  # on a connected socket, whose address was checked
            return
        if opened.family not in {socket.AF_INET, socket.AF_INET6}:
            _refuse("it wanted to reach a program of this machine")
        try:
            reached = ip_address(str(address[0]).partition("%")[0])
        except ValueError:
            # A name, which would be looked up behind this check.
            _refuse("it wanted to reach a name that could not be checked")
        reached = getattr(reached, "ipv4_mapped", None) or reached
        kind = _PUBLIC.refusal(reached)
        request = _request.get(_Request())
        if kind is not None and not _is_named(str(reached), address[1], request.hosts):
            refused = AddressRefusedError(str(reached), reached, kind, remedy=request.remedy)
            _refuse(f"it leads to {refused}")

    def _check_file(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int):
            return
        writes = bool(isinstance(flags, int) and flags & _WRITING)
        writes |= isinstance(mode, str) and any(each in mode for each in "wax+")
        name = os.path.realpath(os.fsdecode(path))
        if writes or not any(_is_in(name, each) for each in self._readable):
            _refuse("it wanted to open a file of this machine")

    @staticmethod
    def _is_own_bind(event: str, args: tuple[Any, ...]) -> bool:
        """Return whether a socket is bound as an unconnected one of UDP is, to send from."""
        return event == "socket.bind" and isinstance(args[1], tuple) and not args[1][0]


def _is_in(name: str, place: str) -> bool:
    return name.startswith(place.rstrip(os.sep) + os.sep)


def _note_lookup(host: Any, port: Any) -> None:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    _looked_up.set((name, int(port) if str(port).isdecimal() else 0))


def _is_named(address: str, port: int, hosts: NamedHosts) -> bool:
    """Return whether the administrator has named an address, or the name that led to it."""
    name, of_port = _looked_up.get(("", 0))
    return hosts.have(address, port) or (of_port == port and hosts.have(name, port))


def _refuse(why: str) -> NoReturn:
    _request.get(_Request()).refused.append(why)
    raise PermissionError(why)


class Program:
    """Answers requests, each in a thread of its own."""

    def __init__(self, results: TextIO, hosts: NamedHosts) -> None:
        """Load every service; take where results go, and the hosts that the administrator names."""
        import apprise  # noqa: PLC0415 - only this process loads it
        from apprise.manager_plugins import NotificationManager  # noqa: PLC0415

        logging.getLogger("apprise").setLevel(logging.DEBUG)
        logging.getLogger("apprise").propagate = False
        self._apprise = apprise
        # They read files, so they come before the hook.
        services: Any = NotificationManager()  # type: ignore[no-untyped-call]
        services.load_modules()
        self._services = services
        mimetypes.init()
        self._results = results
        self._hosts = hosts
        self._lock = Lock()

    def run(self, requests: Iterator[Mapping[str, Any]]) -> None:
        """Answer requests until there is none any more, and finish those under way."""
        threads: list[Thread] = []
        for request in requests:
            threads = [each for each in threads if each.is_alive()]
            threads.append(Thread(target=self._answer, args=(request,), daemon=True))
            threads[-1].start()
        end = monotonic() + _LAST_SECONDS
        for thread in threads:
            thread.join(max(end - monotonic(), 0))

    def _answer(self, request: Mapping[str, Any]) -> None:
        _request.set(under_way := _Request())
        try:
            result = self._send(request) if request["op"] == "send" else self._check(request)
        except Exception as error:  # noqa: BLE001 - of any of two hundred services
            result = {"problem": f"apprise failed: {type(error).__name__}"}
        if result.get("problem") and under_way.refused:
            # What apprise makes of it would say less.
            result = {"problem": under_way.refused[0]}
        line = json_line({"id": request["id"], **result})
        with self._lock, suppress(OSError):
            self._results.write(line)
            self._results.flush()

    def _service(self, url: str) -> Any:
        """Return the service of a URL, or None if apprise cannot read it."""
        asset = self._apprise.AppriseAsset(app_id="Gatebell", app_desc="Gatebell", app_url="")
        service = self._apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
        if service is not None:
            service.redirects = False  # whatever the URL says
        return service

    def _check(self, request: Mapping[str, Any]) -> dict[str, object]:
        url = request["url"]
        if self._is_of_this_machine(url):
            return {"problem": "this service acts on the machine that sends, so it is not offered"}
        service = self._service(url)
        if service is None:
            return {
                "problem": "Apprise cannot read this URL; compare it with Apprise's documentation"
            }
        if len(service) > 1:
            return {"problem": "it names several targets: add one for each of them"}
        problem = self._problem_of_files(service) or _problem_of(service)
        if problem is None:
            problem = self._problem_of_address(service)
        if problem is not None:
            return {"problem": problem}
        host = _host_of(service) or ""
        scheme = urlsplit(service.url(privacy=True)).scheme
        return {
            "service": str(service.service_name),
            "shown": f"{scheme}://{host}/…" if host else f"{scheme}://…",
            "lane": f"{_module(service)} {host}".strip(),
        }

    def _is_of_this_machine(self, url: str) -> bool:
        scheme = url.partition(":")[0].lower()
        return scheme in self._services and _module(self._services[scheme]) in _OF_THIS_MACHINE

    def _problem_of_files(self, service: Any) -> str | None:
        """Return what is wrong with a service that reads files, of this machine or downloads."""
        files = self._apprise.AppriseAttachment
        named = any(isinstance(each, files) and each for each in vars(service).values())
        # Keys of e-mail are files in an object within the service.
        if not named and not any(getattr(service, each, None) for each in _KEY_FILES):
            return None
        return (
            "it names a file, such as a template or a key file, and Gatebell reads none: remove "
            "that part of the URL, or choose another service"
        )

    def _problem_of_address(self, service: Any) -> str | None:
        """Return why a service can never be reached, if the address in its URL tells.

        A name is resolved when a message is sent.
        """
        host, port = getattr(service, "host", None), getattr(service, "port", None)
        address = literal_address(host) if host and _host_of(service) else None
        kind = None if address is None else _PUBLIC.refusal(address)
        if kind is None:
            return None
        is_generic = _module(service) in _GENERIC
        named = (str(host), str(address))
        if not is_generic and any(self._hosts.have_name(each, port) for each in named):
            return None
        return f"it can never be reached: {host} is {kind}, and {_remedy_of(service)}"

    def _send(self, request: Mapping[str, Any]) -> dict[str, object]:
        url = request["url"]
        service = None if self._is_of_this_machine(url) else self._service(url)
        if service is None:
            return {"problem": "Apprise can no longer read its URL"}
        if (problem := _problem_of(service)) is not None:
            return {"problem": problem}
        self._allow_hosts(service)
        sender = self._apprise.Apprise()
        sender.add(service)
        kind = self._apprise.NotifyType
        body = fitting(request["body"], request["short_body"], room=int(service.body_maxlen))
        result = sender.notify(
            title=without_mentions(request["title"]),
            body=without_mentions(body),
            notify_type=kind.FAILURE if request["is_alarm"] else kind.INFO,
            body_format=self._apprise.NotifyFormat.TEXT,
            log_level=logging.DEBUG,
        )
        if result:
            return {"problem": None}
        said = [entry for service in result for attempt in service for entry in attempt]
        words = _words_of(said)
        return {
            "problem": f"{service.service_name} {_reason_of(said)}",
            "words": _without_secrets(words, request["url"], host=_host_of(service)),
        }

    def _allow_hosts(self, service: Any) -> None:
        """Let a request reach what the administrator has named, unless it could say anything."""
        under_way = _request.get()
        under_way.remedy = _remedy_of(service)
        if _module(service) not in _GENERIC:
            under_way.hosts = self._hosts


def _module(service: Any) -> str:
    """Return the name of the module of a service, or of its class."""
    return str(service.__module__).removeprefix("apprise.plugins.").partition(".")[0]


def _remedy_of(service: Any) -> str:
    """Return what allows a service on an address that is not public, in words."""
    if _module(service) in _GENERIC:
        return "JSON, XML and form URLs reach public addresses only"
    return "only OUTGOING_CONTACT_HOSTS can allow that"


def _host_of(service: Any) -> str | None:
    """Return host and port of a service that somebody runs themselves."""
    if "host" not in service.template_tokens or getattr(service, "mode", "") == "cloud":
        return None
    host, port = getattr(service, "host", None), getattr(service, "port", None)
    return f"{host}:{port}" if host and port else host or None


def _problem_of(service: Any) -> str | None:
    """Return what a URL asks for that no contact gets, or None."""
    if "headers" in service.template_kwargs and service.headers:
        return "it sets a header, and Gatebell sends none: remove what begins with + from the URL"
    if _module(service) in _GENERIC and service.method != "POST":
        return "it sets a method, and Gatebell sends POST only: remove “method” from the URL"
    return None


def _reason_of(said: Sequence[Any]) -> str:
    """Return how a service failed, in words that only this program has chosen."""
    messages = [each.message for each in said]
    status = next((found[1] for each in messages if (found := _STATUS.search(each))), None)
    if status is not None and (problem := problem_with_status(int(status))) is not None:
        return problem.removeprefix("it ")
    if any("timed out" in each for each in messages):
        return "did not respond in time"
    is_lost = any(each.startswith(_SOCKET) for each in messages)
    return "could not be reached" if is_lost else "did not accept it"


def _words_of(said: Sequence[Any]) -> str:
    """Return what a service, or apprise, said of a failure."""
    warnings = [each.message for each in said if each.level in {"WARNING", "ERROR", "CRITICAL"}]
    details = [_DETAILS.sub("", each.message) for each in said if _DETAILS.match(each.message)]
    details = [_CAUSE.sub(r"\1", each) for each in details]
    return " · ".join(" ".join(each.split()) for each in (*warnings[-1:], *details[-1:]))


def _without_secrets(words: str, url: str, *, host: str | None) -> str:
    """Replace the parts of a URL in a text, but for its scheme and the host of a service."""
    parts = re.split(r"[/:@?&=#,+]+", url.partition(":")[2])
    secrets = {each for part in parts for each in (part, unquote(part))}
    secrets -= {"", *(host or "").split(":")}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            words = words.replace(secret, "…")
    return words[:_LONGEST_WORDS]


def json_line(value: Mapping[str, object]) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(value) + "\n"


def _requests() -> Iterator[Mapping[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def fitting(body: str, short: str, *, room: int) -> str:
    """Return the text that a service has room for, in characters.

    The short one says what there is to do, so it ends a long one that is cut.
    """
    if room <= _FEW_CHARACTERS:
        return short
    if len(body) <= room:
        return body
    return f"{body[: max(room - len(short) - 3, 0)].rstrip()}…\n\n{short}"


def without_mentions(text: str) -> str:
    """Return a text in which nothing calls everybody."""
    return _MENTIONS.sub(lambda found: f"{found[0]}\u200b", text)


def main() -> None:
    """Answer requests until standard input ends."""
    # What a service prints must not be taken for a result.
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
    program = Program(results, NamedHosts.parse(sys.argv[1]))
    # Imported here, since afterwards only Python's own files can be opened.
    import encodings.idna  # noqa: F401, PLC0415

    sys.addaudithook(Sandbox())
    results.write(json_line({"id": 0}))
    results.flush()
    program.run(_requests())
    # Not as usual, which would wait for threads of apprise that hang.
    os._exit(0)


if __name__ == "__main__":
    main()
