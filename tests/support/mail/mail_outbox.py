"""The outbox of a new database, and the mail server that receives its messages."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from domain.accounts.users import NewUser, create_user
from domain.core.keyring import Keyring
from domain.delivery.mail.outbox import NewEmail, queue_emails
from domain.oauth.personal_tokens.tokens import TokenDetails, create_personal_token
from models import Mail, User
from tests.support.mail.mail_server import Mailbox
from tests.support.mail.stored_texts import list_stored_mails
from tests.support.sign_in.password_rules import RULES
from web.database.engine import open_engine
from web.jobs.mail import queue_expiry_mail, send_mail
from web.settings.environment import Settings

DAY = timedelta(days=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MADE = NOON - 60 * DAY


class Outbox:
    """The outbox of a database, with a clock that tests set."""

    def __init__(self, settings: Settings, mailbox: Mailbox, port: int) -> None:
        self.mailbox = mailbox
        self.now = NOON
        self.settings = replace(settings, mail_url=f"smtp://127.0.0.1:{port}")
        self.engine = open_engine(settings)
        self.keyring = Keyring(settings.secret_key)

    def person(self, username: str, **changes: Any) -> User:
        new = NewUser(
            username=username,
            email=changes.pop("email", f"{username}@people.example"),
            name=changes.pop("name", username.capitalize()),
            password="a-pass-phrase-of-words",
        )
        with Session(self.engine, expire_on_commit=False) as session, session.begin():
            made = create_user(new, session=session, now=MADE, rules=RULES)
            user = session.get_one(User, made.id)
            for column, value in changes.items():
                setattr(user, column, value)
            return user

    def token(self, user: User, *, days: float, name: str = "nightly", lifetime: int = 90) -> int:
        """Create a token that expires in this number of days."""
        end = self.now + days * DAY
        details = TokenDetails(name=name, scopes="api", expires_at=end)
        with Session(self.engine) as session, session.begin():
            made = create_personal_token(
                user.id, details, session=session, keyring=self.keyring, now=end - lifetime * DAY
            )
            return made.token.id

    def write(self, **changes: Any) -> int:
        return queue_expiry_mail(replace(self.settings, **changes), clock=lambda: self.now)

    def send(self, **changes: Any) -> None:
        send_mail(replace(self.settings, **changes), clock=lambda: self.now)

    def rows(self) -> list[Mail]:
        with Session(self.engine) as session:
            return list_stored_mails(session, self.settings.secret_key)


def write(outbox: Outbox, **changes: str) -> None:
    given: dict[str, Any] = {
        "key": "k",
        "recipient": "alice@people.example",
        "subject": "Hi",
        "text": "Hello",
    }
    message = NewEmail(**{**given, **changes})
    with Session(outbox.engine) as session, session.begin():
        queue_emails([message], session=session, keyring=outbox.keyring, now=outbox.now)
