"""Setup progress and rejected requests of an application, for its owner.

Any client can send requests in the name of an application, since its client_id is public. Only the
newest requests of each reason are stored. This way a flood of one kind neither fills the disk nor
hides other kinds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import bindparam, func, insert, select
from sqlalchemy.orm import Session

from domain.core.database.rows import delete_rows, update_rows
from domain.oauth.applications.types import RefusedRequest
from domain.oauth.clients.types import ApplicationView
from domain.oauth.context import OAuthContext
from domain.oauth.context import RefusedRequest as NewRefusal
from domain.oauth.grants.registry import GRANTS
from domain.oauth.reasons import OTHER, SHARED
from models import AccessToken, Authorization, TokenRefusal, User

#: All reasons by their stored names.
REASONS = {
    each.name: each for each in (*SHARED, *(reason for grant in GRANTS for reason in grant.REASONS))
}
#: Maximum number of stored requests per application and reason.
KEPT = 10
#: Retention time of rejected requests.
KEPT_FOR = timedelta(days=30)
#: Number of rejected requests on the page of an application.
SHOWN = 20
#: Lengths of the database columns.
_LONGEST_ADDRESS, _LONGEST_USER_AGENT = 64, 255

_INSERT = insert(TokenRefusal).returning(TokenRefusal.id)
_SAME = (
    TokenRefusal.application_id == bindparam("of_application"),
    TokenRefusal.reason == bindparam("of_reason"),
)
_TRIM = delete_rows(TokenRefusal).where(
    *_SAME,
    TokenRefusal.id
    <= select(TokenRefusal.id)
    .where(*_SAME)
    .order_by(TokenRefusal.id.desc())
    .offset(KEPT)
    .limit(1)
    .scalar_subquery(),
)
_SKIP = (
    update_rows(TokenRefusal)
    .where(TokenRefusal.id == bindparam("of_row"))
    .values(skipped=TokenRefusal.skipped + bindparam("more"))
)
#: Maximum age of applications whose first authorization is shown; older ones may be pruned.
_KNOWN_FOR = timedelta(days=30)
#: Scopes that let an application identify its users.
IDENTIFYING = frozenset({"api", "read_api", "read", "read_user", "openid", "profile", "email"})


def store_refusal(refused: NewRefusal, *, context: OAuthContext) -> int:
    """Store a rejected request, delete the oldest with the same reason, and return its id."""
    values = {
        "application_id": refused.application_id,
        "reason": refused.reason.name,
        "request": refused.request,
        "error": refused.error,
        "description": refused.description,
        "refused_at": context.now,
        "address": (refused.address or "")[:_LONGEST_ADDRESS] or None,
        "user_agent": (context.source.user_agent or "")[:_LONGEST_USER_AGENT] or None,
        "redirect_uri": refused.redirect_uri,
        "skipped": 0,
    }
    row_id: int = next(iter(context.run(_INSERT, values)))[0]
    same = {"of_application": refused.application_id, "of_reason": refused.reason.name}
    context.run(_TRIM, same)
    return row_id


def flush(counts: Sequence[tuple[int, int]], *, context: OAuthContext) -> None:
    """Add the pending counts to the rows that the sampler returned."""
    for row_id, more in counts:
        context.run(_SKIP, {"of_row": row_id, "more": more})


def list_refusals(
    application_id: int, *, session: Session, offset: int = 0, limit: int = SHOWN
) -> tuple[RefusedRequest, ...]:
    """Return rejected requests of an application, newest first."""
    # Sorting is cheap, since there are at most `KEPT` rows for each reason.
    rows = session.scalars(
        select(TokenRefusal)
        .where(TokenRefusal.application_id == application_id)
        .order_by(TokenRefusal.refused_at.desc(), TokenRefusal.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return tuple(_view(row) for row in rows)


def count_refusals(application_id: int, *, session: Session) -> int:
    """Return the number of stored rejected requests of an application."""
    asked = select(func.count()).where(TokenRefusal.application_id == application_id)
    return session.scalar(asked.select_from(TokenRefusal)) or 0


def _view(row: TokenRefusal) -> RefusedRequest:
    reason = REASONS.get(row.reason, OTHER)  # unknown reasons may come from a newer release
    words = {"title": reason.title, "advice": reason.advice}
    columns = {each.key: getattr(row, each.key) for each in TokenRefusal.__table__.columns}
    return RefusedRequest.model_validate({**columns, **words})


class Stage(StrEnum):
    """The stages of the setup of an application."""

    #: No user has authorized the application.
    WAITING = "waiting"
    #: A user has authorized the application, but it has not fetched a token.
    AUTHORIZED = "authorized"
    WORKING = "working"


@dataclass(frozen=True, kw_only=True)
class FirstAuthorization:
    """The first authorization of an application by a user."""

    at: datetime
    #: User name; None if the viewer may not see it.
    username: str | None
    is_viewer: bool


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The setup progress of an application."""

    stage: Stage
    #: First authorization; None if there is none or the application is old.
    first: FirstAuthorization | None


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """The viewer of the application."""

    user_id: int
    sees_everybody: bool


def progress_of(
    application: ApplicationView, *, viewer: Viewer, session: Session, now: datetime
) -> Progress:
    """Return the setup progress of an application, with details that the viewer may see."""
    token = select(AccessToken.id).where(AccessToken.application_id == application.id).limit(1)
    is_new = application.created_at > now - _KNOWN_FOR
    row = _first(application.id, session=session) if is_new else None
    first = None if row is None else _progress_of(*row, viewer=viewer)
    # Tokens of an older application may have been pruned.
    was_used = not is_new and application.last_used_at is not None
    if was_used or session.scalar(token) is not None:
        return Progress(stage=Stage.WORKING, first=first)
    return Progress(stage=Stage.WAITING if first is None else Stage.AUTHORIZED, first=first)


def _first(application_id: int, *, session: Session) -> tuple[Authorization, User] | None:
    # `+ 0` prevents a scan of the primary key if the application has no authorizations.
    first_id = select(func.min(Authorization.id + 0)).where(
        Authorization.application_id == application_id
    )
    found = session.execute(
        select(Authorization, User)
        .join(User, User.id == Authorization.user_id)
        .where(Authorization.id == first_id.scalar_subquery())
    ).first()
    return None if found is None else (found[0], found[1])


def _progress_of(authorization: Authorization, user: User, *, viewer: Viewer) -> FirstAuthorization:
    is_viewer = user.id == viewer.user_id
    # The owner's application could read these names anyway.
    is_known = bool(IDENTIFYING & set(authorization.scopes.split()))
    may_know = is_viewer or viewer.sees_everybody or is_known
    return FirstAuthorization(
        at=authorization.created_at,
        username=user.username if may_know else None,
        is_viewer=is_viewer,
    )
