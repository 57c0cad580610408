"""What a message to a contact says; written when it is sent, so that it says what is true then."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.keyring import Keyring, UndecipherableError
from domain.notifications.firing import Firing, firing_of
from domain.notifications.follow_ups import FollowUp, follow_ups_of
from domain.notifications.links import AcknowledgementLink, seal_link
from domain.notifications.policy import PagingPolicy
from domain.notifications.texts import (
    Reader,
    firing_subject,
    firing_text,
    follow_up_subject,
    follow_up_text,
    one_line,
    short_firing_text,
)
from models import Contact, PageMessage, PageRecipient, User

_NO_ZONE = "UTC"


@dataclass(frozen=True, kw_only=True)
class Content:
    """A message."""

    subject: str
    text: str
    #: For services that take a few words, such as text messages; None if the text is short.
    short_text: str | None = None
    #: Whether it is about something bad, which some services show in another colour.
    is_alarm: bool = False


def page_content(
    contact: Contact,
    messages: Sequence[PageMessage],
    policy: PagingPolicy,
    *,
    session: Session,
    now: datetime,
) -> Content | None:
    """Return the message about the alerts of some batches, or None if there is nothing to say."""
    batches = sorted(each.batch_id for each in messages if each.batch_id is not None)
    firing = firing_of(contact, batches, policy, session=session)
    follow_ups = follow_ups_of(contact, batches, session=session)
    zone = _zone_of(contact, session=session)
    reader = Reader(base_url=policy.base_url, time_zone=zone, now=now)
    if firing.count:
        link = _link(contact, batches, policy, now=now)
        return _firing_content(firing, follow_ups, link, reader, policy)
    return _follow_up_content(follow_ups, reader, policy) if follow_ups else None


def _firing_content(
    firing: Firing,
    follow_ups: Sequence[FollowUp],
    link: str | None,
    reader: Reader,
    policy: PagingPolicy,
) -> Content:
    parts = [firing_text(firing, reader)]
    if link is not None:
        what = "it" if firing.count == 1 else f"all {firing.count}, or some of them"
        parts.append(f"Acknowledge {what}: {link}")
    if follow_ups:
        parts.append(follow_up_text(follow_ups, reader))
    first = firing.named[0]
    brief = short_firing_text(firing, reader)
    way = f"Acknowledge: {link}" if link else reader.alert_url(first.path, first.iid)
    return Content(
        subject=firing_subject(firing, reader),
        text="\n\n".join(parts) + _signature(policy),
        short_text="\n".join(filter(None, (brief, way))),
        is_alarm=True,
    )


def _follow_up_content(
    follow_ups: Sequence[FollowUp], reader: Reader, policy: PagingPolicy
) -> Content:
    first = follow_ups[0]
    return Content(
        subject=follow_up_subject(follow_ups),
        text=follow_up_text(follow_ups, reader) + _signature(policy),
        short_text=reader.alert_url(first.path, first.iid),
    )


def _link(
    contact: Contact, batches: Sequence[int], policy: PagingPolicy, *, now: datetime
) -> str | None:
    """Return the link that acknowledges the alerts; who reads a channel is not known."""
    if contact.user_id is None:
        return None
    link = AcknowledgementLink(
        user_id=contact.user_id, first_batch_id=batches[0], last_batch_id=batches[-1]
    )
    return f"{policy.base_url}/-/acknowledge/{seal_link(link, policy.link_keys, now=now)}"


def _zone_of(contact: Contact, *, session: Session) -> str:
    """Return the time zone of the person to whom a contact leads; channels have UTC.

    A person who has set none in the profile may have one for quiet hours.
    """
    if contact.user_id is None:
        return _NO_ZONE
    own = session.scalar(select(User.time_zone).where(User.id == contact.user_id)) or _NO_ZONE
    of_quiet_hours = select(PageRecipient.time_zone).where(
        PageRecipient.user_id == contact.user_id, PageRecipient.quiet_from.is_not(None)
    )
    return own if own != _NO_ZONE else session.scalar(of_quiet_hours) or _NO_ZONE


def test_content(contact: Contact, policy: PagingPolicy) -> Content:
    """Return the test message of a contact."""
    return Content(
        subject=f"Test message from {policy.instance_name}",
        text=f"Messages to “{one_line(contact.label)}” are delivered." + _signature(policy),
    )


def code_content(
    contact: Contact, policy: PagingPolicy, *, keyring: Keyring, now: datetime
) -> Content | None:
    """Return the message with the code that confirms a contact, or None if it needs none."""
    if contact.code_ciphertext is None or contact.code_expires_at is None:
        return None
    try:
        code = keyring.decrypt(contact.code_ciphertext)
    except UndecipherableError:
        return None
    if contact.code_expires_at <= now:
        return None
    return Content(
        subject=f"{code} is your code for {policy.instance_name}",
        text=(
            f"Enter this code to receive alerts here: {code}\n\n"
            "If you did not request it, ignore this message." + _signature(policy)
        ),
    )


def _signature(policy: PagingPolicy) -> str:
    return f"\n\n-- \n{policy.instance_name}, {policy.base_url}\n"
