"""Mail server and sender from the settings."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from domain.delivery.mail.smtp import MailServer, SenderAddress
from web.settings.environment import Settings

_DEFAULT_PORTS = {"smtp": 587, "smtps": 465}


def build_sender(settings: Settings) -> SenderAddress:
    """Return the name and email address from which messages are sent."""
    host = urlsplit(settings.base_url).hostname or "localhost"
    return SenderAddress(
        name=settings.instance_name, address=settings.mail_from or f"gatebell@{host}"
    )


def build_mail_server(url: str, trusted_ca_file: Path | None = None) -> MailServer:
    """Return the server of a validated MAIL_URL."""
    parts = urlsplit(url)
    return MailServer(
        host=parts.hostname or "",
        port=parts.port or _DEFAULT_PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        has_implicit_tls=parts.scheme == "smtps",
        trusted_ca_file=trusted_ca_file,
    )
