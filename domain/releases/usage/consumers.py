"""Consumers whose calls are counted: tokens, applications, users and anonymous callers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.users import BOT
from domain.core.labeled_enums import LabeledEnum
from domain.oauth.personal_tokens.token_lists import is_personal_token_usable
from models import Application, Bot, Group, PersonalAccessToken, Project, User


class ConsumerKind(LabeledEnum):
    """The kind of an API consumer. The values of the members are used in the API."""

    PERSONAL_TOKEN = "personal_access_token", "Personal access token"
    RESOURCE_TOKEN = "resource_access_token", "Project or group access token"
    APPLICATION = "application", "Application"
    PASSWORD = "password", "Password or browser session"
    ANONYMOUS = "anonymous", "Requests without a token"


@dataclass(frozen=True, kw_only=True)
class ConsumerView:
    """A consumer of the API, with its name and owner."""

    kind: ConsumerKind
    #: ID of the application, token or user. For a rotated token, it is the ID of the newest token.
    #: None for anonymous callers.
    id: int | None
    name: str
    #: Username of the owner, or path of the project or group that owns the consumer. Empty if there
    #: is no owner.
    owner: str
    #: ID of the user who owns the consumer, if any.
    owner_id: int | None = None
    #: ID of the group or project to which an access token belongs.
    group_id: int | None = None
    project_id: int | None = None
    #: True if the consumer can still make calls.
    is_live: bool = True


_ANONYMOUS_CONSUMER = ConsumerView(
    kind=ConsumerKind.ANONYMOUS, id=None, name=ConsumerKind.ANONYMOUS.label, owner=""
)


class CallerKey(NamedTuple):
    """The columns of a stored count that identify the caller."""

    user_id: int | None
    application_id: int | None
    personal_token_id: int | None


def build_consumer_lookup(
    callers: Iterable[CallerKey], *, session: Session, now: datetime
) -> Callable[[CallerKey], ConsumerView]:
    """Return a function that maps a caller to its consumer.

    A token and the tokens that replaced it by rotation count as the same consumer.
    """
    known = set(callers)
    applications = _find_applications({each.application_id for each in known}, session)
    tokens = _find_tokens({each.personal_token_id for each in known}, session, now)
    passwords = _find_password_users(
        {each.user_id for each in known if each == CallerKey(each.user_id, None, None)}, session
    )

    def find_consumer(caller: CallerKey) -> ConsumerView:
        if caller.application_id is not None:
            return applications[caller.application_id]
        if caller.personal_token_id is not None:
            return tokens[caller.personal_token_id]
        return _ANONYMOUS_CONSUMER if caller.user_id is None else passwords[caller.user_id]

    return find_consumer


def _find_applications(ids: set[int | None], session: Session) -> Mapping[int, ConsumerView]:
    rows = session.execute(
        select(
            Application.id, Application.name, Application.is_instance_wide, User.id, User.username
        )
        .outerjoin(User, User.id == Application.owner_id)
        .where(Application.id.in_(ids - {None}))
    )
    return {
        number: ConsumerView(
            kind=ConsumerKind.APPLICATION,
            id=number,
            name=name,
            owner="" if is_instance_wide else username or "",
            owner_id=None if is_instance_wide else owner_id,
        )
        for number, name, is_instance_wide, owner_id, username in rows
    }


def _find_tokens(
    ids: set[int | None], session: Session, now: datetime
) -> Mapping[int, ConsumerView]:
    rows = session.execute(
        select(PersonalAccessToken, User, Bot.group_id, Bot.project_id, Group.path, Project.path)
        .join(User, User.id == PersonalAccessToken.user_id)
        .outerjoin(Bot, Bot.user_id == User.id)
        .outerjoin(Group, Group.id == Bot.group_id)
        .outerjoin(Project, Project.id == Bot.project_id)
        .where(PersonalAccessToken.id.in_(_add_rotated_tokens(ids, session)))
        .order_by(PersonalAccessToken.id)
    ).all()
    newest: dict[int, ConsumerView] = {}
    for token, user, group_id, project_id, group_path, project_path in rows:
        is_bot = user.kind == BOT
        newest[token.family_id or token.id] = ConsumerView(
            kind=ConsumerKind.RESOURCE_TOKEN if is_bot else ConsumerKind.PERSONAL_TOKEN,
            id=token.id,
            name=token.name,
            owner=(project_path or group_path or "") if is_bot else user.username,
            owner_id=None if is_bot else user.id,
            group_id=group_id,
            project_id=project_id,
            is_live=is_personal_token_usable(token, now),
        )
    return {row[0].id: newest[row[0].family_id or row[0].id] for row in rows}


def _add_rotated_tokens(ids: set[int | None], session: Session) -> set[int]:
    """Return the given token IDs and the IDs of all tokens that are related by rotation."""
    asked = {each for each in ids if each is not None}
    families = session.scalars(
        select(PersonalAccessToken.family_id).where(
            PersonalAccessToken.id.in_(asked), PersonalAccessToken.family_id.is_not(None)
        )
    ).all()
    first = asked.union(each for each in families if each is not None)
    rotated = session.scalars(
        select(PersonalAccessToken.id).where(PersonalAccessToken.family_id.in_(first))
    ).all()
    return first.union(rotated)


def _find_password_users(ids: set[int | None], session: Session) -> Mapping[int, ConsumerView]:
    rows = session.execute(select(User.id, User.username).where(User.id.in_(ids - {None})))
    return {
        number: ConsumerView(
            kind=ConsumerKind.PASSWORD,
            id=number,
            name=ConsumerKind.PASSWORD.label,
            owner=username,
            owner_id=number,
        )
        for number, username in rows
    }
