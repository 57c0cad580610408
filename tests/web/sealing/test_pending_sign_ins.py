"""Tests of the pending sign-in between password and second factor."""

from collections.abc import Iterator

import pytest
from flask import Flask, session
from itsdangerous import TimestampSigner

from domain.accounts.factors.second_factors import delete_second_factors
from domain.accounts.sign_in.sessions import PASSWORD_METHODS, Authentication
from domain.accounts.users import NewUser, build_user_view, create_user
from models import TotpDevice, User
from tests.support.accounts.people import now
from tests.support.sign_in.password_rules import RULES
from web.extensions import db
from web.sealing.pending_sign_ins import (
    begin_pending_sign_in,
    consume_pending_sign_in,
    find_pending_sign_in,
)

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture
def charlie(app: Flask) -> Iterator[User]:
    """Store a user with an authenticator app, whose session is the current one."""
    new = NewUser(
        username="charlie",
        email="charlie@people.example",
        name="Charlie",
        password="rain on tin roofs",
    )
    with app.test_request_context():
        user = create_user(new, session=db.session(), now=now(), rules=RULES)
        device = TotpDevice(
            user_id=user.id, seed_ciphertext="", created_at=now(), confirmed_at=now()
        )
        db.session.add(device)
        db.session.flush()
        yield db.session.get_one(User, user.id)
        db.session.rollback()


def _password_of(user: User) -> Authentication:
    return Authentication(user_id=user.id, methods=PASSWORD_METHODS)


@pytest.mark.both_databases
def test_a_pending_sign_in_is_found_until_it_is_consumed(charlie: User) -> None:
    session["left over"] = "from before"
    begin_pending_sign_in(build_user_view(charlie), _password_of(charlie))
    assert "left over" not in session
    pending = find_pending_sign_in()
    assert pending is not None
    assert pending.user == build_user_view(charlie)
    assert [consume_pending_sign_in(pending) for _ in range(2)] == [True, False]


def test_a_pending_sign_in_lasts_ten_minutes(
    charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_pending_sign_in(build_user_view(charlie), _password_of(charlie))
    now_in_seconds = now().timestamp()
    for minutes, is_good in ((9, True), (11, False)):
        later = int(now_in_seconds + minutes * 60)
        monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _signer, at=later: at)
        assert (find_pending_sign_in() is not None) is is_good


def test_a_pending_sign_in_ends_with_a_password_change(charlie: User) -> None:
    begin_pending_sign_in(build_user_view(charlie), _password_of(charlie))
    charlie.password_changed_at = now()
    assert find_pending_sign_in() is None


def test_a_pending_sign_in_ends_if_the_account_cannot_sign_in(charlie: User) -> None:
    begin_pending_sign_in(build_user_view(charlie), _password_of(charlie))
    for field, value in (("state", "locked"), ("kind", "bot")):
        before = getattr(charlie, field)
        setattr(charlie, field, value)
        assert find_pending_sign_in() is None, field
        setattr(charlie, field, before)
    assert find_pending_sign_in() is not None


def test_a_pending_sign_in_ends_if_the_user_has_no_second_factor(charlie: User) -> None:
    begin_pending_sign_in(build_user_view(charlie), _password_of(charlie))
    delete_second_factors(charlie.id, session=db.session())
    assert find_pending_sign_in() is None


@pytest.mark.long
@pytest.mark.usefixtures("charlie")
def test_unsealed_values_are_not_a_pending_sign_in() -> None:
    for text in ("", "x", "e30.x.y", "\x00", "🔔"):
        session["two_factor"] = text
        assert find_pending_sign_in() is None, text
