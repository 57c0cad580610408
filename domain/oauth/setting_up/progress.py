"""How far an application has come: waiting, authorized by somebody, holding tokens."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.oauth.clients.types import ApplicationView
from models import AccessToken, Authorization, User

#: Older authorizations may have been pruned, so the first one is not known any more.
_KNOWN_FOR = timedelta(days=30)
#: With one of them an application reads who its user is.
_IDENTIFYING = frozenset({"api", "read_api", "read", "read_user", "openid", "profile", "email"})


class Stage(StrEnum):
    """The stages of the set-up."""

    #: No user has authorized it.
    WAITING = "waiting"
    #: Somebody has, and it fetched no token.
    AUTHORIZED = "authorized"
    WORKING = "working"


@dataclass(frozen=True, kw_only=True)
class FirstAuthorization:
    """The first time that a user let an application in."""

    at: datetime
    #: None where the viewer may not know who it was.
    username: str | None
    is_viewer: bool


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far an application has come."""

    stage: Stage
    #: None if it is long ago.
    first: FirstAuthorization | None


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """Who looks at the application."""

    user_id: int
    sees_everybody: bool


def progress_of(
    application: ApplicationView, *, viewer: Viewer, session: Session, now: datetime
) -> Progress:
    """Return how far an application has come, with what the viewer may know."""
    token = select(AccessToken.id).where(AccessToken.application_id == application.id).limit(1)
    is_new = application.created_at > now - _KNOWN_FOR
    row = _first(application.id, session=session) if is_new else None
    first = None if row is None else _view(*row, viewer=viewer)
    # Tokens of an older application may have been pruned.
    was_used = not is_new and application.last_used_at is not None
    if was_used or session.scalar(token) is not None:
        return Progress(stage=Stage.WORKING, first=first)
    return Progress(stage=Stage.WAITING if first is None else Stage.AUTHORIZED, first=first)


def _first(application_id: int, *, session: Session) -> tuple[Authorization, User] | None:
    # `+ 0` keeps the planner from walking the primary key for an application without any.
    first_id = select(func.min(Authorization.id + 0)).where(
        Authorization.application_id == application_id
    )
    found = session.execute(
        select(Authorization, User)
        .join(User, User.id == Authorization.user_id)
        .where(Authorization.id == first_id.scalar_subquery())
    ).first()
    return None if found is None else (found[0], found[1])


def _view(authorization: Authorization, user: User, *, viewer: Viewer) -> FirstAuthorization:
    is_viewer = user.id == viewer.user_id
    # What the owner's application could read anyway.
    is_known = bool(_IDENTIFYING & set(authorization.scopes.split()))
    may_know = is_viewer or viewer.sees_everybody or is_known
    return FirstAuthorization(
        at=authorization.created_at,
        username=user.username if may_know else None,
        is_viewer=is_viewer,
    )
