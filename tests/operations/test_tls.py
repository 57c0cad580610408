"""Tests of TLS in the web server: rejected protocols, and renewed certificates."""

import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic, sleep

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import load_der_x509_certificate

from tests.faults.slow_clients import half_a_handshake, silent
from tests.operations.programs import run
from tests.support.service.certificates import Key, rsa_key, write_certificate
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.plain_server import running_plain_server

pytestmark = [
    pytest.mark.one_database("sqlite"),
    pytest.mark.spec("L6"),
    pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning"),
]

PATIENCE = 60
#: Number of connections; one process loads a renewed certificate within two seconds.
CONNECTIONS = 40


def good_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture(scope="module")
def live(
    new_service: NewService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveGatebell]:
    """Run a service with TLS, one process, few connections and an expiring certificate."""
    file = tmp_path_factory.mktemp("live") / "tls.pem"
    certificate = str(write_certificate(file, rsa_key(2048), days=5))
    made = new_service(
        "sqlite",
        only="web",
        WEB_CONCURRENCY="1",
        WEB_CONNECTIONS=str(CONNECTIONS),
        TLS_CERTIFICATE=certificate,
        TLS_KEY=certificate,
    )
    made.start()
    yield made
    assert made.stop() == 0, made.log_text()


def wait_for_log(live: LiveGatebell, *words: str) -> None:
    deadline = monotonic() + PATIENCE
    while not all(word in live.log_text() for word in words):
        assert monotonic() < deadline, live.log_text()[-3000:]
        sleep(0.1)


def ended_with(client: socket.socket) -> bytes:
    """Return the data until the connection is closed or reset."""
    said = b""
    with suppress(ConnectionResetError):
        while piece := client.recv(1000):
            said += piece
    return said


