"""Tells maintainers by e-mail of webhooks that fail, or that were paused because of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from domain.mail.outbox import NewMessage, queue_messages
from domain.outgoing.destinations import DestinationState
from domain.projects.bots import Maintainer, maintainers_of
from domain.webhooks.endpoints import troubled_endpoints
from domain.webhooks.types import PauseReason, Webhook


@dataclass(frozen=True, kw_only=True)
class WebhookNoticeSettings:
    """The settings that the messages name."""

    instance_name: str
    #: Without a trailing slash.
    base_url: str
    pause_after_days: int


@dataclass(frozen=True, kw_only=True)
class _Notice:
    key: str
    subject: str
    lines: Sequence[str]


def queue_webhook_notices(sign: WebhookNoticeSettings, *, session: Session, now: datetime) -> int:
    """Store the messages that are due and not stored yet, and return their number.

    One when an endpoint has failed for a day, and one when it was paused because of failures.
    """
    messages = []
    for project_id, endpoint in troubled_endpoints(session=session, now=now):
        notice = _notice(endpoint, sign)
        if notice is None:
            continue
        path, people = maintainers_of(None, project_id, session=session, today=now.date())
        messages += [_message(notice, endpoint, path, to, sign) for to in people]
    return queue_messages(messages, session=session, now=now)


def _notice(endpoint: Webhook, sign: WebhookNoticeSettings) -> _Notice | None:
    url, error = endpoint.shown_url, endpoint.last_error
    if endpoint.state is DestinationState.PAUSED and endpoint.paused_at is not None:
        gone = endpoint.pause_reason is PauseReason.GONE
        why = (
            "It answered 410 Gone."
            if gone
            else f"It accepted nothing for {sign.pause_after_days} days. Last error: {error}."
        )
        return _Notice(
            key=f"webhook {endpoint.id} paused at {endpoint.paused_at.isoformat()}",
            subject="A webhook was paused",
            lines=(
                f"The webhook to {url} was paused.",
                why,
                "Nothing is sent to it until somebody resumes it.",
            ),
        )
    if endpoint.state is DestinationState.FAILING and endpoint.failing_since is not None:
        return _Notice(
            key=f"webhook {endpoint.id} failing since {endpoint.failing_since.isoformat()}",
            subject="A webhook cannot be delivered",
            lines=(
                f"Nothing could be delivered to {url} for a day. Last error: {error}.",
                f"{endpoint.backlog} deliveries are waiting; each is given up after three days.",
                f"After {sign.pause_after_days} days without a success, the webhook is paused.",
            ),
        )
    return None


def _message(
    notice: _Notice, endpoint: Webhook, path: str, to: Maintainer, sign: WebhookNoticeSettings
) -> NewMessage:
    lines = "\n".join(notice.lines)
    return NewMessage(
        key=f"{notice.key}, to {to.id}",
        recipient=to.email,
        subject=f"{notice.subject}: {path}",
        text=(
            f"Hello {to.name},\n\n{lines}\n\n"
            f"See {sign.base_url}/{path}/-/settings/webhooks/{endpoint.id}\n\n"
            f"-- \n{sign.instance_name}, {sign.base_url}\n"
            f"You receive this message because you are a maintainer of {path}.\n"
        ),
    )
