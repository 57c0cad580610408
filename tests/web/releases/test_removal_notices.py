"""Tests of email before a release to owners of affected traffic, once for each change."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from domain.access.roles import Role
from domain.accounts.users import UserView
from domain.projects.members import OPERATOR_VIEWER, add_member
from domain.releases.usage.call_counts import ANONYMOUS_CONSUMER, Consumer
from models import Application, Mail, Member, PersonalAccessToken, User
from tests.support.accounts.namespaces import get_namespace
from tests.support.mail.stored_texts import list_stored_mails
from tests.support.releases.recorded_calls import RecordedService
from web.jobs.mail import queue_release_removal_mail

pytestmark = [pytest.mark.spec("M5"), pytest.mark.one_database("sqlite")]
#: The clock starts at noon on 1 March.
DATES = "16.0=2026-03-20, 17.0=2026-04-20"
LEVEL = {"operations_access_level": "enabled"}
RESET = ("POST", "/api/v4/runners/reset_registration_token")
USERS = ("GET", "/api/v4/users")


def queue(service: RecordedService, **changes: object) -> int:
    settings = replace(service.settings, **{"release_dates": DATES, **changes})  # type: ignore[arg-type]
    return queue_release_removal_mail(settings, clock=lambda: service.now)


def mails(service: RecordedService) -> list[Mail]:
    with service.session() as session:
        return list_stored_mails(session, service.settings.secret_key)


def recipients(service: RecordedService) -> list[str]:
    return [each.recipient.partition("@")[0] for each in mails(service)]


def use(service: RecordedService, owner: UserView, release: str = "16.0") -> None:
    """Make calls that a release breaks, with a new token of the user."""
    service.token_of(owner)("GET", "/user")
    service.flush()
    with service.session() as session:
        token = session.scalars(select(PersonalAccessToken.id).order_by(-PersonalAccessToken.id))
        consumer = Consumer(owner.id, None, token.first())
    change = {"16.0": "deployments-updated-at", "17.0": "users-offset-pagination"}[release]
    service.count(consumer, *USERS, change, calls=3)
    service.flush()


@pytest.mark.long
@pytest.mark.both_databases
def test_an_owner_is_notified_of_the_break_its_date_and_its_replacement(
    service: RecordedService,
) -> None:
    alice = service.person("alice")
    service.project_of(alice)
    nightly = service.token_of(alice)
    nightly("PUT", "/projects/acme%2Fshop", json=LEVEL)
    nightly("GET", "/projects")
    service.flush()

    assert queue(service) == 1
    (mail,) = mails(service)
    assert mail.recipient == "alice@people.example"
    assert mail.subject == "Release 16.0 on 2026-03-20 will break some of your API calls"
    assert "Hello Alice," in mail.text
    assert "* Project attribute operations_access_level removed" in mail.text
    assert "Takes effect in release 16.0 on 2026-03-20." in mail.text
    assert "Instead: Use releases_access_level, " in mail.text
    assert "nightly: 1 call, last on 2026-03-01" in mail.text
    assert "http://localhost/help/releases/operations-access-level" in mail.text
    assert "http://localhost/-/user_settings/api_changes" in mail.text


@pytest.mark.long
@pytest.mark.both_databases
def test_all_due_changes_are_in_one_email_that_is_not_repeated(
    service: RecordedService,
) -> None:
    alice = service.person("alice")
    use(service, alice)
    use(service, alice, "17.0")
    assert queue(service) == 1
    assert "users" not in mails(service)[0].text.casefold().partition("see what calls")[0]
    for _ in range(3):
        service.wait(days=1)
        use(service, alice)
        assert queue(service) == 0

    # Another change causes a message, and so does the next release when its time has come.
    nightly = service.token_of(alice)
    service.project_of(alice)
    nightly("PUT", "/projects/acme%2Fshop", json=LEVEL)
    service.flush()
    assert queue(service) == 1
    service.wait(days=25)
    assert queue(service, release="16.0") == 1
    assert "/users" in mails(service)[-1].text
    assert queue(service, release="16.0") == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"release_dates": ""},
        {"release_dates": "16.0=2026-06-20"},
        {"release_dates": "16.0=2026-02-20"},
        {"release": "16.0"},
        {"removal_notice_days": 0},
        {"removal_notice_days": 10},
    ],
    ids=str,
)
def test_no_email_is_sent_without_a_date_in_the_near_future(
    service: RecordedService, changes: dict[str, object]
) -> None:
    use(service, service.person("alice"))

    assert queue(service, **changes) == 0
    assert queue(service) == 1


@pytest.mark.long
def test_no_email_is_sent_about_past_or_unaffected_traffic(
    service: RecordedService,
) -> None:
    alice, locked = service.person("alice"), service.person("locked")
    use(service, locked)
    use(service, alice)
    service.token_of(service.person("bob"))("GET", "/projects")
    service.count(ANONYMOUS_CONSUMER, *USERS, "deployments-updated-at")
    service.flush()
    with service.session() as session:
        session.execute(update(User).where(User.id == locked.id).values(state="blocked"))
        session.execute(
            update(PersonalAccessToken)
            .where(PersonalAccessToken.user_id == alice.id)
            .values(revoked_at=service.now)
        )
    assert queue(service) == 0

    use(service, alice)
    service.wait(days=40)
    assert queue(service, release_dates="16.0=2026-04-20") == 0


@pytest.mark.both_databases
def test_current_maintainers_are_notified_of_their_project_s_token(
    service: RecordedService,
) -> None:
    people = {name: service.person(name) for name in ("alice", "bob", "carol")}
    service.project_of(people["alice"])
    with service.session() as session:
        shop = get_namespace("acme/shop", session=session)
        for name in ("bob", "carol"):
            add_member(
                shop,
                name,
                Role.MAINTAINER,
                viewer=OPERATOR_VIEWER,
                session=session,
                now=service.now,
            )
    exporter = service.resource_token_of("acme/shop")
    exporter("PUT", "/projects/acme%2Fshop", json=LEVEL)
    service.flush()
    with service.session() as session:
        member = select(Member).where(Member.user_id == people["bob"].id)
        session.delete(session.scalars(member).one())

    assert queue(service) == 2
    assert sorted(recipients(service)) == ["alice", "carol"]


@pytest.mark.long
@pytest.mark.both_databases
def test_the_owner_of_an_application_is_notified_of_calls_of_any_user(
    service: RecordedService,
) -> None:
    root = service.person("root", admin=True)
    alice, bob = service.person("alice"), service.person("bob")
    service.project_of(alice)
    board = service.application_of(bob)
    service.grant(board, alice)("PUT", "/projects/acme%2Fshop", json=LEVEL)
    service.flush()
    assert (queue(service), recipients(service)) == (1, ["bob"])

    with service.session() as session:
        session.get_one(Application, board).owner_id = alice.id
    assert (queue(service), recipients(service)) == (1, ["bob", "alice"])
    with service.session() as session:
        session.get_one(Application, board).is_instance_wide = True
    assert (queue(service), recipients(service)) == (1, ["bob", "alice", root.username])


@pytest.mark.long
@pytest.mark.both_databases
def test_concurrent_workers_write_each_email_once(service: RecordedService) -> None:
    for name in ("alice", "bob"):
        use(service, service.person(name))
    with ThreadPoolExecutor(4) as pool:
        written = list(pool.map(lambda _: queue(service), range(4)))

    assert sum(written) == 2
    assert sorted(recipients(service)) == ["alice", "bob"]
