"""Actions of administrators on accounts; the last administrator always remains."""

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from domain.access.actor import OPERATOR, AccessMethod, Actor, UnitOfWork
from domain.accounts.account_lists import (
    AccountFilter,
    count_accounts,
    fetch_account_page,
    get_account_details,
)
from domain.accounts.administration import (
    generate_password,
    get_account,
    lock_account,
    replace_password,
    unlock_account,
)
from domain.accounts.attempt_counters import AttemptLimit
from domain.accounts.email_addresses import AccountMessageBuilder
from domain.accounts.lifecycle.actions import change_user, create_user
from domain.accounts.passwords import check_password
from domain.accounts.types import AccountBody, AccountChangeBody, NewAccount
from domain.accounts.users import SignInAttempt, authenticate_user
from domain.core.database.pagination import KeysetRange
from domain.core.errors import ConflictError, NotFoundError, TooManyAttemptsError
from domain.core.keyring import Keyring
from models import Passkey, User
from tests.support.database.work import work_in
from tests.support.sign_in.password_rules import QUICK, RULES

pytestmark = pytest.mark.one_database("sqlite")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEYRING = Keyring("a master secret that only this test has")
LETTERHEAD = AccountMessageBuilder(
    instance_name="Gatebell",
    base_url="https://gate.example",
    keyring=KEYRING,
    has_mail_server=False,
)
A_PAGE = KeysetRange(size=50)


BASE = "https://gate.example"


def work(session: Session, by: int | None = None) -> UnitOfWork:
    """Return the unit of work of an administrator, or of the operator."""
    actor = Actor(means=AccessMethod.PAGE, id=by, is_admin=True) if by else OPERATOR
    policies = (KEYRING, LETTERHEAD, RULES)
    return work_in(session, actor=actor, now=NOON, policies=policies)


def account(session: Session, name: str, *, is_admin: bool = False, by: int | None = None) -> User:
    body = AccountBody(
        username=name, email=f"{name}@people.example", admin=is_admin, force_random_password=True
    )
    return session.get_one(User, create_user(work(session, by), body).id)


def unmake_administrator(unit: UnitOfWork, user_id: int) -> None:
    change_user(unit, user_id, AccountChangeBody(admin=False))


def bot(session: Session) -> User:
    made = account(session, "bot")
    made.kind = "bot"
    return made


def test_a_generated_password_has_to_be_changed_at_the_first_sign_in(session: Session) -> None:
    root = account(session, "root", is_admin=True)
    # Nearly every random password contains a username of one letter.
    body = AccountBody(
        username="a", email="a@people.example", name="Anna", force_random_password=True
    )
    made = create_user(work(session, root.id), body)
    assert isinstance(made, NewAccount)
    stored = session.get_one(User, made.id)
    assert check_password(made.generated_password, stored.password_hash, QUICK).is_right
    assert stored.must_change_password


def test_a_generated_password_does_not_contain_the_name() -> None:
    assert not any("e" in generate_password("E") for _ in range(50))


@pytest.mark.both_databases
def test_the_last_administrator_cannot_be_locked_or_demoted(session: Session) -> None:
    only = account(session, "only", is_admin=True)
    account(session, "somebody")
    for refuse in (lock_account, unmake_administrator):
        with pytest.raises(ConflictError, match="last active administrator"):
            refuse(work(session), only.id)
    assert (only.is_admin, only.state) == (True, "active")


def test_an_administrator_who_cannot_sign_in_does_not_count(session: Session) -> None:
    only, other = (account(session, name, is_admin=True) for name in ("only", "other"))
    lock_account(work(session, only.id), other.id)
    with pytest.raises(ConflictError):
        unmake_administrator(work(session), only.id)
    # Locked administrators do not count, so they can lose the administration.
    unmake_administrator(work(session, only.id), other.id)
    assert not other.is_admin


@pytest.mark.both_databases
def test_one_of_two_administrators_who_lock_each_other_remains(engine: Engine) -> None:
    with Session(engine) as session:
        anna, bert = (account(session, name, is_admin=True).id for name in ("anna", "bert"))
        session.commit()

    def lock_back() -> bool:
        with Session(engine) as session:
            try:
                lock_account(work(session, bert), anna)
            except ConflictError:
                return False
            session.commit()
            return True

    with ThreadPoolExecutor(1) as other, Session(engine) as session:
        lock_account(work(session, anna), bert)
        locking_back = other.submit(lock_back)
        # The second transaction waits, since it must see the changes of the first one.
        assert not wait([locking_back], timeout=1).done
        session.commit()
        assert not locking_back.result(timeout=30)

    with Session(engine) as session:
        assert count_accounts(session=session).locked == 1


