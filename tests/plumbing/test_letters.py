"""Letters about tokens that end: who gets them, and that each is written once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from domain.accounts.roles import Role
from domain.oauth.personal_tokens.resource_tokens import TokenRequest, create_resource_token
from domain.oauth.personal_tokens.tokens import TokenDetails
from domain.projects import creation
from domain.projects.members import OPERATOR, add_member, get_place
from domain.upkeep.pruning import Retention, prune
from models import PersonalAccessToken
from tests.support.letter_office import DAY, MADE, NOON, Office, write
from tests.support.mail_server import Mailbox, running_mail_server
from web.settings.reader import Settings


@pytest.fixture
def office(settings: Settings) -> Iterator[Office]:
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        opened = Office(settings, mailbox, port)
        yield opened
        opened.engine.dispose()


def test_a_letter_tells_the_owner_what_ends_and_where_to_rotate_it(office: Office) -> None:
    alice = office.person("alice", name="Älice Ünal")
    office.token(alice, days=5, name="Größe ≥ 3 🚀")

    assert office.write() == 1
    office.send()

    (letter,) = office.mailbox.letters
    assert office.mailbox.recipients == [["alice@people.example"]]
    assert letter["To"] == "alice@people.example"
    assert letter["From"] == "Gatebell <gatebell@localhost>"
    assert letter["Subject"] == "The access token “Größe ≥ 3 🚀” expires on 6 March 2026"
    assert letter["Auto-Submitted"] == "auto-generated"
    text = letter.get_content()
    assert "Hello Älice Ünal," in text
    ends = "expires on 6 March 2026, at 12:00 UTC."
    assert f"Your personal access token “Größe ≥ 3 🚀” {ends}" in text
    assert "It was never used." in text
    assert "http://localhost/-/user_settings/access_tokens" in text


def test_each_notice_is_written_once_and_there_are_two_at_the_most(office: Office) -> None:
    office.token(office.person("alice"), days=7.5)
    written = []
    for _ in range(20):
        written.append(office.write())
        office.send()
        office.now += DAY / 2

    assert sum(written) == 2
    subjects = [letter["Subject"] for letter in office.mailbox.letters]
    assert subjects == [
        "The access token “nightly” expires on 9 March 2026",
        "The access token “nightly” expires within a day",
    ]
    assert {row.next_try_at for row in office.rows()} == {None}


def test_nobody_is_written_to_about_what_they_know_or_need_not_know(office: Office) -> None:
    alice = office.person("alice")
    for days, lifetime in ((8, 90), (5, 7), (5, 8), (0.5, 1), (-1, 90)):
        office.token(alice, days=days, lifetime=lifetime, name=f"{days} of {lifetime}")
    assert office.write(expiring_token_notice_days=7) == 0, office.rows()

    office.token(alice, days=5)
    assert [office.write(expiring_token_notice_days=notice) for notice in (3, 0)] == [0, 0]
    assert office.write(expiring_token_notice_days=7) == 1


def test_who_cannot_sign_in_gets_no_letter(office: Office) -> None:
    for state in ("locked", "blocked"):
        office.token(office.person(state, state=state), days=5)

    assert office.write() == 0


def test_a_revoked_token_is_not_written_about(office: Office) -> None:
    token_id = office.token(office.person("alice"), days=5)
    with Session(office.engine) as session, session.begin():
        session.execute(
            update(PersonalAccessToken)
            .where(PersonalAccessToken.id == token_id)
            .values(revoked_at=office.now)
        )

    assert office.write() == 0


@pytest.mark.parametrize("kind", ["project", "group"])
def test_who_looks_after_a_place_is_told_of_its_tokens(office: Office, kind: str) -> None:
    people = {name: office.person(name) for name in ("owner", "maintainer", "developer", "other")}
    office.person("gone", state="blocked")
    path = "acme/shop" if kind == "project" else "acme"
    with Session(office.engine) as session, session.begin():
        for each in ("acme", "elsewhere"):
            creation.create_group(each, reserved=frozenset(), session=session, now=MADE)
        creation.create_project(
            "acme/shop", visibility="private", reserved=frozenset(), session=session, now=MADE
        )
        for place, name, role in (
            ("acme", "owner", Role.OWNER),
            ("acme", "gone", Role.OWNER),
            ("acme/shop", "maintainer", Role.MAINTAINER),
            ("acme/shop", "developer", Role.DEVELOPER),
            ("elsewhere", "other", Role.OWNER),
        ):
            found = get_place(place, session=session)
            add_member(found, name, role, by=OPERATOR, session=session, now=MADE)
        wanted = TokenRequest(
            details=TokenDetails(name="deploy", scopes="api", expires_at=office.now + 5 * DAY),
            role=Role.OWNER,
            granted_by=Role.OWNER,
        )
        create_resource_token(
            get_place(path, session=session),
            wanted,
            session=session,
            keyring=office.keyring,
            now=MADE,
        )

    office.write()
    office.send()

    told = {address for each in office.mailbox.recipients for address in each}
    names = ("owner", "maintainer") if kind == "project" else ("owner",)
    assert told == {people[name].email for name in names}
    text = office.mailbox.letters[0].get_content()
    page = "acme/shop/-/settings/access_tokens" if kind == "project" else "groups/acme/-/access_tok"
    assert f"The access token of {path} named “deploy”" in text
    assert f"http://localhost/{page}" in text


def test_of_many_workers_at_once_each_letter_is_written_and_sent_by_one(office: Office) -> None:
    for number in range(12):
        office.token(office.person(f"user{number}"), days=5)
    barrier = Barrier(4)

    def work(_number: int) -> None:
        barrier.wait(timeout=60)
        office.write()
        office.send()

    with ThreadPoolExecutor(4) as workers:
        list(workers.map(work, range(4)))
    office.send()

    told = sorted(address for each in office.mailbox.recipients for address in each)
    assert told == sorted(f"user{number}@people.example" for number in range(12))


def test_old_letters_are_removed(office: Office) -> None:
    write(office)
    office.send()
    retention = Retention(keep_deliveries=10, keep_for=DAY)
    for later, left in ((89 * DAY, 1), (91 * DAY, 0)):
        with Session(office.engine) as session:
            prune(retention, session=session, now=NOON + later, between=session.commit)
        assert len(office.rows()) == left
