"""Tells the maintainers of a project what they must know of its pages.

By e-mail to their accounts, and by each contact of theirs that works: what keeps pages from leaving
may keep e-mail from leaving as well. Both are tried again until they are sent.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, true
from sqlalchemy.orm import Session

from domain.access.abilities import Ability
from domain.mail.outbox import NewMessage, queue_messages
from domain.notifications.policy import PagingPolicy
from domain.notifications.queueing import queue_notice
from domain.projects.member_lists import able_people
from domain.projects.views import Namespace
from models import Contact, User

_MOST_MAINTAINERS = 50


@dataclass(frozen=True, kw_only=True)
class Notice:
    """What maintainers are told."""

    #: Nobody is told twice with the same one.
    key: str
    subject: str
    #: Between the greeting and the signature.
    text: str


def tell_maintainers(
    project: Namespace, notice: Notice, policy: PagingPolicy, *, session: Session, now: datetime
) -> None:
    """Queue a notice for the maintainers of a project, once for each key."""
    able = able_people(
        true(), Ability.ADMIN_INTEGRATIONS, project, session=session, today=now.date()
    )
    people = session.execute(
        select(User.id, User.name, User.username, User.email)
        .where(User.id.in_(sorted(able)[:_MOST_MAINTAINERS]))
        .order_by(User.id)
    ).all()
    texts = {row.id: _text(row.name or row.username, notice, policy) for row in people}
    if policy.sends_mail:
        messages = [
            NewMessage(
                key=f"{notice.key}, to {row.id}",
                recipient=row.email,
                subject=notice.subject,
                text=texts[row.id],
            )
            for row in people
        ]
        queue_messages(messages, session=session, now=now)
    works = select(Contact.id, Contact.user_id).where(
        Contact.user_id.in_(texts),
        Contact.confirmed_at.is_not(None),
        Contact.address_ciphertext.is_not(None),
        Contact.failing_since.is_(None),
    )
    for contact_id, user_id in session.execute(works.order_by(Contact.id)).all():
        text = texts[user_id or 0]
        queue_notice(contact_id, notice.key, notice.subject, text, session=session, now=now)


def _text(name: str, notice: Notice, policy: PagingPolicy) -> str:
    return (
        f"Hello {name},\n\n{notice.text}\n\n"
        f"-- \n{policy.instance_name}, {policy.base_url}\n"
        "You receive this message because you are a maintainer of the project.\n"
    )
