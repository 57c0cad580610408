"""HTTP client for requests to URLs that users configure.

A host name is resolved once, and the connection goes to an address that was checked. If the address
of a name changes in between, the connection still goes to the checked address. The certificate is
verified for the host name. The client follows no redirects, ignores proxies configured in the
environment, and limits the size of a response. With OUTGOING_PROXY, the proxy resolves the names of
public hosts (`web/outgoing/proxy.py`).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from errno import ECONNREFUSED
from functools import cache
from http.client import HTTPException
from pathlib import Path
from socket import SHUT_RDWR
from ssl import SSLContext, SSLError
from time import monotonic

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError
from urllib3.response import HTTPResponse

from domain.core.tls import build_outgoing_tls_context, find_tls_failure_reason
from domain.delivery.outgoing.attempts import DeliveryAttempt
from domain.delivery.outgoing.deadlines import run_with_deadline
from domain.delivery.outgoing.errors import (
    ConnectionFailedError,
    DeadlineExceededError,
    OutgoingError,
    ResponseTooLargeError,
    TlsFailedError,
    describe_status_problem,
)
from domain.delivery.outgoing.ip_address_policy import AddressPolicy
from domain.delivery.outgoing.signing import OutgoingMessage, build_signed_headers
from domain.delivery.outgoing.urls import OutgoingUrl, parse_outgoing_url
from web.outgoing.addresses import resolve_allowed_addresses
from web.outgoing.proxy import Proxy, is_direct_request
from web.settings.environment import Settings

#: Time limit in seconds for a whole request: name lookup, connection, TLS, sending and response.
DEADLINE_SECONDS = 10.0
#: Time limit in seconds for a connection attempt while there are other addresses to try.
_CONNECT_TIMEOUT_SECONDS = 4.0
#: Maximum number of response bytes read. The status of a longer response is still used.
_MAX_RESPONSE_BYTES = 65_536
#: Maximum number of response bytes returned, for a POST and for a GET.
_MAX_KEPT_POST_BYTES = 1_000
_MAX_KEPT_GET_BYTES = 16_384
_MAX_RETRY_AFTER_DIGITS = 5


@dataclass(frozen=True, kw_only=True)
class OutgoingResponse:
    """Response to an outgoing request, with its duration and the beginning of its body."""

    status: int
    #: Number of seconds in the Retry-After header, or None if it is not a number.
    retry_after: int | None
    seconds: float
    #: First bytes of the body.
    beginning: bytes = field(repr=False, default=b"")
    #: `False` if the connection was closed before the end of the body, or the body is too large.
    is_complete: bool = True
    #: Values of the ETag and Last-Modified headers.
    etag: str | None = None
    last_modified: str | None = None

    @property
    def problem(self) -> str | None:
        """Problem with the response, or None for a success."""
        return describe_status_problem(self.status)


class OutgoingClient:
    """Client that keeps its connection for the next request to the same origin.

    Only one thread or greenlet may use a client at a time.
    """

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        trusted_ca_file: Path | None = None,
        proxy: Proxy | None = None,
        deadline: float = DEADLINE_SECONDS,
    ) -> None:
        """Store the permitted addresses and the time limit for a whole request."""
        self._route = _NetworkRoute(policy=policy, trusted_ca_file=trusted_ca_file, proxy=proxy)
        self._deadline = deadline
        self._kept: tuple[str, HTTPConnection] | None = None

    @classmethod
    def from_settings(
        cls, settings: Settings, policy: AddressPolicy | None = None
    ) -> "OutgoingClient":
        """Return a client with the rules from the settings.

        `policy` replaces the address rules from the settings.
        """
        return cls(
            policy or AddressPolicy.from_networks(settings.outgoing_private_addresses),
            trusted_ca_file=settings.trusted_ca_file,
            proxy=Proxy.from_text(settings.outgoing_proxy),
        )

    def send_post(
        self, url: OutgoingUrl, body: bytes, headers: Mapping[str, str]
    ) -> OutgoingResponse:
        """Send a POST and return the response, regardless of its status.

        Raise OutgoingError if there is no response.
        """
        origin, kept = f"{url.scheme}://{url.authority}", self._kept
        self._kept = None  # stored again when the response is complete
        reused = kept[1] if kept and kept[0] == origin else None
        if kept and reused is None:
            _close_connection(kept[1])
        request = _OutgoingRequest(url, body, headers, route=self._route)
        answer = run_with_deadline(
            self._deadline, lambda: request.send_request(reused), stop=request.end_request
        )
        if request.connection is not None:
            self._kept = (origin, request.connection)
        return answer

    def fetch_url(self, url: OutgoingUrl) -> OutgoingResponse:
        """Send a GET and return the response.

        The response contains more of its body than the response to a POST. The connection is not
        kept. Raise OutgoingError if there is no response.
        """
        return self._send_once(url, None, {}, kept=_MAX_KEPT_GET_BYTES)

    def send_request(
        self, url: OutgoingUrl, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Send a request once and return the status and the complete body.

        The connection is not kept. Raise OutgoingError if there is no response or it is too large.
        """
        answer = self._send_once(url, body, headers, kept=_MAX_RESPONSE_BYTES)
        if len(answer.beginning) == _MAX_RESPONSE_BYTES:
            raise ResponseTooLargeError(_MAX_RESPONSE_BYTES)
        return answer.status, answer.beginning

    def fetch_file(
        self, url: OutgoingUrl, headers: Mapping[str, str], *, max_bytes: int
    ) -> OutgoingResponse:
        """Request a URL once and return the response with its complete body.

        The connection is not kept. Raise OutgoingError if there is no response, or it is incomplete
        or too large.
        """
        answer = self._send_once(url, None, headers, kept=max_bytes, read=max_bytes + 1)
        if not answer.is_complete:
            if len(answer.beginning) == max_bytes:
                raise ResponseTooLargeError(max_bytes)
            raise ConnectionFailedError("the connection was closed before the end of the response")
        return answer

    def _send_once(
        self,
        url: OutgoingUrl,
        body: bytes | None,
        headers: Mapping[str, str],
        *,
        kept: int,
        read: int = _MAX_RESPONSE_BYTES,
    ) -> OutgoingResponse:
        request = _OutgoingRequest(url, body, headers, route=self._route, kept=kept, read=read)
        answer = run_with_deadline(
            self._deadline, lambda: request.send_request(None), stop=request.end_request
        )
        request.end_request()
        return answer

    def close_connection(self) -> None:
        """Close the kept connection."""
        if self._kept is not None:
            _close_connection(self._kept[1])
            self._kept = None


