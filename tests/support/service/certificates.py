"""Certificates that only tests trust: valid ones, and ones that must be rejected."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_EXPONENT = 65_537
#: Exponents of Mersenne primes, whose products are RSA keys of any size without a search.
_MERSENNE = {7_640: (3_217, 4_423), 8_676: (4_253, 4_423), 14_112: (4_423, 9_689)}


def make_certificate(directory: Path) -> Path:
    """Write a key and its certificate for 127.0.0.1 into one file, and return the file."""
    return write_certificate(directory / "mail.pem", ec.generate_private_key(ec.SECP256R1()))


def write_certificate(
    file: Path, key: Key, *, host: str = "127.0.0.1", days: float = 30, begins: float = -400
) -> Path:
    """Write a key and its self-signed certificate into one file.

    `begins` and `days` limit its validity, in days from now.
    """
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Gatebell tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=begins))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([_name(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file.write_bytes(private_pem(key) + certificate.public_bytes(serialization.Encoding.PEM))
    return file


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def private_pem(key: Key, password: bytes = b"") -> bytes:
    """Return a private key in PEM."""
    encryption = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )


def rsa_key(bits: int) -> rsa.RSAPrivateKey:
    """Return an RSA key; keys of 7,640, 8,676 and 14,112 bits need no search for primes."""
    if bits not in _MERSENNE:
        return rsa.generate_private_key(_EXPONENT, bits)
    p, q = (2**exponent - 1 for exponent in _MERSENNE[bits])
    d = pow(_EXPONENT, -1, (p - 1) * (q - 1))
    crt = rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q)
    public = rsa.RSAPublicNumbers(_EXPONENT, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, d, *crt, public)
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)
