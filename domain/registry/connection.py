"""The registry of this installation, and a client with this service's own tokens."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy.orm import Session

from domain.encryption.outgoing import outgoing_tls_context
from domain.keyring import Keyring
from domain.registry.client import RegistryAddress, RegistryClient, RegistryUnavailableError
from domain.registry.signing_keys import get_signer
from domain.registry.tokens import TokenPolicy, sign_token

_ACTIONS = ["pull", "push", "delete"]
#: The subject of this service's own tokens; no user can have this name.
_OWN_NAME = "-"


@dataclass(frozen=True, kw_only=True)
class RegistryPolicy:
    """Where the registry is, and what its tokens have in common."""

    #: What image names begin with; None without a registry.
    host: str | None
    #: Where this service reaches it; empty without a registry.
    api_url: str
    tokens: TokenPolicy
    trusted_ca_file: Path | None = None


def open_registry(
    policy: RegistryPolicy, *, session: Session, keyring: Keyring, now: datetime
) -> RegistryClient:
    """Return a client of the registry, to be closed; a transaction that may write has to be open.

    Raises RegistryUnavailableError if no registry is configured.
    """
    url = policy.api_url
    if not url:
        message = "No container registry is connected: an administrator has to set REGISTRY_URL."
        raise RegistryUnavailableError(message)
    signer = get_signer(session=session, keyring=keyring, now=now)

    def token_for(repository: str) -> str:
        access = [{"type": "repository", "name": repository, "actions": _ACTIONS}]
        token = sign_token(access, subject=_OWN_NAME, signer=signer, policy=policy.tokens, now=now)
        return token.clear

    tls = outgoing_tls_context(policy.trusted_ca_file) if url.startswith("https:") else None
    return RegistryClient(RegistryAddress(url=url, token_for=token_for, tls=tls))
