"""Issues tokens for the registry with the key and the policy of this installation."""

from collections.abc import Iterable, Mapping

from domain.registry.signing_keys import TokenSigner, get_signer, has_signer, list_keys
from domain.registry.tokens import RegistryToken, sign_token
from web.extensions import db
from web.http.transactions import begin_to_write
from web.services import now, registry_policy, services


def issue_token(access: Iterable[Mapping[str, object]], *, subject: str) -> RegistryToken:
    """Return a token for the registry with this access."""
    policy = registry_policy().tokens
    return sign_token(access, subject=subject, signer=signer(), policy=policy, now=now())


def signer() -> TokenSigner:
    """Return the key that signs; the first request makes it."""
    session, keyring, moment = db.session(), services().keyring, now()
    if not has_signer(session=session, keyring=keyring, now=moment):
        session.rollback()  # it only reads; the next one may write
        begin_to_write()
    return get_signer(session=session, keyring=keyring, now=moment)


def certificate_bundle() -> str:
    """Return the certificates of the key that signs, of one that waits and of former ones."""
    signer()
    keys = list_keys(session=db.session(), keyring=services().keyring, now=now())
    return "".join(key.certificate for key in keys)
