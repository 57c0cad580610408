"""Applications as pages show them, with the number of their users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select, union
from sqlalchemy.orm import Session

from domain.oauth.clients.applications import is_trusted, own_by
from domain.oauth.clients.redirect_uris import is_insecure
from models import AccessToken, Application, Authorization, Consent, User


@dataclass(frozen=True, kw_only=True)
class ApplicationView:
    """An application as pages show it."""

    id: int
    uid: str
    name: str
    owner_id: int
    owner_username: str
    owner_name: str
    redirect_uris: tuple[str, ...]
    scopes: tuple[str, ...]
    confidential: bool
    require_pkce: bool
    refresh_for_devices: bool
    require_dpop: bool
    trusted: bool
    is_instance_wide: bool
    created_at: datetime
    last_used_at: datetime | None
    #: How many people let it in and did not revoke that.
    people_count: int
    token_count: int
    #: What a client that registered itself said of itself.
    own_words: Mapping[str, Any] | None

    @property
    def registered_itself(self) -> bool:
        """Whether its name and addresses come from the client alone (RFC 7591)."""
        return self.own_words is not None

    @property
    def insecure_redirect_uris(self) -> tuple[str, ...]:
        """Those of the URIs that carry a code in the clear."""
        return tuple(uri for uri in self.redirect_uris if is_insecure(uri))


def list_own(owner_id: int, *, session: Session, now: datetime) -> tuple[ApplicationView, ...]:
    """Return the applications that a user owns, the newest first."""
    return _views(own_by(owner_id), session=session, now=now)


def list_some(
    ids: Sequence[int], *, session: Session, now: datetime
) -> tuple[ApplicationView, ...]:
    """Return the applications with these ids, the newest first."""
    return _views(Application.id.in_(ids), session=session, now=now)


def view(application: Application, *, session: Session, now: datetime) -> ApplicationView:
    """Return an application as pages show it."""
    return _views(Application.id == application.id, session=session, now=now)[0]


def _views(condition: Any, *, session: Session, now: datetime) -> tuple[ApplicationView, ...]:
    rows = session.execute(
        select(Application, User)
        .join(User, User.id == Application.owner_id)
        .where(condition)
        .order_by(Application.id.desc())
    ).all()
    ids = [application.id for application, _ in rows]
    people = _count_people(ids, session=session, now=now)
    tokens = _count_tokens(ids, session=session, now=now)
    return tuple(
        ApplicationView(
            id=application.id,
            uid=application.uid,
            name=application.name,
            owner_id=owner.id,
            owner_username=owner.username,
            owner_name=owner.name,
            redirect_uris=tuple(application.redirect_uris),
            scopes=tuple(application.scopes.split()),
            confidential=application.confidential,
            require_pkce=application.require_pkce,
            refresh_for_devices=application.refresh_for_devices,
            require_dpop=application.require_dpop,
            trusted=is_trusted(application),
            is_instance_wide=application.is_instance_wide,
            created_at=application.created_at,
            last_used_at=application.last_used_at,
            people_count=people.get(application.id, 0),
            token_count=tokens.get(application.id, 0),
            own_words=application.client_metadata,
        )
        for application, owner in rows
    )


def _live(ids: Sequence[int], now: datetime) -> tuple[ColumnElement[bool], ...]:
    return (
        AccessToken.application_id.in_(ids),
        AccessToken.revoked_at.is_(None),
        or_(
            AccessToken.expires_at.is_(None),
            AccessToken.expires_at > now,
            AccessToken.refresh_digest.is_not(None),
        ),
    )


def _count_tokens(ids: Sequence[int], *, session: Session, now: datetime) -> dict[int, int]:
    """Count the pairs of which at least one token is valid, by application."""
    return _counted(
        select(AccessToken.application_id, func.count())
        .where(*_live(ids, now))
        .group_by(AccessToken.application_id),
        session=session,
    )


def _count_people(ids: Sequence[int], *, session: Session, now: datetime) -> dict[int, int]:
    """Count the users with a grant, a stored consent or a token, by application."""
    granted = select(Authorization.application_id, Authorization.user_id).where(
        Authorization.application_id.in_(ids), Authorization.revoked_at.is_(None)
    )
    remembered = select(Consent.application_id, Consent.user_id).where(
        Consent.application_id.in_(ids)
    )
    holding = select(AccessToken.application_id, AccessToken.user_id).where(*_live(ids, now))
    # Each person once, however often: a UNION has no doubles.
    people = union(granted, remembered, holding).subquery()
    return _counted(
        select(people.c.application_id, func.count()).group_by(people.c.application_id),
        session=session,
    )


def _counted(statement: Any, *, session: Session) -> dict[int, int]:
    return {application_id: count for application_id, count in session.execute(statement)}  # noqa: C416 - rows are not tuples
