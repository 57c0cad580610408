"""Setup progress and rejected requests of an application, for its owner.

Since the client_id is public, anyone can send requests that claim to come from the application.
Only the newest requests for each reason are stored, so that many similar requests neither fill the
disk nor hide other requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from sqlalchemy import bindparam, func, insert, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_delete, build_bulk_update
from domain.oauth.applications.types import RejectedRequest
from domain.oauth.clients.types import ApplicationView
from domain.oauth.context import NewRejectedRequest as NewRefusal
from domain.oauth.context import OAuthContext
from domain.oauth.grants.registry import GRANTS
from domain.oauth.rejection_reasons import OTHER_REASON, SHARED_REASONS
from models import AccessToken, Authorization, RejectedOAuthRequest, User

#: All rejection reasons, keyed by the name stored in the database.
REASONS_BY_NAME = {
    each.name: each
    for each in (*SHARED_REASONS, *(reason for grant in GRANTS for reason in grant.REASONS))
}
#: Maximum number of stored requests per application and reason.
MAX_REQUESTS_PER_REASON = 10
#: Retention time of rejected requests.
REJECTED_REQUEST_RETENTION = timedelta(days=30)
#: Number of rejected requests on the page of an application.
MAX_DISPLAYED_REQUESTS = 20
#: Lengths of the database columns for the IP address and the User-Agent header.
_MAX_ADDRESS_LENGTH, _MAX_USER_AGENT_LENGTH = 64, 255

_INSERT_REQUEST = insert(RejectedOAuthRequest).returning(RejectedOAuthRequest.id)
_HAS_SAME_REASON = (
    RejectedOAuthRequest.application_id == bindparam("of_application"),
    RejectedOAuthRequest.reason == bindparam("of_reason"),
)
_DELETE_OLDEST = build_bulk_delete(RejectedOAuthRequest).where(
    *_HAS_SAME_REASON,
    RejectedOAuthRequest.id
    <= select(RejectedOAuthRequest.id)
    .where(*_HAS_SAME_REASON)
    .order_by(RejectedOAuthRequest.id.desc())
    .offset(MAX_REQUESTS_PER_REASON)
    .limit(1)
    .scalar_subquery(),
)
_ADD_SKIPPED = (
    build_bulk_update(RejectedOAuthRequest)
    .where(RejectedOAuthRequest.id == bindparam("of_row"))
    .values(skipped=RejectedOAuthRequest.skipped + bindparam("more"))
)
#: Maximum age of applications whose first authorization is shown. Authorizations of older
#: applications may have been pruned.
_MAX_NEW_APPLICATION_AGE = timedelta(days=30)
#: Scopes that let an application identify its users.
IDENTIFYING_SCOPES = frozenset(
    {"api", "read_api", "read", "read_user", "openid", "profile", "email"}
)


def store_rejected_request(refused: NewRefusal, *, context: OAuthContext) -> int:
    """Store a rejected request, and return its ID.

    Only the newest requests are kept for each application and reason.
    """
    values = {
        "application_id": refused.application_id,
        "reason": refused.reason.name,
        "request": refused.request,
        "error": refused.error,
        "description": refused.description,
        "refused_at": context.now,
        "address": (refused.address or "")[:_MAX_ADDRESS_LENGTH] or None,
        "user_agent": (context.source.user_agent or "")[:_MAX_USER_AGENT_LENGTH] or None,
        "redirect_uri": refused.redirect_uri,
        "skipped": 0,
    }
    row_id: int = next(iter(context.run_write(_INSERT_REQUEST, values)))[0]
    same = {"of_application": refused.application_id, "of_reason": refused.reason.name}
    context.run_write(_DELETE_OLDEST, same)
    return row_id


def add_skipped_counts(counts: Sequence[tuple[int, int]], *, context: OAuthContext) -> None:
    """Add the numbers of skipped requests to stored requests.

    Each pair in `counts` contains the ID of a stored request and the number of similar requests
    that were skipped.
    """
    for row_id, more in counts:
        context.run_write(_ADD_SKIPPED, {"of_row": row_id, "more": more})


def find_rejected_requests(
    application_id: int,
    *,
    session: Session,
    day: date | None = None,
    offset: int = 0,
    limit: int = MAX_DISPLAYED_REQUESTS,
) -> tuple[RejectedRequest, ...]:
    """Return the rejected requests of an application, newest first.

    If `day` is given, return only the requests of that day (UTC).
    """
    is_shown = [RejectedOAuthRequest.application_id == application_id]
    if day:
        first, last = (datetime.combine(day, each, UTC) for each in (time.min, time.max))
        is_shown.append(RejectedOAuthRequest.refused_at.between(first, last))
    # Sorting is cheap, since there are at most `MAX_REQUESTS_PER_REASON` rows for each reason.
    rows = session.scalars(
        select(RejectedOAuthRequest)
        .where(*is_shown)
        .order_by(RejectedOAuthRequest.refused_at.desc(), RejectedOAuthRequest.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return tuple(_build_view(row) for row in rows)


def count_rejected_requests(application_id: int, *, session: Session) -> int:
    """Return the number of stored rejected requests for an application."""
    asked = select(func.count()).where(RejectedOAuthRequest.application_id == application_id)
    return session.scalar(asked.select_from(RejectedOAuthRequest)) or 0


def _build_view(row: RejectedOAuthRequest) -> RejectedRequest:
    reason = REASONS_BY_NAME.get(
        row.reason, OTHER_REASON
    )  # A newer release may have stored unknown reasons.
    words = {"title": reason.title, "advice": reason.advice}
    columns = {each.key: getattr(row, each.key) for each in RejectedOAuthRequest.__table__.columns}
    return RejectedRequest.model_validate({**columns, **words})


class ApplicationSetupStage(StrEnum):
    """The stage that an application's setup has reached."""

    #: Stage in which no user has authorized the application.
    WAITING = "waiting"
    #: Stage in which a user has authorized the application, but the application has not fetched a
    #: token.
    AUTHORIZED = "authorized"
    WORKING = "working"


