"""Stores refused requests of applications, and lists them for the owners.

Anybody can send requests in the name of an application, since its client_id is public. So only the
newest of each reason are kept: no flood of one kind fills the disk or hides another kind.
"""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.orm import Session

from domain.oauth.context import OAuthContext
from domain.oauth.context import RefusedRequest as NewRefusal
from domain.oauth.grants.registry import GRANTS
from domain.oauth.reasons import OTHER, SHARED
from domain.oauth.setting_up.types import RefusedRequest
from models import TokenRefusal

#: Every reason by its stored name.
REASONS = {
    each.name: each for each in (*SHARED, *(reason for grant in GRANTS for reason in grant.REASONS))
}
#: Of each application and reason.
KEPT = 10
#: After it nobody looks for the cause any more.
KEPT_FOR = timedelta(days=30)
#: On the page of an application.
SHOWN = 20
#: The lengths of the columns.
_LONGEST_ADDRESS, _LONGEST_USER_AGENT = 64, 255

_INSERT = insert(TokenRefusal).returning(TokenRefusal.id)
_SAME = (
    TokenRefusal.application_id == bindparam("of_application"),
    TokenRefusal.reason == bindparam("of_reason"),
)
_TRIM = (
    delete(TokenRefusal)
    .where(
        *_SAME,
        TokenRefusal.id
        <= select(TokenRefusal.id)
        .where(*_SAME)
        .order_by(TokenRefusal.id.desc())
        .offset(KEPT)
        .limit(1)
        .scalar_subquery(),
    )
    .execution_options(synchronize_session=False)
)
_SKIP = (
    update(TokenRefusal)
    .where(TokenRefusal.id == bindparam("of_row"))
    .values(skipped=TokenRefusal.skipped + bindparam("more"))
    .execution_options(synchronize_session=False)
)


def store_refusal(refused: NewRefusal, *, context: OAuthContext) -> int:
    """Insert a refused request, remove the oldest of its reason, and return its id."""
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
    """Return refused requests of an application, the newest first."""
    # At most `KEPT` for each reason, so sorting them is cheap.
    rows = session.scalars(
        select(TokenRefusal)
        .where(TokenRefusal.application_id == application_id)
        .order_by(TokenRefusal.refused_at.desc(), TokenRefusal.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return tuple(_view(row) for row in rows)


def count_refusals(application_id: int, *, session: Session) -> int:
    """Return how many refused requests of an application are stored."""
    asked = select(func.count()).where(TokenRefusal.application_id == application_id)
    return session.scalar(asked.select_from(TokenRefusal)) or 0


def _view(row: TokenRefusal) -> RefusedRequest:
    reason = REASONS.get(row.reason, OTHER)  # one of a newer release is just a refusal
    words = {"title": reason.title, "advice": reason.advice}
    columns = {each.key: getattr(row, each.key) for each in TokenRefusal.__table__.columns}
    return RefusedRequest.model_validate({**columns, **words})
