"""Tests of messages about expiring tokens: their recipients, and that each is written once."""

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.housekeeping.pruning import Retention, prune_expired_rows
from domain.oauth.personal_tokens.resource_tokens import ResourceTokenRequest, create_resource_token
from domain.oauth.personal_tokens.tokens import TokenDetails
from domain.projects import namespace_changes
from domain.projects.members import OPERATOR_VIEWER, add_member
from models import PersonalAccessToken
from tests.support.accounts.namespaces import get_namespace
from tests.support.mail.mail_outbox import DAY, MADE, NOON, Outbox, write
from tests.support.service.crowd import run_simultaneously

pytestmark = pytest.mark.one_database("sqlite")


def test_a_message_names_the_expiring_token_and_links_to_its_rotation(outbox: Outbox) -> None:
    alice = outbox.person("alice", name="Älice Ünal")
    outbox.token(alice, days=5, name="Größe ≥ 3 🚀")

    assert outbox.write() == 1
    outbox.send()

    (message,) = outbox.mailbox.messages
    assert outbox.mailbox.recipients == [["alice@people.example"]]
    assert message["To"] == "alice@people.example"
    assert message["From"] == "Gatebell <gatebell@localhost>"
    assert message["Subject"] == "The access token “Größe ≥ 3 🚀” expires on 2026-03-06"
    assert message["Auto-Submitted"] == "auto-generated"
    text = message.text
    assert "Hello Älice Ünal," in text
    ends = "expires on 2026-03-06, at 12:00 UTC."
    assert f"Your personal access token “Größe ≥ 3 🚀” {ends}" in text
    assert "It has never been used." in text
    assert "http://localhost/-/user_settings/access_tokens" in text


def test_dates_and_times_of_a_message_are_in_the_recipient_s_time_zone(outbox: Outbox) -> None:
    outbox.token(outbox.person("alice", time_zone="Pacific/Kiritimati"), days=5)
    outbox.write()
    outbox.send()
    (message,) = outbox.mailbox.messages
    assert message["Subject"] == "The access token “nightly” expires on 2026-03-07"
    assert "expires on 2026-03-07, at 02:00 +14:00." in message.text


@pytest.mark.long
@pytest.mark.both_databases
def test_each_token_has_at_most_two_notices(outbox: Outbox) -> None:
    outbox.token(outbox.person("alice"), days=7.5)
    written = []
    for _ in range(20):
        written.append(outbox.write())
        outbox.send()
        outbox.now += DAY / 2

    assert sum(written) == 2
    subjects = [message["Subject"] for message in outbox.mailbox.messages]
    assert subjects == [
        "The access token “nightly” expires on 2026-03-09",
        "The access token “nightly” expires within a day",
    ]
    assert {row.send_at for row in outbox.rows()} == {None}


@pytest.mark.both_databases
def test_no_message_is_sent_about_short_lived_expired_or_later_tokens(outbox: Outbox) -> None:
    alice = outbox.person("alice")
    for days, lifetime in ((8, 90), (5, 7), (5, 8), (0.5, 1), (-1, 90)):
        outbox.token(alice, days=days, lifetime=lifetime, name=f"{days} of {lifetime}")
    assert outbox.write(expiring_token_notice_days=7) == 0, outbox.rows()

    outbox.token(alice, days=5)
    assert [outbox.write(expiring_token_notice_days=notice) for notice in (3, 0)] == [0, 0]
    assert outbox.write(expiring_token_notice_days=7) == 1


@pytest.mark.both_databases
def test_users_who_cannot_sign_in_get_no_message(outbox: Outbox) -> None:
    for state in ("locked", "blocked"):
        outbox.token(outbox.person(state, state=state), days=5)

    assert outbox.write() == 0


def test_a_revoked_token_causes_no_message(outbox: Outbox) -> None:
    token_id = outbox.token(outbox.person("alice"), days=5)
    with Session(outbox.engine) as session, session.begin():
        session.execute(
            update(PersonalAccessToken)
            .where(PersonalAccessToken.id == token_id)
            .values(revoked_at=outbox.now)
        )

    assert outbox.write() == 0


@pytest.mark.both_databases
@pytest.mark.parametrize("kind", ["project", "group"])
def test_maintainers_of_a_namespace_are_notified_of_its_tokens(outbox: Outbox, kind: str) -> None:
    people = {name: outbox.person(name) for name in ("owner", "maintainer", "developer", "other")}
    outbox.person("gone", state="blocked")
    path = "acme/shop" if kind == "project" else "acme"
    with Session(outbox.engine) as session, session.begin():
        for each in ("acme", "elsewhere"):
            namespace_changes.create_group(each, reserved=frozenset(), session=session, now=MADE)
        namespace_changes.create_project(
            "acme/shop", visibility="private", reserved=frozenset(), session=session, now=MADE
        )
        for namespace, name, role in (
            ("acme", "owner", Role.OWNER),
            ("acme", "gone", Role.OWNER),
            ("acme/shop", "maintainer", Role.MAINTAINER),
            ("acme/shop", "developer", Role.DEVELOPER),
            ("elsewhere", "other", Role.OWNER),
        ):
            found = get_namespace(namespace, session=session)
            add_member(found, name, role, viewer=OPERATOR_VIEWER, session=session, now=MADE)
        wanted = ResourceTokenRequest(
            details=TokenDetails(name="deploy", scopes="api", expires_at=outbox.now + 5 * DAY),
            role=Role.OWNER,
        )
        create_resource_token(
            get_namespace(path, session=session),
            wanted,
            viewer=OPERATOR_VIEWER,
            session=session,
            keyring=outbox.keyring,
            now=MADE,
        )

    outbox.write()
    outbox.send()

    told = {address for each in outbox.mailbox.recipients for address in each}
    names = ("owner", "maintainer") if kind == "project" else ("owner",)
    assert told == {people[name].email for name in names}
    text = outbox.mailbox.messages[0].text
    page = "acme/shop/-/settings/access_tokens" if kind == "project" else "groups/acme/-/access_tok"
    assert f"The access token “deploy” of {path}" in text
    assert f"http://localhost/{page}" in text


@pytest.mark.long
@pytest.mark.both_databases
def test_concurrent_workers_write_and_send_each_message_once(outbox: Outbox) -> None:
    for number in range(12):
        outbox.token(outbox.person(f"user{number}"), days=5)

    def work() -> None:
        outbox.write()
        outbox.send()

    run_simultaneously([work] * 4)
    outbox.send()

    told = sorted(address for each in outbox.mailbox.recipients for address in each)
    assert told == sorted(f"user{number}@people.example" for number in range(12))


@pytest.mark.both_databases
def test_old_messages_are_removed(outbox: Outbox) -> None:
    write(outbox)
    outbox.send()
    retention = Retention(keep_deliveries=10, keep_for=DAY)
    for later, left in ((89 * DAY, 1), (91 * DAY, 0)):
        with Session(outbox.engine) as session:
            prune_expired_rows(
                retention, session=session, now=NOON + later, commit_batch=session.commit
            )
        assert len(outbox.rows()) == left