@dataclass(frozen=True, kw_only=True)
class FirstAuthorization:
    """The first authorization of an application by a user."""

    at: datetime
    #: Username; None if the viewer is not allowed to see the username.
    username: str | None
    is_viewer: bool


@dataclass(frozen=True, kw_only=True)
class ApplicationSetupProgress:
    """The stage that an application's setup has reached, and its first authorization."""

    stage: ApplicationSetupStage
    #: First authorization of the application. None if no user has authorized the application, or if
    #: the application is old.
    first: FirstAuthorization | None


@dataclass(frozen=True, kw_only=True)
class ApplicationViewer:
    """The user who views an application, and whether this user may see all usernames."""

    user_id: int
    sees_everybody: bool


def get_application_setup_progress(
    application: ApplicationView, *, viewer: ApplicationViewer, session: Session, now: datetime
) -> ApplicationSetupProgress:
    """Return the setup progress of an application, with details that the viewer may see."""
    token = select(AccessToken.id).where(AccessToken.application_id == application.id).limit(1)
    is_new = application.created_at > now - _MAX_NEW_APPLICATION_AGE
    row = _find_first_authorization(application.id, session=session) if is_new else None
    first = None if row is None else _build_first_authorization(*row, viewer=viewer)
    # Tokens of an older application may have been pruned.
    was_used = not is_new and application.last_used_at is not None
    if was_used or session.scalar(token) is not None:
        return ApplicationSetupProgress(stage=ApplicationSetupStage.WORKING, first=first)
    return ApplicationSetupProgress(
        stage=ApplicationSetupStage.WAITING if first is None else ApplicationSetupStage.AUTHORIZED,
        first=first,
    )


def _find_first_authorization(
    application_id: int, *, session: Session
) -> tuple[Authorization, User] | None:
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


def _build_first_authorization(
    authorization: Authorization, user: User, *, viewer: ApplicationViewer
) -> FirstAuthorization:
    is_viewer = user.id == viewer.user_id
    # With these scopes, the owner's application can read the username anyway.
    is_known = bool(IDENTIFYING_SCOPES & set(authorization.scopes.split()))
    may_know = is_viewer or viewer.sees_everybody or is_known
    return FirstAuthorization(
        at=authorization.created_at,
        username=user.username if may_know else None,
        is_viewer=is_viewer,
    )
