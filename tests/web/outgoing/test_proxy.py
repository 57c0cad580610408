"""Tests of requests to public hosts through an HTTP proxy, which the test runs."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from domain.delivery.outgoing.errors import OutgoingError
from domain.delivery.outgoing.ip_address_policy import AddressPolicy
from domain.delivery.outgoing.urls import parse_outgoing_url
from tests.support.service.certificates import rsa_key, write_certificate
from tests.support.service.message_receiver import running_receiver
from tests.support.service.ports import free_port
from tests.support.service.tls_server import lax_context, running_server
from web.outgoing.client import OutgoingClient, OutgoingResponse
from web.outgoing.proxy import Proxy

#: Reserved name (RFC 6761) that no resolver knows.
UNKNOWN = "hook.invalid"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Seen = list[list[str]]


@contextmanager
def running_proxy(to: int, *, status: str = "200 OK") -> Iterator[tuple[str, Seen]]:
    """Run a proxy that connects to a loopback port for every requested host."""
    seen: Seen = []

    def serve(peer: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head and (more := peer.recv(1)):
            head += more
        seen.append(head.decode().strip().split("\r\n"))
        if not head.startswith(b"CONNECT"):
            peer.sendall(_ANSWER)
            return
        peer.sendall(f"HTTP/1.1 {status}\r\n\r\n".encode())
        if status.startswith("200"):
            with socket.create_connection(("127.0.0.1", to)) as target:
                Thread(target=copy, args=(target, peer), daemon=True).start()
                copy(peer, target)

    with running_server(serve) as port:
        yield f"http://user:pass%40word@127.0.0.1:{port}", seen


def copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def client_through(url: str, *, networks: str = "", trusted: Path | None = None) -> OutgoingClient:
    policy = AddressPolicy.from_networks(networks)
    return OutgoingClient(policy, trusted_ca_file=trusted, proxy=Proxy.from_text(url))


def post(client: OutgoingClient, url: str) -> OutgoingResponse:
    return client.send_post(parse_outgoing_url(url), b"{}", {"Content-Type": "application/json"})


def answer_in_tls(context: ssl.SSLContext, peer: socket.socket) -> None:
    with suppress(OSError), context.wrap_socket(peer, server_side=True) as secured:
        # A server that closes before it has read the body would reset the connection.
        request = b""
        while not request.endswith(b"{}") and (more := secured.recv(65_536)):
            request += more
        secured.sendall(_ANSWER)


def test_https_uses_a_tunnel_and_verifies_the_server_s_certificate(tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path / "tls.pem", rsa_key(2048), host=UNKNOWN)
    with (
        running_server(partial(answer_in_tls, lax_context(certificate))) as port,
        running_proxy(port) as (url, seen),
    ):
        client = client_through(url, trusted=certificate)
        assert post(client, f"https://{UNKNOWN}/hook?secret=1").status == 200
        client.close_connection()
        with pytest.raises(OutgoingError, match="certificate"):
            post(client_through(url), f"https://{UNKNOWN}/hook")
    assert seen[0][0].startswith(f"CONNECT {UNKNOWN}:443 HTTP/1.")
    assert "Proxy-Authorization: Basic dXNlcjpwYXNzQHdvcmQ=" in seen[0]


def test_plain_http_is_sent_to_the_proxy_with_the_full_url() -> None:
    with running_proxy(0) as (url, seen):
        client = client_through(url)
        for _ in range(2):
            assert post(client, f"http://{UNKNOWN}:8080/hook").status == 200
    assert [each[0] for each in seen] == [f"POST http://{UNKNOWN}:8080/hook HTTP/1.1"] * 2


def test_private_addresses_are_rejected_or_reached_directly() -> None:
    with running_proxy(0) as (url, seen), running_receiver() as receiver:
        for host in ("127.0.0.1", "localhost", "169.254.169.254", "[::1]"):
            with pytest.raises(OutgoingError):
                post(client_through(url), f"https://{host}/")
        client = client_through(url, networks="127.0.0.0/8")
        assert post(client, receiver.url).problem is None
        client.close_connection()
    assert seen == []


@pytest.mark.parametrize(
    "host",
    ["localhost.", "foo.localhost", "127.0.0.1.", "169.254.169.254.", "0x7f.0.0.1.", "10.0.0.1."],
)
def test_spellings_of_a_private_address_are_not_sent_to_the_proxy(host: str) -> None:
    with running_proxy(0) as (url, seen), pytest.raises(OutgoingError, match="which is"):
        post(client_through(url), f"http://{host}:8080/")
    assert seen == []


@pytest.mark.parametrize("host", ["metadata", "metadata.google.internal", "nas.local.", "a.lan"])
def test_names_of_private_networks_are_not_sent_to_the_proxy(host: str) -> None:
    with running_proxy(0) as (url, seen), pytest.raises(OutgoingError, match="not found in DNS"):
        post(client_through(url), f"https://{host}/")
    assert seen == []


def error_for_status(status: str) -> Callable[[], str]:
    def fail() -> str:
        with running_proxy(0, status=status) as (url, _seen), pytest.raises(OutgoingError) as found:
            post(client_through(url), f"https://{UNKNOWN}/")
        return str(found.value)

    return fail


def test_errors_of_the_proxy_name_it() -> None:
    assert "the proxy in OUTGOING_PROXY returned 403" in error_for_status("403 Forbidden")()
    with pytest.raises(OutgoingError, match="the proxy in OUTGOING_PROXY cannot be reached"):
        post(client_through(f"http://127.0.0.1:{free_port()}"), f"https://{UNKNOWN}/")
