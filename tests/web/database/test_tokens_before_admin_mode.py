"""Tests that the upgrade to the scope `admin_mode` keeps the rights of existing tokens."""

from collections.abc import Callable
from datetime import timedelta

from flask import Flask
from sqlalchemy import select

from domain.core.clock import read_system_clock
from models import AccessToken, PersonalAccessToken, User
from web.database.schema import get_newest_known_revision, migrate_to_revision
from web.extensions import db
from web.settings.environment import Settings

_BEFORE = "0062"


def add_tokens(name: str, number: int, *, is_admin: bool) -> None:
    """Store an account with a live token of each kind, and with one revoked token."""
    now = read_system_clock()
    user = User(
        username=name,
        email=f"{name}@people.example",
        name=name,
        password_hash="none that anybody could give",
        is_admin=is_admin,
        created_at=now,
    )
    db.session.add(user)
    db.session.flush()
    for kind, revoked_at in enumerate((None, now)):
        digest = bytes([number, kind]) * 16
        shared = {"user_id": user.id, "digest": digest, "scopes": "api", "created_at": now}
        ends = now + timedelta(days=9)
        db.session.add(AccessToken(**shared, expires_at=ends, revoked_at=revoked_at))
        db.session.add(
            PersonalAccessToken(**shared, name="x", expires_at=ends, revoked_at=revoked_at)
        )


def test_live_tokens_of_administrators_keep_their_rights(
    make_app: Callable[[Settings], Flask], settings: Settings
) -> None:
    with make_app(settings).app_context():
        add_tokens("root", 1, is_admin=True)
        add_tokens("alice", 2, is_admin=False)
        db.session.commit()
        db.session.remove()
        db.engine.dispose()
    migrate_to_revision(settings, _BEFORE)
    migrate_to_revision(settings, get_newest_known_revision())
    with make_app(settings).app_context():
        for table in (AccessToken, PersonalAccessToken):
            found = db.session.execute(
                select(User.username, table.revoked_at.is_(None), table.keeps_admin_mode)
                .join(User, User.id == table.user_id)
                .order_by(table.id)
            ).all()
            assert [tuple(map(bool, row[1:])) for row in found] == [
                (True, True),
                (False, False),
                (True, False),
                (False, False),
            ]
