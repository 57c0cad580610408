"""Compares the requested scopes with those that the user has approved before."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.scopes import in_order
from domain.core.database.rows import insert_into, update_rows
from domain.oauth.clients.applications import is_trusted
from models import Application, Consent


@dataclass(frozen=True, kw_only=True)
class Approval:
    """A user's approval: the user, and the time of their last sign-in."""

    user_id: int
    auth_time: datetime
    sign_in_id: int
    #: How they signed in: `amr`, separated by spaces.
    methods: str
    #: Of an administrator: whether the scope `admin_mode` is granted if it is asked for.
    may_administer: bool = False
    #: An administrator whose sign-in is too old to grant it.
    has_old_proof: bool = False


@dataclass(frozen=True, kw_only=True)
class ConsentPrompt:
    """The scopes that the consent page asks for, and whether it has to be shown."""

    new: tuple[str, ...]
    granted: tuple[str, ...]
    is_needed: bool


def consent_prompt_for(
    application: Application, scopes: str, *, user_id: int, session: Session
) -> ConsentPrompt:
    """Compare the requested scopes with the approved ones.

    Only confidential applications can skip a second prompt: anybody can pretend to be a
    public one (RFC 8252 section 8.6). Trusted applications are never asked about.
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
        new=in_order(asked - granted), granted=in_order(granted), is_needed=not may_skip
    )


def remember(
    application: Application, scopes: str, *, user_id: int, session: Session, now: datetime
) -> None:
    """Add the approved scopes to the stored consent, where a consent counts for later requests."""
    if not application.confidential:
        return
    insert = insert_into(Consent, session=session).values(
        user_id=user_id,
        application_id=application.id,
        scopes=scopes,
        created_at=now,
        updated_at=now,
    )
    # Holds the row, new or not, before it is read: an answer given at the same time adds to it.
    known = session.execute(
        insert.on_conflict_do_update(
            index_elements=["user_id", "application_id"], set_={"updated_at": now}
        ).returning(Consent.id, Consent.scopes)
    ).one()
    union = " ".join(in_order({*known.scopes.split(), *scopes.split()}))
    session.execute(update_rows(Consent).where(Consent.id == known.id).values(scopes=union))