@dataclass(frozen=True, kw_only=True)
class _NetworkRoute:
    """Rules and proxy that determine how a host is reached."""

    policy: AddressPolicy
    trusted_ca_file: Path | None
    proxy: Proxy | None


class _OutgoingRequest:
    """Single request. `send_request` runs in its own thread until `end_request` ends it."""

    def __init__(
        self,
        url: OutgoingUrl,
        body: bytes | None,
        headers: Mapping[str, str],
        *,
        route: _NetworkRoute,
        kept: int = _MAX_KEPT_POST_BYTES,
        read: int = _MAX_RESPONSE_BYTES,
    ) -> None:
        #: URL and body of the request. A request with a body is a POST, and any other request is a
        #: GET.
        self._url, self._body = url, body
        self._headers = {**headers, "Host": url.authority, "User-Agent": "Gatebell"}
        self._route = route
        #: Target in the first line of the request, which is a whole URL for a forwarding proxy.
        self._target = url.target
        #: Maximum number of response bytes returned.
        self._max_kept_bytes = kept
        #: Number of bytes at which a response is too large.
        self._max_read_bytes = read
        #: Open connection, or None once it is closed.
        self.connection: HTTPConnection | None = None
        self._is_stopped = False

    def send_request(self, reused: HTTPConnection | None) -> OutgoingResponse:
        """Send the request, on a kept connection if there is one, and read the response."""
        began = monotonic()
        try:
            if reused is not None and not self._try_kept_connection(reused):
                reused = None
            if reused is None:
                self._connect_and_send()
            return self._read_response(began)
        except Exception as error:
            self._drop_connection()
            raise _convert_error(error) from error

    def end_request(self) -> None:
        """End the request, even while another thread waits for the connection."""
        self._is_stopped = True
        self._drop_connection()

    def _try_kept_connection(self, kept_connection: HTTPConnection) -> bool:
        """Send the request on a kept connection, or return False if the other side has closed it.

        The request may still have arrived. Receivers recognize a repeated request by its ID.
        """
        self.connection = kept_connection
        if not kept_connection.is_connected:
            self._drop_connection()
            return False
        try:
            self._write_request()
            self._response = kept_connection.getresponse()
        except (OSError, HTTPException, HTTPError):
            self._drop_connection()
            return False
        return True

    def _connect_and_send(self) -> None:
        """Connect, through the proxy if required, and send the request."""
        proxy = self._route.proxy
        if proxy is not None and not is_direct_request(self._url, self._route.policy):
            self._connect_through_proxy(proxy)
        else:
            self._connect_to_host()
        self._write_request()
        self._response = self._open_connection().getresponse()

    def _connect_through_proxy(self, proxy: Proxy) -> None:
        self.connection = self._build_connection(proxy.host, proxy.port)
        # Reading the proxy's response includes its connection to the host, so only the deadline of
        # the whole request applies.
        self.connection.timeout = DEADLINE_SECONDS
        if self._url.is_encrypted:
            self.connection.set_tunnel(self._url.host, self._url.port, headers=proxy.headers)
        else:
            self._target = f"http://{self._url.authority}{self._url.target}"
            self._headers |= proxy.headers
        proxy.open_tunnel(self.connection)

    def _connect_to_host(self) -> None:
        """Connect to the first address that accepts the connection."""
        addresses = resolve_allowed_addresses(self._url.host, self._url.port, self._route.policy)
        for left, address in zip(reversed(range(len(addresses))), addresses, strict=True):
            self.connection = self._build_connection(str(address), self._url.port)
            try:
                self.connection.connect()
                break
            except (NewConnectionError, ConnectTimeoutError):
                self._drop_connection()
                if not left or self._is_stopped:
                    raise

    def _build_connection(self, host: str, port: int) -> HTTPConnection:
        if not self._url.is_encrypted:
            return HTTPConnection(host, port, timeout=_CONNECT_TIMEOUT_SECONDS)
        return HTTPSConnection(
            host,
            port,
            timeout=_CONNECT_TIMEOUT_SECONDS,
            server_hostname=self._url.host.rstrip("."),
            ssl_context=_get_tls_context(self._route.trusted_ca_file),
        )

    def _open_connection(self) -> HTTPConnection:
        if self.connection is None:  # the request was stopped
            raise DeadlineExceededError(DEADLINE_SECONDS)
        return self.connection

    def _write_request(self) -> None:
        connection = self._open_connection()
        # From here on, only the deadline of the whole request applies.
        connection.timeout = DEADLINE_SECONDS
        if connection.sock is not None:
            connection.sock.settimeout(DEADLINE_SECONDS)
        connection.request(
            "GET" if self._body is None else "POST",
            self._target,
            body=self._body,
            headers=self._headers,
            preload_content=False,
            decode_content=False,
        )

    def _read_response(self, began: float) -> OutgoingResponse:
        response = self._response
        beginning, is_complete = _read_limited_body(
            response, self._max_kept_bytes, self._max_read_bytes
        )
        is_passed_on = self._target != self._url.target
        if not is_complete or is_passed_on or self.connection is None or not self.connection.sock:
            self._drop_connection()
        return OutgoingResponse(
            status=response.status,
            retry_after=_parse_retry_after(response.headers.get("Retry-After")),
            seconds=monotonic() - began,
            beginning=beginning,
            is_complete=is_complete,
            etag=response.headers.get("ETag"),
            last_modified=response.headers.get("Last-Modified"),
        )

    def _drop_connection(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            _close_connection(connection)


def _read_limited_body(response: HTTPResponse, kept: int, maximum: int) -> tuple[bytes, bool]:
    """Read a response body up to a limit.

    Return the first `kept` bytes, and whether the body is complete, which means shorter than
    `maximum`.
    """
    left, beginning = maximum, b""
    try:
        while left > 0 and (chunk := response.read1(left)):
            left -= len(chunk)
            beginning += chunk[: kept - len(beginning)]
    except (OSError, HTTPException, HTTPError):
        return beginning, False  # the status is known
    return beginning, left > 0


def _close_connection(connection: HTTPConnection) -> None:
    with suppress(OSError):
        if connection.sock is not None:
            # Unlike closing, this wakes a thread that waits for the connection.
            connection.sock.shutdown(SHUT_RDWR)
    with suppress(OSError):
        connection.close()


@cache
def _get_tls_context(trusted_ca_file: Path | None) -> SSLContext:
    return build_outgoing_tls_context(trusted_ca_file)


def _parse_retry_after(text: str | None) -> int | None:
    is_number = text is not None and text.isascii() and text.isdecimal()
    return int(text) if is_number and text and len(text) <= _MAX_RETRY_AFTER_DIGITS else None


def _convert_error(error: Exception) -> OutgoingError:
    """Convert an error from urllib3, the system or OpenSSL to an error for users."""
    if isinstance(error, OutgoingError):
        return error
    if isinstance(error, SSLError | HTTPError) and (reason := find_tls_failure_reason(error)):
        return TlsFailedError(reason)
    return ConnectionFailedError(_describe_failure(error))


def _describe_failure(error: Exception) -> str:
    if isinstance(error, NewConnectionError):
        cause = error.__cause__
        was_refused = isinstance(cause, OSError) and cause.errno == ECONNREFUSED
        return "the connection was refused" if was_refused else "the server cannot be reached"
    if isinstance(error, ConnectTimeoutError):
        return "the connection timed out"
    if isinstance(error, HTTPException) and not isinstance(error, OSError):
        return "the response is not valid HTTP"
    return "the server closed the connection without a response"


def attempt_delivery(
    client: OutgoingClient,
    url: str,
    message: OutgoingMessage,
    secrets: Sequence[str],
    *,
    now: datetime,
) -> DeliveryAttempt:
    """Send a signed message once, and return the response or the problem."""
    headers = build_signed_headers(message, secrets, now=now)
    try:
        answer = client.send_post(parse_outgoing_url(url), message.body, headers)
    except OutgoingError as error:
        return DeliveryAttempt(problem=str(error))
    return DeliveryAttempt(
        problem=answer.problem,
        retry_after_seconds=answer.retry_after,
        status=answer.status,
        response=answer.beginning,
        milliseconds=round(answer.seconds * 1000),
    )
