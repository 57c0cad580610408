"""Compares the requested scopes with the scopes that the user has already approved."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.scopes import sort_scopes
from domain.core.database.bulk_statements import build_bulk_update, build_session_insert
from domain.oauth.clients.applications import is_trusted
from models import Application, Consent


@dataclass(frozen=True, kw_only=True)
class Approver:
    """The signed-in user who approves or denies a request, with details of the last sign-in."""

    user_id: int
    auth_time: datetime
    sign_in_id: int
    #: Authentication methods (`amr`), separated by spaces.
    methods: str
    #: True if the user may grant the `admin_mode` scope.
    may_administer: bool = False
    #: True for an administrator whose sign-in is too old to grant `admin_mode`.
    has_old_proof: bool = False


@dataclass(frozen=True, kw_only=True)
class ConsentPrompt:
    """The scopes on the consent page, and whether the page must be shown."""

    new: tuple[str, ...]
    granted: tuple[str, ...]
    is_needed: bool


def build_consent_prompt(
    application: Application, scopes: str, *, user_id: int, session: Session
) -> ConsentPrompt:
    """Return the prompt for the requested scopes, compared with the previously approved scopes.

    A repeated prompt is skipped only for confidential applications: any program can impersonate a
    public application (RFC 8252 section 8.6). Trusted applications never need a prompt.
    """
    asked = set(scopes.split())
    remembered = session.scalar(
        select(Consent.scopes).where(
            Consent.user_id == user_id, Consent.application_id == application.id
        )
    )
    granted = asked & set((remembered or "").split())
    may_skip = is_trusted(application) or (application.confidential and granted == asked)
    return ConsentPrompt(
        new=sort_scopes(asked - granted), granted=sort_scopes(granted), is_needed=not may_skip
    )


def store_consent(
    application: Application, scopes: str, *, user_id: int, session: Session, now: datetime
) -> None:
    """Add the approved scopes to the stored consent.

    Nothing is stored for a public application, which needs consent for each request.
    """
    if not application.confidential:
        return
    insert = build_session_insert(Consent, session=session).values(
        user_id=user_id,
        application_id=application.id,
        scopes=scopes,
        created_at=now,
        updated_at=now,
    )
    # The upsert locks the row before it is read, so that concurrent approvals lose no scopes.
    known = session.execute(
        insert.on_conflict_do_update(
            index_elements=["user_id", "application_id"], set_={"updated_at": now}
        ).returning(Consent.id, Consent.scopes)
    ).one()
    union = " ".join(sort_scopes({*known.scopes.split(), *scopes.split()}))
    session.execute(build_bulk_update(Consent).where(Consent.id == known.id).values(scopes=union))
