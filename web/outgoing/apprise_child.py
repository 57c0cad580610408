"""Child process that can only send messages through apprise.

apprise opens its own connections, so an audit hook (PEP 578) checks every address to which it
connects. The hook also blocks starting other programs, connecting to Unix sockets, and opening
files that do not belong to Python. Users write the URLs. A request may therefore only go to a
public address, or to a host and port that the administrator has configured. Users cannot set the
method or the headers of a request.

The process does not inherit the service's environment. It reads requests from standard input and
writes results to standard output, both as lines of JSON. It can handle several requests at the same
time.

Run `python -m web.outgoing.apprise_child HOSTS` with the value of OUTGOING_CONTACT_HOSTS.
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

from domain.delivery.outgoing.errors import AddressBlockedError, describe_status_problem
from domain.delivery.outgoing.host_lists import HostList
from domain.delivery.outgoing.ip_address_policy import AddressPolicy, parse_literal_address

#: Maximum message length, in characters, of services that receive the short text. Services for text
#: messages and push messages have such limits.
_MAX_SHORT_MESSAGE_LENGTH = 1_024
#: Pattern for mentions that notify everyone. The sender of an alert must not cause such
#: notifications.
_MENTIONS = re.compile(r"@(?=everyone|here|channel|room|all)|(?<=<)(?=[@!#])", re.IGNORECASE)
#: Services that act on this machine or read its data.
_LOCAL_SERVICES = frozenset(
    {"blink1", "dbus", "glib", "gnome", "macosx", "syslog", "vapid", "windows"}
)
#: Services whose URL determines the content and the path. With them, users could access any
#: internal service.
_GENERIC_SERVICES = frozenset({"custom_form", "custom_json", "custom_xml"})
#: Position of the address in the arguments of audit events whose addresses are checked.
_ADDRESS_POSITIONS = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
_FORBIDDEN_EVENTS = (
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
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PYTHON_PREFIXES = (sys.prefix, sys.base_prefix)
_MAX_REPLY_LENGTH = 300
#: Attributes in which the email service keeps key files.
_KEY_FILE_ATTRIBUTES = ("pgp_key", "pgp_privkey")
#: Seconds for requests in progress to finish when the service stops.
_SHUTDOWN_SECONDS = 15.0
#: Minimum length of secrets in a URL. Shorter parts are not secrets, and removing them would damage
#: other words.
_MIN_SECRET_LENGTH = 5
#: Patterns for log lines in which apprise reports a failed connection or a service's response.
_SOCKET_ERROR = "Socket Exception"
_FAILURE_DETAILS = re.compile(rf"(Response Details|{_SOCKET_ERROR}):\s*(b(?='))?")
#: Pattern for a response status in apprise's log.
_RESPONSE_STATUS = re.compile(r"\berror=([1-5][0-9]{2})\b")
#: Pattern for urllib3's message about a failed connection, which captures the relevant part.
_CONNECTION_CAUSE = re.compile(r".*Caused by \w+\([\"'](?:[^:]*: )?(.*?)[\"']\)+$", re.DOTALL)


@dataclass
class _ActiveRequest:
    """A request in progress, with the data that the audit hook needs."""

    #: Hosts on non-public addresses that the request may reach.
    hosts: HostList = field(default_factory=HostList)
    #: Part of the error for a blocked address, with the setting that can permit it if there is one.
    remedy: str = "contacts reach public addresses only"
    #: Reasons for which the hook rejected operations.
    refused: list[str] = field(default_factory=list)


#: Request of this thread. apprise passes it to most of the threads that it starts. Other threads
#: can only reach public addresses.
_active_request: ContextVar[_ActiveRequest] = ContextVar("request")
#: Host and port of the last name lookup. The connection to the resolved address follows this
#: lookup.
_last_lookup: ContextVar[tuple[str, int]] = ContextVar("looked_up")
_PUBLIC_ADDRESSES = AddressPolicy()


class Sandbox:
    """Audit hook that restricts addresses, files and operations."""

    def __init__(self) -> None:
        """Determine the readable files, which are only the files of Python itself."""
        # The service's folder is excluded, because the database may be in it. Its modules are
        # already loaded.
        own = os.path.realpath(Path.cwd())
        places = {
            os.path.realpath(each) for each in (*sys.path, *TZPATH, *_PYTHON_PREFIXES) if each
        }
        self._readable = tuple(places - {own})

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """Check an operation of this process.

        Raise PermissionError if it is not permitted.
        """
        if event == "socket.getaddrinfo":
            _store_lookup(args[0], args[1])
        elif event in _ADDRESS_POSITIONS:
            self._check_address(args[0], args[_ADDRESS_POSITIONS[event]])
        elif event == "open":
            self._check_file(args[0], args[1], args[2])
        elif event.startswith(_FORBIDDEN_EVENTS) and not self._is_wildcard_udp_bind(event, args):
            _deny_access(f"the service tried an operation that is not allowed ({event})")

    def _check_address(self, opened: socket.socket, address: Any) -> None:
        if address is None:  # a connected socket, whose address was already checked
            return
        if opened.family not in {socket.AF_INET, socket.AF_INET6}:
            _deny_access("the service tried to connect to a local program")
        try:
            reached = ip_address(str(address[0]).partition("%")[0])
        except ValueError:
            # The name would be resolved after this check.
            _deny_access("the service tried to connect to a host name that could not be checked")
        reached = getattr(reached, "ipv4_mapped", None) or reached
        kind = _PUBLIC_ADDRESSES.find_blocked_address_kind(reached)
        request = _active_request.get(_ActiveRequest())
        if kind is not None and not _is_configured_host(str(reached), address[1], request.hosts):
            refused = AddressBlockedError(str(reached), reached, kind, remedy=request.remedy)
            _deny_access(str(refused))

    def _check_file(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int):
            return
        writes = bool(isinstance(flags, int) and flags & _WRITE_FLAGS)
        writes |= isinstance(mode, str) and any(each in mode for each in "wax+")
        name = os.path.realpath(os.fsdecode(path))
        if writes or not any(_is_inside_directory(name, each) for each in self._readable):
            _deny_access("the service tried to open a local file")

    @staticmethod
    def _is_wildcard_udp_bind(event: str, args: tuple[Any, ...]) -> bool:
        """Return whether a UDP socket is bound to the wildcard address.

        This happens before a UDP socket sends data, so it is permitted.
        """
        return event == "socket.bind" and isinstance(args[1], tuple) and not args[1][0]


def _is_inside_directory(name: str, place: str) -> bool:
    return name.startswith(place.rstrip(os.sep) + os.sep)


def _store_lookup(host: Any, port: Any) -> None:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    _last_lookup.set((name, int(port) if str(port).isdecimal() else 0))


def _is_configured_host(address: str, port: int, hosts: HostList) -> bool:
    """Return whether the administrator configured the address or the name that resolved to it."""
    name, of_port = _last_lookup.get(("", 0))
    return hosts.has_host(address, port) or (of_port == port and hosts.has_host(name, port))


def _deny_access(reason: str) -> NoReturn:
    _active_request.get(_ActiveRequest()).refused.append(reason)
    raise PermissionError(reason)


class AppriseRequestHandler:
    """Handler that sends messages and checks URLs, with a thread for each request."""

    def __init__(self, results: TextIO, hosts: HostList) -> None:
        """Load all services, and store the output for results and the configured hosts."""
        import apprise  # noqa: PLC0415 - only this process loads it
        from apprise.manager_plugins import NotificationManager  # noqa: PLC0415

        logging.getLogger("apprise").setLevel(logging.DEBUG)
        logging.getLogger("apprise").propagate = False
        self._apprise = apprise
        # Loading services reads files, so it happens before the hook is installed.
        services: Any = NotificationManager()  # type: ignore[no-untyped-call]
        services.load_modules()
        self._services = services
        mimetypes.init()
        self._results = results
        self._hosts = hosts
        self._lock = Lock()

    def handle_requests(self, requests: Iterator[Mapping[str, Any]]) -> None:
        """Handle requests until the input ends, and finish the requests in progress."""
        threads: list[Thread] = []
        for request in requests:
            threads = [each for each in threads if each.is_alive()]
            threads.append(Thread(target=self._handle_request, args=(request,), daemon=True))
            threads[-1].start()
        end = monotonic() + _SHUTDOWN_SECONDS
        for thread in threads:
            thread.join(max(end - monotonic(), 0))

    def _handle_request(self, request: Mapping[str, Any]) -> None:
        _active_request.set(under_way := _ActiveRequest())
        try:
            result = (
                self._send_message(request) if request["op"] == "send" else self._check_url(request)
            )
        except Exception as error:  # noqa: BLE001 - any of two hundred services may fail in its own way
            result = {"problem": f"apprise failed: {type(error).__name__}"}
        if result.get("problem") and under_way.refused:
            # The hook's reason is more precise than apprise's message.
            result = {"problem": under_way.refused[0]}
        line = format_result_line({"id": request["id"], **result})
        with self._lock, suppress(OSError):
            self._results.write(line)
            self._results.flush()

    def _find_service(self, url: str) -> Any:
        """Return the service for a URL, or None if apprise cannot read the URL."""
        asset = self._apprise.AppriseAsset(app_id="Gatebell", app_desc="Gatebell", app_url="")
        service = self._apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
        if service is not None:
            service.redirects = False  # this overrides the URL
        return service

    def _check_url(self, request: Mapping[str, Any]) -> dict[str, object]:
        url = request["url"]
        if self._is_local_service(url):
            return {"problem": "this service acts on the sending host, so it is not supported"}
        service = self._find_service(url)
        if service is None:
            return {"problem": "Apprise cannot parse this URL; its documentation lists the formats"}
        if len(service) > 1:
            return {"problem": "the URL has several targets: add each target separately"}
        problem = self._find_file_problem(service) or _find_header_or_method_problem(service)
        if problem is None:
            problem = self._find_address_problem(service)
        if problem is not None:
            return {"problem": problem}
        host = _find_host(service) or ""
        scheme = urlsplit(service.url(privacy=True)).scheme
        return {
            "service": str(service.service_name),
            "shown": f"{scheme}://{host}/…" if host else f"{scheme}://…",
            "lane": f"{_get_module_name(service)} {host}".strip(),
        }

    def _is_local_service(self, url: str) -> bool:
        scheme = url.partition(":")[0].lower()
        return (
            scheme in self._services and _get_module_name(self._services[scheme]) in _LOCAL_SERVICES
        )

    def _find_file_problem(self, service: Any) -> str | None:
        """Return the problem with a service that reads files, or None if there is no problem."""
        files = self._apprise.AppriseAttachment
        named = any(isinstance(each, files) and each for each in vars(service).values())
        # The email service keeps key files in a nested object.
        if not named and not any(getattr(service, each, None) for each in _KEY_FILE_ATTRIBUTES):
            return None
        return (
            "the URL refers to a file, such as a template or a key file, which Gatebell does not "
            "read: remove this part of the URL, or choose another service"
        )

    def _find_address_problem(self, service: Any) -> str | None:
        """Return the reason why the address in a service's URL can never be reached, or None.

        Host names are only resolved when a message is sent.
        """
        host, port = getattr(service, "host", None), getattr(service, "port", None)
        address = parse_literal_address(host) if host and _find_host(service) else None
        kind = None if address is None else _PUBLIC_ADDRESSES.find_blocked_address_kind(address)
        if kind is None:
            return None
        is_generic = _get_module_name(service) in _GENERIC_SERVICES
        named = (str(host), str(address))
        if not is_generic and any(self._hosts.has_host_name(each, port) for each in named):
            return None
        return f"the URL cannot be reached: {host} is {kind}, and {_get_remedy(service)}"

    def _send_message(self, request: Mapping[str, Any]) -> dict[str, object]:
        url = request["url"]
        service = None if self._is_local_service(url) else self._find_service(url)
        if service is None:
            return {"problem": "Apprise can no longer parse the URL"}
        if (problem := _find_header_or_method_problem(service)) is not None:
            return {"problem": problem}
        self._allow_hosts(service)
        sender = self._apprise.Apprise()
        sender.add(service)
        kind = self._apprise.NotifyType
        body = fit_message_text(
            request["body"], request["short_body"], room=int(service.body_maxlen)
        )
        result = sender.notify(
            title=neutralize_mentions(request["title"]),
            body=neutralize_mentions(body),
            notify_type=kind.FAILURE if request["is_alarm"] else kind.INFO,
            body_format=self._apprise.NotifyFormat.TEXT,
            log_level=logging.DEBUG,
        )
        if result:
            return {"problem": None}
        said = [entry for service in result for attempt in service for entry in attempt]
        words = _get_service_message(said)
        return {
            "problem": f"{service.service_name} {_get_failure_reason(said)}",
            "words": _remove_secrets(words, request["url"], host=_find_host(service)),
        }

    def _allow_hosts(self, service: Any) -> None:
        """Allow a request to reach the configured hosts, unless it uses a JSON, XML or form URL."""
        under_way = _active_request.get()
        under_way.remedy = _get_remedy(service)
        if _get_module_name(service) not in _GENERIC_SERVICES:
            under_way.hosts = self._hosts


def _get_module_name(service: Any) -> str:
    """Return the name of the module that defines a service."""
    return str(service.__module__).removeprefix("apprise.plugins.").partition(".")[0]


def _get_remedy(service: Any) -> str:
    """Return a remedy for a service on a non-public address."""
    if _get_module_name(service) in _GENERIC_SERVICES:
        return "JSON, XML and form URLs reach public addresses only"
    return "only OUTGOING_CONTACT_HOSTS can allow this"


def _find_host(service: Any) -> str | None:
    """Return the host and port of a self-hosted service, or None for other services."""
    if "host" not in service.template_tokens or getattr(service, "mode", "") == "cloud":
        return None
    host, port = getattr(service, "host", None), getattr(service, "port", None)
    return f"{host}:{port}" if host and port else host or None


def _find_header_or_method_problem(service: Any) -> str | None:
    """Return the problem with a URL that sets a header or a method, or None."""
    if "headers" in service.template_kwargs and service.headers:
        return (
            "the URL sets a header, which Gatebell does not send: remove the parameters that start "
            "with +"
        )
    if _get_module_name(service) in _GENERIC_SERVICES and service.method != "POST":
        return "the URL sets a method, but Gatebell only sends POST: remove the parameter `method`"
    return None


def _get_failure_reason(log_messages: Sequence[Any]) -> str:
    """Return the reason for a failure in Gatebell's words, not in the words of the service."""
    messages = [each.message for each in log_messages]
    status = next((found[1] for each in messages if (found := _RESPONSE_STATUS.search(each))), None)
    if status is not None and (problem := describe_status_problem(int(status))) is not None:
        return problem.removeprefix("the server ")
    if any("timed out" in each for each in messages):
        return "did not respond in time"
    is_lost = any(each.startswith(_SOCKET_ERROR) for each in messages)
    return "could not be reached" if is_lost else "did not accept the message"


