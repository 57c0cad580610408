"""Personal access tokens, stored in the database, and an API client that uses them."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import requests
from sqlalchemy import update

from domain.accounts.users import get_user
from domain.core.keyring import Keyring
from domain.oauth.personal_tokens.tokens import TokenDetails, create_personal_token
from models import PersonalAccessToken
from tests.support.accounts.people import Person, database_of, now, settings_of
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

ADDRESS = "/api/v4/personal_access_tokens"


@dataclass(frozen=True, kw_only=True)
class MadeToken:
    """A token with its value."""

    id: int
    user_id: int
    clear: str = field(repr=False)


def make_token(
    gatebell: LiveGatebell,
    person: Person,
    *,
    name: str = "script",
    scopes: str = "api",
    administers: bool = True,
    lifetime: timedelta = timedelta(days=100),
    **columns: datetime,
) -> MadeToken:
    """Create a token for a user; `columns` are stored without checks.

    A token of an administrator also has `admin_mode`, unless `administers` is false.
    """
    with database_of(gatebell) as session:
        user = get_user(person.username, session=session)
        given = f"{scopes} admin_mode" if user.is_admin and administers else scopes
        made = create_personal_token(
            user.id,
            TokenDetails(name=name, scopes=given, expires_at=now() + lifetime),
            session=session,
            keyring=Keyring(settings_of(gatebell).secret_key),
            now=now(),
        )
        change(gatebell, made.token.id, session=session, **columns)
        return MadeToken(id=made.token.id, user_id=made.token.user_id, clear=made.clear)


def change(
    gatebell: LiveGatebell, token_id: int, *, session: Any = None, **columns: datetime | None
) -> None:
    """Set columns of a token, for example to let it expire."""
    if not columns:
        return
    statement = (
        update(PersonalAccessToken).where(PersonalAccessToken.id == token_id).values(**columns)
    )
    if session is not None:
        session.execute(statement)
        return
    with database_of(gatebell) as own:
        own.execute(statement)


@dataclass(frozen=True)
class Api:
    """A script with a user's token."""

    gatebell: LiveGatebell
    token: str = field(repr=False)

    def send_request(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request below /api/v4 with the token."""
        headers = {"PRIVATE-TOKEN": self.token, **options.pop("headers", {})}
        address = f"{self.gatebell.url}/api/v4{path}"
        return machine(self.gatebell).request(method, address, headers=headers, **options)

    def send_token_request(
        self, method: str = "GET", path: str = "", **options: Any
    ) -> requests.Response:
        """Send a request to the API of personal access tokens."""
        return self.send_request(method, f"/personal_access_tokens{path}", **options)

    def list_token_ids(self, **query: Any) -> list[int]:
        """Return the ids of the tokens in a list."""
        answer = self.send_token_request(params=query)
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.json()]