def test_administrators_cannot_lock_or_demote_themselves(session: Session) -> None:
    me, _other = (account(session, name, is_admin=True) for name in ("me", "other"))
    for refuse in (lock_account, unmake_administrator):
        with pytest.raises(ConflictError, match=r"other administrator"):
            refuse(work(session, me.id), me.id)


def test_a_bot_cannot_have_a_password_or_be_an_administrator(session: Session) -> None:
    robot = bot(session)
    with pytest.raises(ConflictError, match="Bots have no password"):
        change_user(work(session), robot.id, AccountChangeBody(admin=True))
    with pytest.raises(ConflictError, match="Bots have no password"):
        replace_password(work(session), robot.id)
    lock_account(work(session), robot.id)
    assert robot.state == "locked"


def test_an_outdated_hash_is_replaced_at_the_next_sign_in(
    session: Session,
) -> None:
    user = account(session, "dora")
    password = replace_password(work(session), user.id)
    before = user.password_hash
    dearer = replace(QUICK, passes=QUICK.passes + 1)
    limit = AttemptLimit(subject="any", attempts=9, window=timedelta(hours=1))

    def try_password(password: str) -> bool:
        found = SignInAttempt(
            login="Dora", password=password, account_limit=limit, address_limit=limit, cost=dearer
        )
        return authenticate_user(found, session=session, keyring=KEYRING, now=NOON) is not None

    assert not try_password("wrong")
    assert user.password_hash == before
    assert try_password(password)
    assert user.password_hash != before
    assert f"t={dearer.passes}," in user.password_hash
    assert try_password(password)


@pytest.mark.long
@pytest.mark.both_databases
def test_a_new_password_resets_the_limit_of_failed_attempts(session: Session) -> None:
    user = account(session, "carla")

    def try_password(password: str) -> bool:
        limits = [
            AttemptLimit(subject=subject, attempts=2, window=timedelta(hours=1))
            for subject in ("account", "address")
        ]
        found = SignInAttempt(
            login="Carla",
            password=password,
            account_limit=limits[0],
            address_limit=limits[1],
            cost=QUICK,
        )
        return authenticate_user(found, session=session, keyring=KEYRING, now=NOON) is not None

    assert not try_password("wrong")
    password = replace_password(work(session), user.id)
    assert try_password(password)
    assert not try_password("wrong")
    assert check_password(password, user.password_hash, QUICK).is_right
    with pytest.raises(TooManyAttemptsError):
        [try_password("wrong") for _ in range(3)]
    unlock_account(work(session), user.id)
    assert user.state == "active"


@pytest.mark.both_databases
@pytest.mark.parametrize("user_id", [0, 99, 2**70])
def test_an_unknown_user_is_not_found(session: Session, user_id: int) -> None:
    with pytest.raises(NotFoundError):
        get_account(user_id, session=session)


@pytest.mark.long
@pytest.mark.both_databases
def test_accounts_are_counted_and_listed_by_group(session: Session) -> None:
    root, guarded, locked = (
        account(session, name, is_admin=name != "locked") for name in ("root", "guarded", "locked")
    )
    robot = bot(session)
    session.add(
        Passkey(
            user_id=guarded.id, name="Key", credential_id=b"1", public_key=b"1", sign_count=0,
            transports="", created_at=NOON, last_used_at=None,
        )
    )  # fmt: skip
    lock_account(work(session, root.id), locked.id)
    session.flush()
    counts = count_accounts(session=session)
    assert (counts.people, counts.administrators, counts.locked, counts.bots) == (3, 2, 1, 1)
    assert counts.unguarded_administrators == 1

    def names(group: str, search: str = "") -> list[str]:
        wanted = AccountFilter(group=group, search=search)
        page = fetch_account_page(wanted, A_PAGE, session=session, base_url=BASE)
        return [each.username for each in page.items]

    assert names("people") == ["locked", "guarded", "root"]
    assert names("administrators", "GUARD") == ["guarded"]
    assert names("bots") == [robot.username]
    assert names("people", "%") == []
    page = get_account_details(guarded.id, session=session, now=NOON, base_url=BASE)
    assert page.two_factor_enabled
    assert session.scalar(select(func.count(User.id))) == 4
