"""Checks of settings, secret keys and the certificate."""

from collections.abc import Iterator
from pathlib import Path

from limits.storage import storage_from_string

from domain.accounts.first_password import FIRST_USERNAME, has_first_password
from domain.clock import date_and_time
from domain.secret_keys import missing_fingerprints
from domain.upkeep.rekeying import rotation
from web.admin.security_warnings import security_warnings
from web.admin.setting_changes import settings_now
from web.commands.doctor_checks.findings import Finding, failed, ok, warning
from web.extensions import db
from web.limit_storage import counts_on_host, storage_configuration
from web.server.tls import CertificateFilesError, open_certificate
from web.services import now, services
from web.settings.reader import Settings, misspelt_in_environment

_OTHERS = 0o077


def check_settings(settings: Settings) -> Iterator[Finding]:
    """Look for misspelt names, and for settings that weaken security."""
    for sentence in misspelt_in_environment():
        yield warning(sentence)
    for risk in security_warnings(settings_now(session=db.session())):
        yield warning(f"{risk.setting.upper()} {risk.words}")
    if has_first_password(FIRST_USERNAME, settings.instance_path):
        yield warning(f"The generated password of {FIRST_USERNAME} is still in use.")
    yield ok("No variable looks misspelt, and no setting weakens security.")


def check_keys(settings: Settings) -> Iterator[Finding]:
    """Look whether this host has the keys that the database was written with."""
    session, keyring = db.session(), services().keyring
    missing = missing_fingerprints(keyring, session=session)
    if missing:
        yield failed(f"SECRET_KEY and SECRET_KEY_FALLBACKS lack keys: {', '.join(missing)}.")
        return
    unreadable = sum(rotation(keyring, session=session, now=now()).unreadable.values())
    if unreadable:
        yield failed(
            f"{unreadable} stored keys cannot be decrypted: see `gatebell secrets status`."
        )
    for name in ("secret_key", "gatebell.db"):
        yield from _kept_private(settings.instance_path / name)
    yield ok("SECRET_KEY matches the database.")


def _kept_private(file: Path) -> Iterator[Finding]:
    # Nobody reaches a file in a folder that is closed to them.
    if file.exists() and file.stat().st_mode & file.parent.stat().st_mode & _OTHERS:
        yield warning(f"Others can read {file}: chmod 600 it.")


def check_certificate(settings: Settings) -> Iterator[Finding]:
    """Look when the certificate of our own TLS ends."""
    try:
        certificate = open_certificate(settings)
    except CertificateFilesError as error:
        yield failed(str(error))
        return
    if certificate is None:
        yield ok("TLS is left to a proxy, or there is none.")
        return
    said = certificate.expiry_warning()
    if said:
        yield warning(said)
    else:
        yield ok(f"The certificate is valid until {date_and_time(certificate.expires_at)}.")


def check_counters(settings: Settings) -> Iterator[Finding]:
    """Ask the store that rate limits are counted in."""
    url = settings.ratelimit_storage_uri
    if counts_on_host(url):
        return
    made = storage_configuration(url, settings.trusted_ca_file)
    storage = storage_from_string(
        made["RATELIMIT_STORAGE_URI"], **made.get("RATELIMIT_STORAGE_OPTIONS", {})
    )
    if storage.check():
        yield ok("The store of rate limits answers.")
    else:
        yield failed("RATELIMIT_STORAGE_URI does not answer: each web process counts separately.")
