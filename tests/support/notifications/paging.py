"""Users, alerts and pages in a new database, with a clock that tests set."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.core.keyring import Keyring
from domain.paging.notifications.contact_types.base import ContactAddress
from domain.paging.notifications.contact_types.mail import parse_email_address
from domain.paging.notifications.contacts import (
    Contact,
    ContactOwner,
    NewContact,
    build_contact,
    create_contact,
)
from domain.paging.notifications.page_queue import NewPage, cancel_pages, queue_pages
from domain.projects.namespace_changes import create_group, create_project
from models import Alert, AlertNote, Mail, Member, Page, PageMessage, User
from models import Contact as ContactRow
from tests.support.database.kept_jobs import KeptJobs
from tests.support.mail.mail_server import Mailbox
from tests.support.mail.stored_texts import decrypt_mails
from web.database.engine import open_engine
from web.jobs.paging import PagingJob
from web.settings.environment import Settings

#: Time that cannot be mistaken for the current time.
EVENING = datetime(2026, 3, 1, 20, tzinfo=UTC)


@dataclass(frozen=True)
class Person:
    id: int
    username: str
    contact: Contact | None


class Pages:
    """Projects with alerts, users who are paged, and workers that run on request.

    The project acme/shop exists from the beginning.
    """

    def __init__(self, settings: Settings, mail_port: int | None = None) -> None:
        changes: dict[str, Any] = {"outgoing_contact_hosts": "127.0.0.1:1-65535"}
        if mail_port is not None:
            changes["mail_url"] = f"smtp://127.0.0.1:{mail_port}"
        self.settings = replace(settings, **changes)
        self.now = EVENING
        self.engine = open_engine(settings)
        self.keyring = Keyring(settings.secret_key)
        with self.session() as session:
            create_group("acme", reserved=frozenset(), session=session, now=self.now)
        self.project_id = self.project("acme/shop")
        self._iid = 0
        self.kept = KeptJobs()

    def close(self) -> None:
        """Stop the workers, and close the database."""
        self.kept.close()
        self.engine.dispose()

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a transaction."""
        with Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    def project(self, path: str) -> int:
        with self.session() as session:
            made = create_project(
                path, visibility="private", reserved=frozenset(), session=session, now=self.now
            )
            assert made.project_id is not None
            return made.project_id

    def person(
        self, username: str, *, role: Role | None = Role.DEVELOPER, has_contact: bool = True
    ) -> Person:
        """Create a member of acme/shop with a confirmed email contact."""
        with self.session() as session:
            user = User(
                username=username,
                email=f"{username}@accounts.example",
                name=username.capitalize(),
                password_hash="none",
                created_at=self.now,
            )
            session.add(user)
            session.flush()
            if role is not None:
                session.add(
                    Member(
                        user_id=user.id,
                        project_id=self.project_id,
                        role=int(role),
                        created_at=self.now,
                    )
                )
        contact = self.email_contact(user.id, f"{username}@pager.example") if has_contact else None
        return Person(user.id, username, contact)

    def email_contact(self, user_id: int, address: str) -> Contact:
        return self.contact(ContactOwner(user_id=user_id), parse_email_address(address))

    def contact(self, owner: ContactOwner, address: ContactAddress, **changes: Any) -> Contact:
        new = NewContact(owner=owner, address=address, **{"is_confirmed": True, **changes})
        with self.session() as session:
            return create_contact(new, session=session, keyring=self.keyring, now=self.now)

    def alert(self, title: str = "Disk full", **changes: Any) -> int:
        """Store a firing alert and return its id."""
        return self.alerts(1, title=title, **changes)[0]

    def alerts(self, count: int, *, title: str = "Disk full {}", **changes: Any) -> list[int]:
        """Store firing alerts with numbers in their titles, and return their ids."""
        rows = []
        for _ in range(count):
            self._iid += 1
            given = {
                "project_id": self.project_id,
                "iid": self._iid,
                "status": "triggered",
                "severity": 0,
                "title": title.format(self._iid),
                "started_at": self.now,
                "last_event_at": self.now,
                "created_at": self.now,
            }
            rows.append(Alert(**{**given, **changes}))
        with self.session() as session:
            session.add_all(rows)
        return [row.id for row in rows]

    def page(self, alert_ids: Sequence[int], *people: Person, **changes: Any) -> int:
        """Queue a page of each alert for each user, and return the number of new pages."""
        pages = [
            NewPage(
                key=f"step 1 of {alert_id} to {person.id}",
                project_id=self.project_id,
                alert_id=alert_id,
                user_id=person.id,
                **changes,
            )
            for alert_id in alert_ids
            for person in people
        ]
        return self.queue(pages)

    def queue(self, pages: Sequence[NewPage]) -> int:
        with self.session() as session:
            return queue_pages(pages, session=session, now=self.now)

    def set_status(self, alert_ids: Sequence[int], status: str, by: Person | None = None) -> None:
        """Change the status of alerts as a user or a report does, and cancel their pages."""
        with self.session() as session:
            session.execute(update(Alert).where(Alert.id.in_(alert_ids)).values(status=status))
            if by is not None:
                session.add_all(
                    AlertNote(
                        alert_id=alert_id,
                        user_id=by.id,
                        user_name=by.username,
                        kind="status",
                        text=status,
                        created_at=self.now,
                    )
                    for alert_id in alert_ids
                )
            session.flush()
            cancel_pages(alert_ids, session=session, now=self.now)

    def worker(self, **changes: Any) -> PagingJob:
        """Create a worker, as each host has one."""
        return self._make_worker(replace(self.settings, **changes))

    def _make_worker(self, settings: Settings) -> PagingJob:
        return PagingJob(settings, clock=lambda: self.now, share=lambda: 1.0)

    def _kept_worker(self, **changes: Any) -> PagingJob:
        return self.kept.get("pages", replace(self.settings, **changes), self._make_worker)

    def run(self, **changes: Any) -> None:
        """Batch and send due pages."""
        self._kept_worker(**changes).process_all_due_work()

    def run_for(self, seconds: float, **changes: Any) -> None:
        """Let time pass with a worker that runs each second."""
        worker = self._kept_worker(**changes)
        for _ in range(round(seconds)):
            self.now += timedelta(seconds=1)
            worker.process_all_due_work()

    def wait(self, **time: float) -> None:
        self.now += timedelta(**time)

    def contact_state(self, contact: Contact) -> Contact:
        with self.session() as session:
            return build_contact(session.get_one(ContactRow, contact.id))

    def rows(self, table: type[Any]) -> list[Any]:
        with self.session() as session:
            found = list(session.scalars(select(table).order_by(table.id)))
            return decrypt_mails(found, self.settings.secret_key) if table is Mail else found

    def waiting_messages(self) -> list[PageMessage]:
        return [row for row in self.rows(PageMessage) if row.ended_at is None]

    def waiting_pages(self) -> list[Page]:
        rows = self.rows(Page)
        return [row for row in rows if row.batch_id is None and row.withdrawn_at is None]

    def activity(self, alert_id: int) -> list[tuple[str, str, str]]:
        """Return kind, name and text of each entry of an alert's activity."""
        return [
            (row.kind, row.user_name, row.text)
            for row in self.rows(AlertNote)
            if row.alert_id == alert_id
        ]


def subjects(mailbox: Mailbox) -> list[str]:
    return [str(each["Subject"]) for each in mailbox.messages]


#: Function that creates the pages of a database, with or without a mail server.
MakePages = Callable[..., Pages]
