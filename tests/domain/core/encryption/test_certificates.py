"""Server certificates: valid ones with their expiry, and the reasons of rejections."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from domain.core.errors import InvalidError
from tests.support.service.certificates import private_pem, rsa_key, write_certificate
from web.server.tls import check_server_certificate

pytestmark = pytest.mark.spec("L5", "L6")
KEY = ec.generate_private_key(ec.SECP256R1())


def now() -> datetime:
    return datetime.now(UTC)


def test_a_valid_certificate_has_hosts_and_an_expiry(tmp_path: Path) -> None:
    pem = write_certificate(tmp_path / "c.pem", KEY, host="*.people.example", days=90).read_bytes()
    found = check_server_certificate(pem, pem, now=now())
    assert found.covers_host("gate.People.example")
    assert not found.covers_host("people.example")
    assert not found.covers_host("a.gate.people.example")
    assert found.build_expiry_warning(now()) is None
    almost, after = found.expires_at - timedelta(days=14), found.expires_at
    assert "The TLS certificate expires on " in (found.build_expiry_warning(almost) or "")
    assert "The TLS certificate expired on " in (found.build_expiry_warning(after) or "")


def test_the_warning_for_a_short_certificate_starts_in_its_last_third(tmp_path: Path) -> None:
    pem = write_certificate(tmp_path / "c.pem", KEY, begins=0, days=6).read_bytes()
    found = check_server_certificate(pem, pem, now=now() + timedelta(seconds=1))
    assert found.build_expiry_warning(now() + timedelta(days=3.9)) is None
    assert found.build_expiry_warning(now() + timedelta(days=4.1))


@pytest.mark.parametrize(
    ("begins", "days", "reason"),
    [(-2, -1, "The certificate expired on 20"), (1, 2, "The certificate is not valid before 20")],
)
def test_certificates_outside_of_their_validity_are_rejected(
    tmp_path: Path, begins: int, days: int, reason: str
) -> None:
    pem = write_certificate(tmp_path / "c.pem", KEY, begins=begins, days=days).read_bytes()
    with pytest.raises(InvalidError, match=reason):
        check_server_certificate(pem, pem, now=now())


@pytest.mark.long
def test_unsuitable_files_are_rejected_with_a_reason(tmp_path: Path) -> None:
    good = write_certificate(tmp_path / "good.pem", KEY).read_bytes()
    weak = write_certificate(tmp_path / "weak.pem", rsa_key(1024)).read_bytes()
    huge = write_certificate(tmp_path / "huge.pem", rsa_key(8676)).read_bytes()
    curve = ec.generate_private_key(ec.SECP192R1())
    short = write_certificate(tmp_path / "short.pem", curve).read_bytes()
    pairs = {
        "not a certificate in PEM": (private_pem(KEY), good),
        "not a valid private key": (good, b"-----BEGIN"),
        "encrypted with a password": (good, private_pem(KEY, password=b"sesame")),
        "The private key does not match the certificate": (good, private_pem(rsa_key(2048))),
        "Certificate: The RSA key has 1024 bits, which is too weak": (weak, weak),
        "Certificate: The RSA key has 8676 bits, which is too large": (huge, huge),
        "Certificate: The curve secp192r1 has 192 bits": (short, short),
    }
    for reason, (certificate, key) in pairs.items():
        with pytest.raises(InvalidError, match=reason):
            check_server_certificate(certificate, key, now=now())
    chain_with_weak_issuer = good + weak
    with pytest.raises(InvalidError, match="1024 bits"):
        check_server_certificate(chain_with_weak_issuer, good, now=now())