def _get_service_message(log_messages: Sequence[Any]) -> str:
    """Return the message about a failure from the service or from apprise."""
    warnings = [
        each.message for each in log_messages if each.level in {"WARNING", "ERROR", "CRITICAL"}
    ]
    details = [
        _FAILURE_DETAILS.sub("", each.message)
        for each in log_messages
        if _FAILURE_DETAILS.match(each.message)
    ]
    details = [_CONNECTION_CAUSE.sub(r"\1", each) for each in details]
    return " · ".join(" ".join(each.split()) for each in (*warnings[-1:], *details[-1:]))


def _remove_secrets(words: str, url: str, *, host: str | None) -> str:
    """Remove the parts of a URL from the given text, except its scheme and the service's host."""
    parts = re.split(r"[/:@?&=#,+]+", url.partition(":")[2])
    secrets = {each for part in parts for each in (part, unquote(part))}
    secrets -= {"", *(host or "").split(":")}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET_LENGTH:
            words = words.replace(secret, "…")
    return words[:_MAX_REPLY_LENGTH]


def format_result_line(value: Mapping[str, object]) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(value) + "\n"


def _read_requests() -> Iterator[Mapping[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def fit_message_text(body: str, short: str, *, room: int) -> str:
    """Return text that fits within the given number of characters.

    Text that is cut off ends with the short text, which contains the required actions.
    """
    if room <= _MAX_SHORT_MESSAGE_LENGTH:
        return short
    if len(body) <= room:
        return body
    return f"{body[: max(room - len(short) - 3, 0)].rstrip()}…\n\n{short}"


def neutralize_mentions(text: str) -> str:
    """Change the mentions in the given text so that they notify no one."""
    return _MENTIONS.sub(lambda found: f"{found[0]}\u200b", text)


def main() -> None:
    """Handle requests until standard input ends."""
    # The output of a service must not be mistaken for a result.
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
    program = AppriseRequestHandler(results, HostList.from_text(sys.argv[1]))
    # This is imported here because only Python's own files can be opened afterwards.
    import encodings.idna  # noqa: F401, PLC0415

    sys.addaudithook(Sandbox())
    results.write(format_result_line({"id": 0}))
    results.flush()
    program.handle_requests(_read_requests())
    # A regular exit would wait for hung threads of apprise.
    os._exit(0)


if __name__ == "__main__":
    main()
