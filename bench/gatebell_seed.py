"""Stores the data for the measurements in Gatebell's database, with Gatebell's own models."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import insert
from sqlalchemy.orm import Session

from bench.oauth_shots import CALLBACK_URL, SeedData
from bench.seed_counts import Counts
from domain.accounts.users import get_user
from domain.core.keyring import CredentialType, Keyring
from domain.core.randomness import generate_credential, generate_random_hex
from models import AccessToken, Authorization, DeviceAuthorization
from tests.support.accounts.people import (
    Person,
    database_of,
    make_application,
    make_user,
    now,
    settings_of,
)
from tests.support.service.live import LiveGatebell

SCOPES = "read_user read_api"
_LIFETIME = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class TokenFamily:
    """The application and user that tokens are issued for."""

    application_id: int
    user_id: int
    keyring: Keyring
    moment: datetime
    scopes: str = SCOPES
    #: Thumbprint of the DPoP key that the tokens are bound to.
    key_thumbprint: str | None = None


def seed_gatebell(gatebell: LiveGatebell, counts: Counts) -> tuple[SeedData, Person]:
    """Create a user, two applications, and their tokens and codes."""
    alice = make_user(gatebell)
    changes = {"scopes": SCOPES, "redirect_uris": (CALLBACK_URL,)}
    server = make_application(gatebell, alice, name="Server", **changes)
    device = make_application(gatebell, alice, name="Device", confidential=False, **changes)
    keyring, moment = Keyring(settings_of(gatebell).secret_key), now()
    with database_of(gatebell) as session:
        user_id = get_user(alice.username, session=session).id
        ours = TokenFamily(
            application_id=server.id, user_id=user_id, keyring=keyring, moment=moment
        )
        devices = TokenFamily(
            application_id=device.id, user_id=user_id, keyring=keyring, moment=moment
        )
        seed = SeedData(
            client_id=server.client_id,
            client_secret=server.secret,
            device_client_id=device.client_id,
            scope="read_user",
            access_tokens=store_pairs(
                ours, CredentialType.ACCESS_TOKEN, counts.access_tokens, session
            ),
            refresh_tokens=store_pairs(
                ours, CredentialType.REFRESH_TOKEN, counts.refresh_tokens, session
            ),
            codes=_store_codes(ours, counts.codes, session),
            device_codes=_store_device_codes(devices, counts.device_codes, session),
        )
    return seed, alice


def _store_grants(
    family: TokenFamily, codes: Sequence[str | None], session: Session
) -> Sequence[int]:
    rows = [
        {
            "application_id": family.application_id,
            "user_id": family.user_id,
            "scopes": family.scopes,
            "redirect_uri": CALLBACK_URL,
            "auth_time": family.moment,
            "code_digest": family.keyring.compute_digest(code) if code else None,
            "code_expires_at": family.moment + _LIFETIME,
            "created_at": family.moment,
        }
        for code in codes
    ]
    stored = session.scalars(insert(Authorization).returning(Authorization.id), rows)
    return stored.all()


def store_pairs(
    family: TokenFamily, kind: CredentialType, count: int, session: Session
) -> Sequence[str]:
    """Store token pairs, each with its own grant, and return the tokens of one kind."""
    digest = family.keyring.compute_digest
    pairs = [
        {
            each: generate_credential(each)
            for each in (CredentialType.ACCESS_TOKEN, CredentialType.REFRESH_TOKEN)
        }
        for _ in range(count)
    ]
    grants = _store_grants(family, [None] * count, session)
    rows = [
        {
            "authorization_id": grant,
            "application_id": family.application_id,
            "user_id": family.user_id,
            "digest": digest(pair[CredentialType.ACCESS_TOKEN]),
            "refresh_digest": digest(pair[CredentialType.REFRESH_TOKEN]),
            "scopes": family.scopes,
            "created_at": family.moment,
            "expires_at": family.moment + _LIFETIME,
            "key_thumbprint": family.key_thumbprint,
        }
        for grant, pair in zip(grants, pairs, strict=True)
    ]
    session.execute(insert(AccessToken), rows)
    return [pair[kind] for pair in pairs]


def _store_codes(family: TokenFamily, count: int, session: Session) -> Sequence[str]:
    codes = [generate_credential(CredentialType.AUTHORIZATION_CODE) for _ in range(count)]
    _store_grants(family, codes, session)
    return codes


def _store_device_codes(family: TokenFamily, count: int, session: Session) -> Sequence[str]:
    codes = [generate_random_hex(32) for _ in range(count)]
    rows = [
        {
            "application_id": family.application_id,
            "scopes": "read_user",
            "device_code_digest": family.keyring.compute_digest(code),
            "user_code_digest": family.keyring.compute_digest(generate_random_hex(8)),
            "created_at": family.moment,
            "expires_at": family.moment + _LIFETIME,
            "interval": 5,
        }
        for code in codes
    ]
    session.execute(insert(DeviceAuthorization), rows)
    return codes
