"""Reports the setup progress of an integration: recent requests, and advice about rejections."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, case, func, select
from sqlalchemy.orm import Session

from domain.alerts.deliveries import MIN_REJECTED_STATUS, get_delivery_outcome
from domain.core.types.base import get_column_values
from models import Delivery

#: Number of bytes at the start of a body that are searched for signs of the sender.
SEARCHED_BODY_BYTES = 4096
_GENERAL_KEY_ADVICE = "Send the header “Authorization: Bearer KEY” with the integration key."
_GENERAL_MEDIA_TYPE_ADVICE = (
    "Send the header “Content-Type: application/json” and JSON as the body."
)
#: Maximum number of attempts that are shown, and maximum number searched for problems.
_MAX_SHOWN_ATTEMPTS, _MAX_SEARCHED_ATTEMPTS = 5, 50
_ACCEPTED = "accepted"


@dataclass(frozen=True, kw_only=True)
class SenderProgram:
    """A program that sends alerts, with instructions for correcting its requests."""

    name: str
    #: Substrings of the User-Agent header, in lower case.
    agents: tuple[str, ...]
    #: Byte sequences that every body from the program contains.
    body_marks: tuple[bytes, ...] = ()
    #: Instruction for sending the key.
    key: str
    #: Instruction for sending JSON, or an empty string for programs that always send JSON.
    media_type: str = ""
    #: Instruction for sending fewer requests.
    volume: str = ""
    #: Instruction for sending smaller requests.
    size: str = ""


ALERTMANAGER = SenderProgram(
    name="Alertmanager",
    agents=("alertmanager/",),
    body_marks=(b'"groupKey"', b'"receiver"', b'"externalURL"'),
    key=(
        "In alertmanager.yml, under http_config of the webhook, set authorization with the type "
        "Bearer and the integration key as credentials. Then reload Alertmanager."
    ),
    volume=(
        "In alertmanager.yml, raise group_interval and repeat_interval of the route to send "
        "requests less often."
    ),
    size=(
        "In alertmanager.yml, add labels such as namespace to group_by of the route, so that each "
        "group has fewer alerts. Do not set max_alerts, since it omits alerts. An "
        "administrator can raise METRICS_BODY_LIMIT_BYTES."
    ),
)
#: Known senders, in order of precedence. Grafana precedes Alertmanager, since a body from Grafana
#: also matches Alertmanager.
KNOWN_SENDERS = (
    SenderProgram(
        name="Grafana",
        agents=("grafana",),
        body_marks=(b'"orgId"', b'"receiver"'),
        key=(
            "In Grafana, edit the contact point. Under “Optional Webhook settings”, set the scheme "
            "of the authorization header to Bearer, and its credentials to the integration key."
        ),
        volume="In Grafana, raise the timings of the notification policy.",
        size=(
            "In Grafana, add labels to “Group by” of the notification policy, so that each group "
            "has fewer alerts. An administrator can raise METRICS_BODY_LIMIT_BYTES."
        ),
    ),
    ALERTMANAGER,
    SenderProgram(
        name="curl",
        agents=("curl/",),
        key="Add --header 'Authorization: Bearer KEY' with the integration key.",
        media_type=(
            "Add --header 'Content-Type: application/json', or use --json instead of --data."
        ),
    ),
    SenderProgram(
        name="Wget",
        agents=("wget/",),
        key="Add --header='Authorization: Bearer KEY' with the integration key.",
        media_type="Add --header='Content-Type: application/json'.",
    ),
    SenderProgram(
        name="Apprise",
        agents=("apprise",),
        key="Start the URL with json:// or jsons:// and end it with ?+Authorization=Bearer%20KEY.",
    ),
    SenderProgram(
        name="Monit",
        agents=("monit/",),
        key=(
            "Monit cannot send headers itself. Call curl from an exec action, as in the snippet "
            "below."
        ),
        media_type="Call curl from an exec action, as in the snippet below.",
    ),
    SenderProgram(
        name="Healthchecks",
        agents=("healthchecks",),
        key=(
            "In the webhook integration, add the line “Authorization: Bearer KEY” to the request "
            "headers for down and up."
        ),
        media_type=(
            "In the webhook integration, choose POST and add the line “Content-Type: "
            "application/json” to the request headers for down and up."
        ),
    ),
    SenderProgram(
        name="collectd",
        agents=("collectd/",),
        key='In the Node of write_http, add Header "Authorization: Bearer KEY".',
        media_type='In the Node of write_http, set Format "JSON" and Notifications true.',
        volume="In the Node of write_http, set Metrics false to send only notifications.",
    ),
    SenderProgram(
        name="Zabbix",
        agents=("zabbix",),
        key=(
            "In the script of the media type, call addHeader('Authorization: Bearer ' + key) with "
            "the integration key as a parameter."
        ),
        media_type=(
            "In the script of the media type, call addHeader('Content-Type: application/json')."
        ),
    ),
    SenderProgram(
        name="Uptime Kuma",
        agents=("uptime-kuma",),
        body_marks=(b'"heartbeat"', b'"monitor"', b'"msg"'),
        key=(
            "In the webhook notification, turn on “Additional Headers” and enter "
            '{"Authorization": "Bearer KEY"}.'
        ),
        media_type=(
            "In the webhook notification, add Content-Type: application/json to the additional "
            "headers."
        ),
    ),
    SenderProgram(
        name="Python",
        agents=("python", "aiohttp", "httpx"),
        key='Pass headers={"Authorization": "Bearer KEY"} with the integration key.',
        media_type="Pass the body as json=…, or set the Content-Type header to application/json.",
    ),
    SenderProgram(
        name="PowerShell",
        agents=("powershell",),
        key='Pass -Headers @{Authorization = "Bearer KEY"} with the integration key.',
        media_type='Pass -ContentType "application/json" and a body from ConvertTo-Json.',
    ),
)
UNKNOWN_SENDER = SenderProgram(
    name="The sender", agents=(), key=_GENERAL_KEY_ADVICE, media_type=_GENERAL_MEDIA_TYPE_ADVICE
)


def recognize_sender(user_agent: str | None, body: bytes | None) -> SenderProgram:
    """Return the program that sent a request, or `UNKNOWN_SENDER`."""
    folded, start = (user_agent or "").lower(), (body or b"")[:SEARCHED_BODY_BYTES]
    for each in KNOWN_SENDERS:
        if any(agent in folded for agent in each.agents):
            return each
    for each in KNOWN_SENDERS:
        if each.body_marks and all(mark in start for mark in each.body_marks):
            return each
    return UNKNOWN_SENDER


#: Advice for rejected requests, by status code. For other status codes, the advice depends on the
#: sender.
_ADVICE_BY_STATUS: Mapping[int, str] = {
    400: (
        "Check the body of the delivery. The sender's template may be wrong, or quotes may be "
        "missing."
    ),
    403: "The request was correct, but the integration does not currently accept deliveries.",
    408: "The body did not arrive in time. Check the network, and any proxy in between.",
    422: (
        "The body is JSON, but contains no alert. Compare it with the example on the page “Send "
        "test alert”, and check that the type of this integration matches the sender."
    ),
}


def get_rejection_advice(status_code: int, sender: SenderProgram) -> str:
    """Return advice on how to fix a request that was rejected with this status code."""
    of_sender = {
        401: sender.key,
        413: sender.size or sender.volume or "Send fewer alerts per request, or shorter texts.",
        415: sender.media_type or _GENERAL_MEDIA_TYPE_ADVICE,
        429: sender.volume or "Send less often, or send several alerts in one request.",
        503: sender.volume or "Send less often. The sender retries the request.",
    }
    return of_sender.get(status_code) or _ADVICE_BY_STATUS.get(status_code) or "Check the delivery."


class SetupStage(StrEnum):
    """The setup stages of an integration, based on the newest request from a sender."""

    #: Stage before the first request from a sender.
    WAITING = "waiting"
    #: Stage in which the newest request was rejected.
    REFUSED = "refused"
    RECEIVING = "receiving"


@dataclass(frozen=True, kw_only=True)
class SetupAttempt:
    """A request from a sender, with its outcome and with advice if it was rejected."""

    delivery_id: int
    received_at: datetime
    outcome: str
    status_code: int
    #: Reason for the rejection.
    reason: str | None
    address: str
    #: Name of the sending program, or None if it is unknown.
    sender: str | None
    #: Advice for fixing the problem, or None if the request was accepted.
    advice: str | None
    #: Number of similar rejections that are not listed.
    skipped: int


@dataclass(frozen=True, kw_only=True)
class SetupProgress:
    """The setup stage of an integration, with recent requests and their problems."""

    stage: SetupStage
    #: Attempts that pages show, newest first.
    attempts: tuple[SetupAttempt, ...]
    #: All attempts that were searched for problems, newest first.
    searched: tuple[SetupAttempt, ...]
    #: Newest attempt for each kind of problem since the last accepted request.
    problems: tuple[SetupAttempt, ...]

    @property
    def newest_attempt(self) -> SetupAttempt:
        """Newest request from a sender.

        Raise IndexError in the WAITING stage, in which there are no requests.
        """
        return self.attempts[0]


def get_setup_progress(integration_id: int, *, session: Session) -> SetupProgress:
    """Return the setup progress of an integration, excluding test alerts from users."""
    is_refused = Delivery.status_code >= MIN_REJECTED_STATUS
    rows = session.execute(
        select(
            Delivery.id,
            Delivery.received_at,
            Delivery.status_code,
            Delivery.reason,
            Delivery.sender,
            Delivery.user_agent,
            Delivery.skipped,
            case((is_refused, func.substr(Delivery.body, 1, SEARCHED_BODY_BYTES))).label("start"),
        )
        .where(Delivery.integration_id == integration_id, Delivery.is_test.is_(False))
        .order_by(Delivery.id.desc())
        .limit(_MAX_SEARCHED_ATTEMPTS)
    ).all()
    attempts = tuple(_build_attempt(row) for row in rows)
    return SetupProgress(
        stage=_determine_stage(attempts),
        attempts=attempts[:_MAX_SHOWN_ATTEMPTS],
        searched=attempts,
        problems=_find_problems(attempts),
    )


def _build_attempt(row: Row[Any]) -> SetupAttempt:
    outcome = get_delivery_outcome(row.status_code)
    sender = recognize_sender(row.user_agent, row.start)
    return SetupAttempt(
        **get_column_values(row, SetupAttempt) | {"sender": sender.name if sender.agents else None},
        delivery_id=row.id,
        outcome=outcome,
        address=row.sender,
        advice=None if outcome == _ACCEPTED else get_rejection_advice(row.status_code, sender),
    )


def _determine_stage(attempts: tuple[SetupAttempt, ...]) -> SetupStage:
    if not attempts:
        return SetupStage.WAITING
    is_accepted = attempts[0].outcome == _ACCEPTED
    return SetupStage.RECEIVING if is_accepted else SetupStage.REFUSED


def _find_problems(attempts: tuple[SetupAttempt, ...]) -> tuple[SetupAttempt, ...]:
    found: dict[tuple[int, str | None, str | None], SetupAttempt] = {}
    for attempt in attempts:
        if attempt.outcome == _ACCEPTED:
            break
        found.setdefault((attempt.status_code, attempt.reason, attempt.sender), attempt)
    return tuple(found.values())[:_MAX_SHOWN_ATTEMPTS]