def lax_client() -> ssl.SSLContext:
    """Return a context that accepts weak protocols and certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def connected(live: LiveGatebell, context: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", live.port), timeout=30)
    return (context or lax_client()).wrap_socket(plain, suppress_ragged_eofs=False)


def test_pages_and_machines_are_served_over_tls(live: LiveGatebell) -> None:
    browser = live.http()
    page = browser.get(f"{live.url}/users/sign_in")
    assert page.status_code == 200
    assert "Secure" in page.headers["Set-Cookie"]
    metadata = browser.get(f"{live.url}/.well-known/openid-configuration").json()
    assert metadata["issuer"] == live.url


def test_make_run_serves_over_tls_and_logs_that_it_is_ready(tmp_path: Path) -> None:
    certificate = str(write_certificate(tmp_path / "tls.pem", good_key()))
    both = {"TLS_CERTIFICATE": certificate, "TLS_KEY": certificate}
    made = LiveGatebell(instance_path=tmp_path, database_url="", WEB_CONCURRENCY="1", **both)
    with running(made):
        wait_for_log(made, f"is ready: {made.url}")
        assert made.http().get(f"{made.url}/healthz").status_code == 200


@pytest.mark.long
@pytest.mark.rfc("rfc9700-2.6-d")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_only_http_1_1_is_offered_over_tls_1_2_and_1_3(
    live: LiveGatebell, version: ssl.TLSVersion
) -> None:
    context = lax_client()
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    with connected(live, context) as client:
        assert client.selected_alpn_protocol() == "http/1.1"
        assert client.compression() is None


@pytest.mark.long
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_older_protocols_are_rejected_and_logged(
    live: LiveGatebell, version: ssl.TLSVersion
) -> None:
    context = lax_client()
    context.minimum_version = context.maximum_version = version
    with pytest.raises(OSError, match=r"(?i)version|protocol|reset|eof"):
        connected(live, context)
    wait_for_log(
        live,
        "TLS handshake with 127.0.0.1 failed: the client does not offer TLS 1.2 or higher.",
        '"event":"tls.handshake_failed"',
    )


OPENSSL = shutil.which("openssl") or ""


@pytest.mark.long
@pytest.mark.skipif(not OPENSSL, reason="no openssl command")
@pytest.mark.parametrize(
    "options",
    [
        ("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"),
        ("-tls1_2", "-cipher", "AES128-SHA:@SECLEVEL=0"),
    ],
    ids=["protocol", "suite"],
)
def test_openssl_cannot_connect_with_weak_options(
    live: LiveGatebell, options: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [OPENSSL, "s_client", "-connect", f"127.0.0.1:{live.port}", *options],
        input=b"",
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert b"Cipher is (NONE)" in done.stdout or done.returncode != 0


@pytest.mark.parametrize("suite", ["AES128-SHA", "ECDHE-RSA-AES128-SHA256", "AES256-GCM-SHA384"])
def test_weak_cipher_suites_are_rejected(live: LiveGatebell, suite: str) -> None:
    context = lax_client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(f"{suite}:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        connected(live, context)
    wait_for_log(live, "the client offers no strong cipher suite")


@pytest.mark.long
def test_plain_http_connections_are_closed_and_logged(live: LiveGatebell) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=30) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert not ended_with(client)
    wait_for_log(live, "127.0.0.1 failed: the client speaks plain HTTP to the TLS port")


@pytest.mark.long
@pytest.mark.parametrize("request_line", [b"GET /healthz HTTP/1.0", b"NONSENSE"])
def test_a_connection_ends_with_close_notify(live: LiveGatebell, request_line: bytes) -> None:
    # Without close_notify, a client cannot distinguish the end of a response from an attacker's
    # cut.
    with connected(live) as client:
        client.sendall(request_line + b"\r\n\r\n")
        said = b""
        while piece := client.recv(1000):  # The call raises SSLEOFError without close_notify.
            said += piece
    assert said.startswith(b"HTTP/1.")


@pytest.mark.long
def test_stalled_handshakes_do_not_block_others(
    live: LiveGatebell,
) -> None:
    with (
        silent(live.port, CONNECTIONS, said=half_a_handshake()[:50]),
        silent(live.port, CONNECTIONS),
    ):
        for _ in range(5):
            assert live.http().get(f"{live.url}/healthz", timeout=20).status_code == 200


@pytest.mark.long
def test_readiness_metrics_and_log_announce_the_end_of_the_certificate(live: LiveGatebell) -> None:
    client = live.http()
    ready = client.get(f"{live.url}/readyz")
    assert ready.status_code == 200
    assert "The TLS certificate expires on " in ready.json()["certificate"]
    metrics = client.get(f"{live.url}/metrics").text
    name = "gatebell_tls_certificate_expiry_timestamp_seconds "
    (line,) = (each for each in metrics.splitlines() if each.startswith(name))
    left = float(line.removeprefix(name)) - datetime.now(UTC).timestamp()
    assert 0 < left <= timedelta(days=5).total_seconds()
    wait_for_log(live, "The TLS certificate expires on ", '"event":"tls.certificate_expiring"')


def serial_of(live: LiveGatebell) -> int:
    with connected(live) as client:
        encoded = client.getpeercert(binary_form=True)
    assert encoded
    return load_der_x509_certificate(encoded).serial_number


@pytest.mark.long
def test_a_renewed_certificate_is_loaded_without_a_restart_unless_it_is_bad(
    live: LiveGatebell, tmp_path: Path
) -> None:
    used = Path(live.environment["TLS_CERTIFICATE"])
    before = serial_of(live)
    kept = live.http()
    assert kept.get(f"{live.url}/healthz", timeout=30).status_code == 200

    write_certificate(tmp_path / "bad.pem", rsa_key(1024)).replace(used)
    wait_for_log(live, '"event":"tls.certificate_rejected"', "1024 bits, which is too weak")
    assert serial_of(live) == before
    # A new connection would trust the new file, but the service does not use it.
    assert "too weak" in kept.get(f"{live.url}/readyz", timeout=30).json()["certificate"]
    metrics = kept.get(f"{live.url}/metrics", timeout=30).text
    assert "gatebell_tls_certificate_rejected 1.0" in metrics

    write_certificate(tmp_path / "good.pem", good_key()).replace(used)
    wait_for_log(live, '"event":"tls.certificate_renewed"')
    assert serial_of(live) != before
    assert "certificate" not in live.http().get(f"{live.url}/readyz").json()
    assert "gatebell_tls_certificate_rejected 0.0" in live.http().get(f"{live.url}/metrics").text
    assert kept.get(f"{live.url}/healthz", timeout=30).status_code == 200
    assert live.log_text().count("Listening at") == 1


@pytest.mark.long
def test_a_unix_socket_has_no_tls(tmp_path: Path) -> None:
    file = str(write_certificate(tmp_path / "tls.pem", good_key()))
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        with running_plain_server(
            tmp_path,
            listener=listener,
            TLS_CERTIFICATE=file,
            TLS_KEY=file,
            BASE_URL="https://127.0.0.1",
        ):
            client.settimeout(PATIENCE)
            client.connect(listener.getsockname())
            client.sendall(b"GET /short HTTP/1.0\r\n\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.0 200")


@pytest.fixture
def stopped(tmp_path: Path) -> LiveGatebell:
    return LiveGatebell(instance_path=tmp_path, database_url="", WEB_CONCURRENCY="1")


@pytest.mark.long
def test_invalid_certificate_files_stop_the_start(stopped: LiveGatebell, tmp_path: Path) -> None:
    weak = str(write_certificate(tmp_path / "weak.pem", rsa_key(1024)))
    tls = {"TLS_CERTIFICATE": weak, "TLS_KEY": weak, "BASE_URL": "https://127.0.0.1"}
    for program in ("make run", "gunicorn"):
        done = run(stopped, program, **tls)
        assert done.returncode != 0
        assert "TLS_CERTIFICATE, TLS_KEY: Certificate: The RSA key has 1024 bits" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.long
def test_failed_handshakes_are_logged_as_json(live: LiveGatebell) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=30) as client:
        client.sendall(b"\0" * 100)
        assert not ended_with(client)
    line = json.loads(live.logged_line('"tls.handshake_failed"'))
    assert line["level"] == "INFO"
