"""Tests that authorizations without tokens are pruned as soon as their codes are useless."""

from collections import Counter
from datetime import datetime, timedelta

from sqlalchemy import select

from domain.accounts.users import get_user
from domain.core.randomness import generate_random_hex
from models import AccessToken, Authorization
from tests.support.accounts.people import database_of, make_application, make_user, now
from tests.support.service.live import LiveGatebell


def test_authorizations_without_tokens_or_usable_codes_are_pruned(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    client = make_application(gatebell, alice)
    long_ago, lately = now() - timedelta(days=31), now() - timedelta(days=29)
    # Flag for a redeemed code, time of its expiry, and times of the revocations of its tokens.
    grants: dict[str, tuple[bool, datetime, list[datetime | None]]] = {
        "dead": (True, long_ago, [long_ago, long_ago]),
        "one lives": (True, long_ago, [long_ago, None]),
        "revoked lately": (True, long_ago, [lately]),
        "code outlived its token": (True, lately, [long_ago]),
        "never redeemed": (False, long_ago, []),
        "code unused since lately": (False, lately, []),
    }
    ids = {}
    with database_of(gatebell) as session:
        user_id = get_user(alice.username, session=session).id
        family = {"application_id": client.id, "user_id": user_id, "scopes": "read_user"}
        for name, (was_redeemed, expired_at, ends) in grants.items():
            row = Authorization(
                **family,
                auth_time=long_ago,
                created_at=long_ago,
                code_expires_at=expired_at,
                code_used_at=expired_at if was_redeemed else None,
            )
            session.add(row)
            session.flush()
            ids[name] = row.id
            for end in ends:
                digests = {
                    name: generate_random_hex(32).encode()[:32]
                    for name in ("digest", "refresh_digest")
                }
                session.add(
                    AccessToken(
                        **family,
                        **digests,
                        authorization_id=row.id,
                        created_at=long_ago,
                        expires_at=long_ago,
                        revoked_at=end,
                    )
                )
    gatebell.cli("prune")
    with database_of(gatebell) as session:
        kept = set(
            session.scalars(select(Authorization.id).where(Authorization.id.in_(ids.values())))
        )
        tokens = session.scalars(
            select(AccessToken.authorization_id).where(AccessToken.application_id == client.id)
        ).all()
    assert {name for name, each in ids.items() if each in kept} == {
        "one lives",
        "revoked lately",
        "code unused since lately",
    }
    assert Counter(tokens) == Counter([ids["one lives"], ids["revoked lately"]])
