"""Tests of the client for user-defined URLs, against slow, broken and hostile servers."""

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from domain.delivery.outgoing.errors import OutgoingError
from domain.delivery.outgoing.ip_address_policy import AddressPolicy
from domain.delivery.outgoing.urls import parse_outgoing_url
from tests.support.service.certificates import make_certificate, rsa_key, write_certificate
from tests.support.service.message_receiver import Received, Receiver, running_receiver
from tests.support.service.tls_server import lax_context, running_server, running_tls_server
from web.outgoing.client import OutgoingClient, OutgoingResponse

LOOPBACK = AddressPolicy.from_networks("127.0.0.0/8")


@pytest.fixture
def client() -> Iterator[OutgoingClient]:
    made = OutgoingClient(LOOPBACK)
    yield made
    made.close_connection()


@pytest.fixture
def hasty() -> OutgoingClient:
    """Create a client with a short timeout, for servers that never finish."""
    return OutgoingClient(LOOPBACK, deadline=0.3)


def post(client: OutgoingClient, url: str, body: bytes = b"{}") -> OutgoingResponse:
    return client.send_post(parse_outgoing_url(url), body, {"Content-Type": "application/json"})


def failure(client: OutgoingClient, url: str) -> str:
    with pytest.raises(OutgoingError) as raised:
        post(client, url)
    return str(raised.value)


def test_requests_to_one_origin_share_a_connection(client: OutgoingClient) -> None:
    seen: list[str] = []
    with running_server(lambda peer: serve(peer, seen)) as port:
        for path in ("/a", "/b?token=1", "/c"):
            assert post(client, f"http://127.0.0.1:{port}{path}").status == 200
    assert seen == ["/a", "/b?token=1", "/c"]


def serve(peer: socket.socket, seen: list[str]) -> None:
    """Answer requests on one connection until it is closed; a second one would have to wait."""
    stream = peer.makefile("rb")
    while line := stream.readline():
        seen.append(line.split()[1].decode())
        while stream.readline().strip():
            pass
        stream.read(2)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def test_a_connection_that_was_closed_is_opened_again(client: OutgoingClient) -> None:
    receiver = Receiver()
    with running_receiver(receiver):
        post(client, receiver.url)
    with running_receiver(receiver, port=receiver.port):
        post(client, receiver.url)
    assert len(receiver.received) == 2


def test_the_host_header_is_the_host_of_the_url(client: OutgoingClient) -> None:
    with running_receiver() as receiver:
        post(client, receiver.url.replace("127.0.0.1", "localhost"))
        post(client, receiver.url)
    hosts = [each.headers["host"] for each in receiver.received]
    assert hosts == [f"localhost:{receiver.port}", f"127.0.0.1:{receiver.port}"]


