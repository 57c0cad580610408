"""Lists and revokes access to a user's account by applications and password grants."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, case, delete, func, select, union
from sqlalchemy.orm import Session

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.access.scopes import sort_scopes
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.errors import NotFoundError
from domain.oauth.clients.application_lists import list_live_token_conditions
from domain.oauth.clients.applications import is_trusted
from domain.oauth.clients.user_agents import describe_device
from domain.oauth.personal_tokens.application_created_tokens import revoke_created_tokens
from models import AccessToken, Application, Authorization, Consent, User


@dataclass(frozen=True, kw_only=True)
class AccessSource:
    """The IP address and the device that requested or used a token."""

    address: str | None
    device: str
    last_seen_at: datetime


@dataclass(frozen=True, kw_only=True)
class AuthorizedApplication:
    """An authorized application, or all password grant tokens without an application."""

    #: ID of the application; None for password grants without an application.
    application_id: int | None
    name: str
    owner_name: str
    is_instance_wide: bool
    is_self_registered: bool
    trusted: bool
    #: Scopes of the tokens and of the stored consent.
    scopes: tuple[str, ...]
    first_authorized_at: datetime
    #: Time when a token was last issued or used; None if the application has no tokens.
    last_used_at: datetime | None
    #: Number of active tokens; 0 if only a consent is stored.
    token_count: int
    #: IP addresses and devices that requested or used tokens, latest first.
    sources: tuple[AccessSource, ...]


@dataclass(frozen=True, kw_only=True)
class _ApplicationAccess:
    """The access that an application has: active tokens, a stored consent, or both."""

    scopes: set[str] = field(default_factory=set)
    since: datetime
    token_count: int = 0


def list_authorized_applications(
    user_id: int, *, session: Session, now: datetime
) -> tuple[AuthorizedApplication, ...]:
    """Return the applications with active tokens or a stored consent, most recently used first."""
    live = AccessToken.user_id == user_id, *list_live_token_conditions(now)
    access = _find_access(user_id, live, session=session)
    sources = _find_sources(live, session=session)
    first = _find_first_grants(user_id, session=session)
    known = _find_applications(access.keys(), session=session)
    found = []
    for application_id, each in access.items():
        row, owner_name = known.get(application_id, (None, ""))
        used = tuple(sources[application_id])
        found.append(
            AuthorizedApplication(
                application_id=application_id,
                name=row.name if row else "",
                owner_name=owner_name,
                is_instance_wide=bool(row and row.is_instance_wide),
                is_self_registered=bool(row and row.client_metadata is not None),
                trusted=bool(row and is_trusted(row)),
                scopes=sort_scopes(each.scopes),
                first_authorized_at=min(each.since, first.get(application_id, each.since)),
                last_used_at=used[0].last_seen_at if used else None,
                token_count=each.token_count,
                sources=used,
            )
        )
    found.sort(key=lambda each: each.last_used_at or each.first_authorized_at, reverse=True)
    return tuple(found)


def _find_access(
    user_id: int, live: tuple[ColumnElement[bool], ...], *, session: Session
) -> dict[int | None, _ApplicationAccess]:
    scopes = _find_granted_scopes(live, session=session)
    counts = (
        select(AccessToken.application_id, func.min(AccessToken.created_at), func.count())
        .where(*live)
        .group_by(AccessToken.application_id)
    )
    found = {
        application_id: _ApplicationAccess(
            scopes=scopes[application_id], since=since, token_count=count
        )
        for application_id, since, count in session.execute(counts)
    }
    for consent in session.scalars(select(Consent).where(Consent.user_id == user_id)):
        without_token = _ApplicationAccess(since=consent.created_at)
        known = found.setdefault(consent.application_id, without_token)
        known.scopes.update(consent.scopes.split())
    return found


def _find_applications(
    ids: Iterable[int | None], *, session: Session
) -> dict[int | None, tuple[Application, str]]:
    """Return applications with the names of their owners, by ID."""
    rows = session.execute(
        select(Application, User.name)
        .join(User, User.id == Application.owner_id)
        .where(Application.id.in_([each for each in ids if each is not None]))
    )
    return {application.id: (application, owner_name) for application, owner_name in rows}


def _find_granted_scopes(
    live: tuple[ColumnElement[bool], ...], *, session: Session
) -> dict[int | None, set[str]]:
    """Return the scopes that were granted to each application.

    An access token may have fewer scopes than its refresh token, so the scopes of both are
    included.
    """
    granted = case((AccessToken.refresh_digest.is_not(None), Authorization.scopes), else_="")
    rows = session.execute(
        select(AccessToken.application_id, AccessToken.scopes, granted)
        .outerjoin(Authorization, Authorization.id == AccessToken.authorization_id)
        .where(*live)
        .distinct()
    )
    found: dict[int | None, set[str]] = defaultdict(set)
    for application_id, *scopes in rows:
        found[application_id].update(" ".join(scopes).split())
    return found


def _find_sources(
    live: tuple[ColumnElement[bool], ...], *, session: Session
) -> dict[int | None, list[AccessSource]]:
    """Return the sources that requested or used tokens, latest first."""
    token, used = AccessToken, AccessToken.last_used_at
    key = (token.application_id, token.user_agent)
    asked = select(*key, token.address, func.max(token.created_at).label("moment"))
    seen = select(*key, token.last_used_address.label("address"), func.max(used).label("moment"))
    # The device is known from the token request; the token may be used from other addresses.
    rows = (
        *session.execute(asked.where(*live).group_by(*key, token.address)),
        *session.execute(
            seen.where(*live, used.is_not(None)).group_by(*key, token.last_used_address)
        ),
    )
    latest: dict[tuple[int | None, str | None, str], datetime] = {}
    for row in rows:
        source = (row.application_id, row.address, describe_device(row.user_agent))
        latest[source] = max(row.moment, latest.get(source, row.moment))
    found: dict[int | None, list[AccessSource]] = defaultdict(list)
    for (application_id, address, device), moment in latest.items():
        found[application_id].append(
            AccessSource(address=address, device=device, last_seen_at=moment)
        )
    for sources in found.values():
        sources.sort(key=lambda source: source.last_seen_at, reverse=True)
    return found


def _find_first_grants(user_id: int, *, session: Session) -> dict[int | None, datetime]:
    """Return the time of the first stored grant for each application."""
    rows = session.execute(
        select(Authorization.application_id, func.min(Authorization.created_at))
        .where(Authorization.user_id == user_id)
        .group_by(Authorization.application_id)
    )
    return dict(rows.all())


def revoke_application_access(
    application_id: int, user_id: int, *, session: Session, now: datetime
) -> str:
    """Revoke all tokens and codes that a user granted an application, and delete the consent.

    Personal, project and group tokens that the application created are revoked as well. Return the
    application's name. Raise NotFoundError if the application does not exist.
    """
    name = session.scalar(select(Application.name).where(Application.id == application_id))
    if name is None:
        raise NotFoundError("Application not found.")
    # The consent is deleted first, since approvals lock it. A code that is being stored
    # concurrently is then also revoked.
    session.execute(
        delete(Consent).where(Consent.application_id == application_id, Consent.user_id == user_id)
    )
    # The grant is updated next, since redeeming and refreshing lock it to issue tokens. Its session
    # ID is cleared, so that the application can no longer sign the user out without confirmation.
    ended: dict[object, dict[str, None]] = {Authorization: {"sid": None}}
    for table in (Authorization, AccessToken):
        session.execute(
            build_bulk_update(table)
            .where(
                table.application_id == application_id,
                table.user_id == user_id,
                table.revoked_at.is_(None),
            )
            .values(revoked_at=now, **ended.get(table, {}))
        )
    granted = select(Authorization.id).where(
        Authorization.application_id == application_id, Authorization.user_id == user_id
    )
    revoke_created_tokens(granted, session=session, now=now)
    return name


def revoke_all_applications(user_id: int, *, session: Session, now: datetime) -> int:
    """Revoke the access of all applications to a user's account.

    Return the number of applications.
    """
    granted = [
        select(table.application_id).where(table.user_id == user_id, table.revoked_at.is_(None))
        for table in (Authorization, AccessToken)
    ]
    consented = select(Consent.application_id).where(Consent.user_id == user_id)
    # The IDs are sorted, so that concurrent calls do not deadlock.
    ids = sorted({number for number in session.scalars(union(*granted, consented)) if number})
    for application_id in ids:
        revoke_application_access(application_id, user_id, session=session, now=now)
    revoke_tokens_without_application(user_id, session=session, now=now)
    return len(ids)


def revoke_tokens_without_application(user_id: int, *, session: Session, now: datetime) -> None:
    """Revoke the user's password grant tokens that do not belong to an application."""
    session.execute(
        build_bulk_update(AccessToken)
        .where(
            AccessToken.application_id.is_(None),
            AccessToken.user_id == user_id,
            AccessToken.revoked_at.is_(None),
        )
        .values(revoked_at=now)
    )


@action("authorized_applications.revoke")
def revoke_own_application(work: UnitOfWork, application_id: int) -> str:
    """Revoke an application's access to your account.

    Return the name of the application.
    """
    own_id = work.actor.id or 0
    name = revoke_application_access(application_id, own_id, session=work.session, now=work.now)
    work.record_audit_event(EventKind.CONSENT_REVOKED, subject=name, user_id=own_id)
    return name


@action("authorized_applications.revoke")
def revoke_own_password_tokens(work: UnitOfWork) -> None:
    """Revoke your password grant tokens that do not belong to an application."""
    own_id = work.actor.id or 0
    revoke_tokens_without_application(own_id, session=work.session, now=work.now)
    work.record_audit_event(EventKind.TOKEN_REVOKED, subject="password grant", user_id=own_id)
