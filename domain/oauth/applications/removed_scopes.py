"""Active access tokens with scopes that were removed from their application."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.scopes import ALWAYS_ALLOWED_SCOPES, sort_scopes
from domain.core.database.bulk_statements import build_bulk_update
from domain.oauth.applications.types import RemovedScopes
from models import AccessToken


def find_removed_scopes(
    application_id: int, registered: Sequence[str], *, session: Session, now: datetime
) -> RemovedScopes | None:
    """Return the removed scopes that active access tokens still have, or None if there are none."""
    counted = session.execute(
        select(AccessToken.scopes, func.count())
        .where(*_list_live_conditions(application_id, now))
        .group_by(AccessToken.scopes)
    ).all()
    found = {text: _find_removed_scopes_in_row(text, registered) for text, _ in counted}
    scopes = sort_scopes(set().union(*found.values()))
    if not scopes:
        return None
    return RemovedScopes(scopes=scopes, tokens=sum(n for text, n in counted if found[text]))


def expire_tokens_with_removed_scopes(
    work: UnitOfWork, application_id: int, registered: Sequence[str]
) -> int:
    """Expire the access tokens that have removed scopes, and return the number of expired tokens.

    The refresh tokens remain valid, but new access tokens do not have the removed scopes.
    """
    session, now = work.session, work.now
    texts = session.scalars(
        select(AccessToken.scopes).where(*_list_live_conditions(application_id, now)).distinct()
    ).all()
    too_wide = [text for text in texts if _find_removed_scopes_in_row(text, registered)]
    ended = session.scalars(
        build_bulk_update(AccessToken)
        .where(*_list_live_conditions(application_id, now), AccessToken.scopes.in_(too_wide))
        .values(expires_at=now)
        .returning(AccessToken.id)
    ).all()
    return len(ended)


def _list_live_conditions(application_id: int, now: datetime) -> tuple[ColumnElement[bool], ...]:
    return (
        AccessToken.application_id == application_id,
        AccessToken.revoked_at.is_(None),
        or_(AccessToken.expires_at.is_(None), AccessToken.expires_at > now),
    )


def _find_removed_scopes_in_row(scopes: str, registered: Sequence[str]) -> set[str]:
    return set(scopes.split()) - {*registered, *ALWAYS_ALLOWED_SCOPES}