def test_no_proxy_of_the_environment_is_used(
    client: OutgoingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with running_receiver() as receiver:
        assert post(client, receiver.url).problem is None


@pytest.mark.advisory("CVE-2022-1285")
def test_a_name_is_resolved_once_per_request(
    client: OutgoingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second lookup would return the address of another service.
    answers = iter(["127.0.0.1", "127.0.0.2"])
    asked = socket.getaddrinfo

    def rebinding(host: str, *arguments: Any, **options: Any) -> Any:
        return asked(next(answers) if host == "rebind.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with running_receiver() as receiver:
        assert post(client, f"http://rebind.example:{receiver.port}/").problem is None
    assert next(answers) == "127.0.0.2"


def test_a_redirect_is_not_followed(client: OutgoingClient) -> None:
    with running_receiver() as inner:
        elsewhere = Receiver(answer=lambda _request: (307, {"Location": inner.url}))
        with running_receiver(elsewhere):
            answer = post(client, elsewhere.url)
    assert answer.problem is not None
    assert "307" in answer.problem
    assert "redirects are not followed" in answer.problem
    assert inner.received == []


@pytest.mark.parametrize(
    ("status", "words"),
    [(500, "500 Internal Server Error"), (404, "404 Not Found"), (599, "the server returned 599")],
)
def test_an_error_status_is_reported(client: OutgoingClient, status: int, words: str) -> None:
    with running_receiver(Receiver(answer=lambda _request: (status, {}))) as receiver:
        answer = post(client, receiver.url)
    assert words in str(answer.problem)


def test_a_retry_after_header_is_read(client: OutgoingClient) -> None:
    waits = iter(["7", "Fri, 01 Jan 2027 00:00:00 GMT", "-1", "99999999999"])

    def busy(_request: Received) -> tuple[int, dict[str, str]]:
        return 503, {"Retry-After": next(waits)}

    with running_receiver(Receiver(answer=busy)) as receiver:
        assert [post(client, receiver.url).retry_after for _ in range(4)] == [7, None, None, None]


@pytest.mark.advisory("CVE-2018-15192")
def test_loopback_is_rejected_unless_allowed() -> None:
    with running_receiver() as receiver:
        words = failure(OutgoingClient(AddressPolicy()), receiver.url)
    assert words.startswith("127.0.0.1 is a loopback address")
    assert receiver.received == []


def test_a_closed_port_is_reported(client: OutgoingClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert failure(client, f"http://127.0.0.1:{port}/") == "the connection was refused"


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", id="half a head"),
    ],
)
def test_a_stalled_response_ends_at_the_deadline(hasty: OutgoingClient, said: bytes) -> None:
    over = Event()

    def stall(peer: socket.socket) -> None:
        peer.sendall(said)
        over.wait(30)

    with running_server(stall) as port:
        words = failure(hasty, f"http://127.0.0.1:{port}/")
        over.set()
    assert words == "no complete response was received within 0.3 seconds"


def test_a_slowly_dripping_response_ends_at_the_deadline(hasty: OutgoingClient) -> None:
    over = Event()

    def drip(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while not over.wait(0.05):
            peer.sendall(b"x")

    with running_server(drip) as port:
        words = failure(hasty, f"http://127.0.0.1:{port}/")
        over.set()
    assert "within 0.3 seconds" in words


def test_an_endless_tls_handshake_times_out(hasty: OutgoingClient) -> None:
    over = Event()

    def stall(_peer: socket.socket) -> None:
        over.wait(30)

    with running_server(stall) as port:
        words = failure(hasty, f"https://127.0.0.1:{port}/")
        over.set()
    assert "within 0.3 seconds" in words


def test_a_dns_lookup_without_an_answer_times_out(
    hasty: OutgoingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: over.wait(30) and [])
    words = failure(hasty, "http://slow.example/")
    over.set()
    assert "within 0.3 seconds" in words


def test_a_huge_response_is_not_read(client: OutgoingClient) -> None:
    sent = []

    def flood(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        for _ in range(1_000):
            peer.sendall(b"x" * 100_000)
            sent.append(100_000)

    with running_server(flood) as port:
        assert post(client, f"http://127.0.0.1:{port}/").problem is None
    assert sum(sent) < 50_000_000


def test_a_response_that_is_not_http_is_reported(client: OutgoingClient) -> None:

    def greet(peer: socket.socket) -> None:
        peer.recv(65_536)  # Unread bytes would make the system reset the connection.
        peer.sendall(b"220 mail.example ESMTP\r\n")

    with running_server(greet) as port:
        assert failure(client, f"http://127.0.0.1:{port}/") == "the response is not valid HTTP"
    with running_server(lambda _peer: None) as port:
        words = failure(client, f"http://127.0.0.1:{port}/")
    assert words == "the server closed the connection without a response"


def test_a_certificate_is_verified_for_the_name_in_the_url(tmp_path: Path) -> None:
    mine = make_certificate(tmp_path)
    with running_receiver(certificate=mine) as receiver:
        unknown = failure(OutgoingClient(LOOPBACK), receiver.url)
        trusting = OutgoingClient(LOOPBACK, trusted_ca_file=mine)
        assert post(trusting, receiver.url).problem is None
        trusting.close_connection()
        other = failure(trusting, receiver.url.replace("127.0.0.1", "localhost"))
    assert "self-signed" in unknown
    assert other == "the certificate is for another host name"
    assert len(receiver.received) == 1


def test_a_weak_key_is_rejected(client: OutgoingClient, tmp_path: Path) -> None:
    weak = write_certificate(tmp_path / "weak.pem", rsa_key(1024))
    with running_tls_server(lax_context(weak)) as port:
        assert "too weak" in failure(client, f"https://127.0.0.1:{port}/")


def test_an_unresponsive_address_is_skipped(
    client: OutgoingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = socket.getaddrinfo

    def two(host: str, *arguments: Any, **options: Any) -> Any:
        if host != "two.example":
            return asked(host, *arguments, **options)
        # The receiver listens only on the second address.
        return [(0, 0, 0, "", (address, 80)) for address in ("127.0.0.3", "127.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    with running_receiver() as receiver:
        assert post(client, f"http://two.example:{receiver.port}/").problem is None
