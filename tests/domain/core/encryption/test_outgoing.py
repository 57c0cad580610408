"""Outgoing connections: TLS 1.2 or higher, verified certificates, and reasons of rejections."""

import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import ec

from domain.core.tls import build_outgoing_tls_context, find_tls_failure_reason
from tests.support.service.certificates import Key, rsa_key, write_certificate
from tests.support.service.tls_server import WORD, lax_context, running_server, running_tls_server

pytestmark = [
    pytest.mark.spec("L6"),
    pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning"),
]


SELF_SIGNED = "the certificate is self-signed and not in TRUSTED_CA_FILE"


def good_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def said_over_tls(port: int, trusted: Path | None) -> bytes:
    context = build_outgoing_tls_context(trusted)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        return client.recv(100)


def reason_of(port: int, trusted: Path | None) -> str | None:
    with pytest.raises(OSError) as raised:  # noqa: PT011 - its text is what is looked at
        said_over_tls(port, trusted)
    return find_tls_failure_reason(raised.value)


def only(context: ssl.SSLContext, version: ssl.TLSVersion) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = version
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("key", [good_key, lambda: rsa_key(2048)], ids=["P-256", "RSA"])
def test_tls_1_2_and_higher_with_a_strong_key_is_used(
    tmp_path: Path, version: ssl.TLSVersion, key: Callable[[], Key]
) -> None:
    trusted = write_certificate(tmp_path / "good.pem", key())
    with running_tls_server(only(lax_context(trusted), version)) as port:
        assert said_over_tls(port, trusted) == WORD


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_older_protocols_are_rejected(tmp_path: Path, version: ssl.TLSVersion) -> None:
    trusted = write_certificate(tmp_path / "good.pem", good_key())
    with running_tls_server(only(lax_context(trusted), version)) as port:
        assert reason_of(port, trusted) == "the server does not support TLS 1.2 or higher"


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (lambda: rsa_key(1024), "the key of the certificate is too weak"),
        (lambda: ec.generate_private_key(ec.SECP192R1()), None),  # TLS 1.3 has no such curve.
        (lambda: rsa_key(8676), "the RSA key has 8676 bits, which is too large: use at most 8192"),
    ],
    ids=["RSA of 1024 bits", "P-192", "RSA of 8676 bits"],
)
def test_weak_and_huge_keys_are_rejected(
    tmp_path: Path, key: Callable[[], Key], reason: str | None
) -> None:
    trusted = write_certificate(tmp_path / "bad.pem", key())
    with running_tls_server(only(lax_context(trusted), ssl.TLSVersion.TLSv1_2)) as port:
        found = reason_of(port, trusted)
    assert found
    assert (reason or "") in found


@pytest.mark.parametrize(
    ("host", "days", "reason"),
    [
        ("127.0.0.1", -1, "the certificate has expired"),
        ("elsewhere.example", 1, "the certificate is for another IP address"),
    ],
)
def test_expired_certificates_and_those_of_other_hosts_are_rejected(
    tmp_path: Path, host: str, days: int, reason: str
) -> None:
    trusted = write_certificate(tmp_path / "bad.pem", good_key(), host=host, days=days)
    with running_tls_server(lax_context(trusted)) as port:
        assert reason_of(port, trusted) == reason


def test_an_unknown_issuer_is_rejected(tmp_path: Path) -> None:
    unknown = write_certificate(tmp_path / "good.pem", good_key())
    with running_tls_server(lax_context(unknown)) as port:
        assert reason_of(port, None) == SELF_SIGNED


def test_a_server_without_strong_cipher_suites_is_rejected(tmp_path: Path) -> None:
    trusted = write_certificate(tmp_path / "good.pem", rsa_key(2048))
    context = only(lax_context(trusted), ssl.TLSVersion.TLSv1_2)
    context.set_ciphers("AES128-SHA:@SECLEVEL=0")
    with running_tls_server(context) as port:
        assert reason_of(port, trusted) == "the server supports none of the allowed cipher suites"


@pytest.mark.parametrize("words", [b"220 mail.example ESMTP\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_server_without_tls_is_rejected(words: bytes) -> None:
    with running_server(lambda client: client.sendall(words)) as port:
        assert reason_of(port, None) == "the server does not use TLS"


def test_the_reason_is_found_inside_the_errors_of_clients(tmp_path: Path) -> None:
    untrusted = write_certificate(tmp_path / "good.pem", good_key())
    with running_tls_server(lax_context(untrusted)) as port:
        with pytest.raises(requests.exceptions.SSLError) as raised:
            requests.get(f"https://127.0.0.1:{port}", timeout=30)
        reason = find_tls_failure_reason(raised.value)
    assert reason == SELF_SIGNED
    assert find_tls_failure_reason(ValueError("something else")) is None
