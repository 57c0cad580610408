"""Programs that send alerts, known by User-Agent or body, and how they are configured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: The start of a body that is looked at, in bytes.
LOOKED_AT = 4096


@dataclass(frozen=True, kw_only=True)
class Sender:
    """A program, and where its configuration says what a request needs."""

    name: str
    #: What its User-Agent has, in lower case.
    agents: tuple[str, ...]
    #: What all of its bodies have.
    body_marks: tuple[bytes, ...] = ()
    #: How to send the key, in its own words.
    key: str
    #: How to send JSON; empty for one that always does.
    media_type: str = ""
    #: How to send less, or less often.
    volume: str = ""


_ANY_KEY = "Send the header “Authorization: Bearer KEY” with the key above."
_ANY_TYPE = "Send the header “Content-Type: application/json” and JSON as the body."
ALERTMANAGER = Sender(
    name="Alertmanager",
    agents=("alertmanager/",),
    body_marks=(b'"groupKey"', b'"receiver"', b'"externalURL"'),
    key=(
        "In alertmanager.yml, below http_config of the webhook, set authorization with type Bearer "
        "and the key above as credentials, then reload Alertmanager."
    ),
    volume=(
        "In alertmanager.yml, group more alerts (group_by), raise group_interval and "
        "repeat_interval of the route, or set max_alerts of the webhook."
    ),
)
#: The first that fits is taken: Grafana's body has the marks of Alertmanager's as well.
SENDERS = (
    Sender(
        name="Grafana",
        agents=("grafana",),
        body_marks=(b'"orgId"', b'"receiver"'),
        key=(
            "In Grafana, edit the contact point: below “Optional Webhook settings”, set the "
            "authorization header's scheme to Bearer and its credentials to the key above."
        ),
        volume=(
            "In Grafana, raise the timings of the notification policy, or set “Max alerts” of the "
            "contact point."
        ),
    ),
    ALERTMANAGER,
    Sender(
        name="curl",
        agents=("curl/",),
        key="Add --header 'Authorization: Bearer KEY' with the key above.",
        media_type=(
            "Add --header 'Content-Type: application/json', or use --json instead of --data."
        ),
    ),
    Sender(
        name="Wget",
        agents=("wget/",),
        key="Add --header='Authorization: Bearer KEY' with the key above.",
        media_type="Add --header='Content-Type: application/json'.",
    ),
    Sender(
        name="Apprise",
        agents=("apprise",),
        key="Start the URL with json:// or jsons:// and end it with ?+Authorization=Bearer%20KEY.",
    ),
    Sender(
        name="Monit",
        agents=("monit/",),
        key=(
            "Monit cannot send headers itself: have an exec action call curl, as in the snippet "
            "below."
        ),
        media_type="Have an exec action call curl, as in the snippet below.",
    ),
    Sender(
        name="Healthchecks",
        agents=("healthchecks",),
        key=(
            "In the webhook integration, add the line “Authorization: Bearer KEY” to the request "
            "headers, for down and for up."
        ),
        media_type=(
            "In the webhook integration, choose POST and add the line “Content-Type: "
            "application/json” to the request headers, for down and for up."
        ),
    ),
    Sender(
        name="collectd",
        agents=("collectd/",),
        key='In the Node of write_http, add Header "Authorization: Bearer KEY".',
        media_type='In the Node of write_http, set Format "JSON" and Notifications true.',
        volume="In the Node of write_http, set Metrics false, so that only notifications are sent.",
    ),
    Sender(
        name="Zabbix",
        agents=("zabbix",),
        key=(
            "In the script of the media type, call addHeader('Authorization: Bearer ' + key) with "
            "the key above as a parameter."
        ),
        media_type=(
            "In the script of the media type, call addHeader('Content-Type: application/json')."
        ),
    ),
    Sender(
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
    Sender(
        name="Python",
        agents=("python", "aiohttp", "httpx"),
        key='Pass headers={"Authorization": "Bearer KEY"} with the key above.',
        media_type="Pass the body as json=…, or set the header Content-Type to application/json.",
    ),
    Sender(
        name="PowerShell",
        agents=("powershell",),
        key='Pass -Headers @{Authorization = "Bearer KEY"} with the key above.',
        media_type='Pass -ContentType "application/json" and a body from ConvertTo-Json.',
    ),
)
ANY = Sender(name="The sender", agents=(), key=_ANY_KEY, media_type=_ANY_TYPE)


def sender_of(user_agent: str | None, body: bytes | None) -> Sender:
    """Return the program that sent a request, `ANY` if it is unknown."""
    folded, start = (user_agent or "").lower(), (body or b"")[:LOOKED_AT]
    by_agent = next((each for each in SENDERS if _has_any(folded, each.agents)), None)
    by_body = next((each for each in SENDERS if _has_all(start, each.body_marks)), None)
    return by_agent or by_body or ANY


def _has_any(folded: str, agents: Sequence[str]) -> bool:
    return any(agent in folded for agent in agents)


def _has_all(start: bytes, marks: Sequence[bytes]) -> bool:
    return bool(marks) and all(mark in start for mark in marks)


#: What to change when a request is refused, by the status code; `Sender` completes some.
_ADVICE: Mapping[int, str] = {
    400: (
        "Look at the body in the delivery: a template of the sender may be wrong, or quotes may be "
        "missing."
    ),
    403: "The request was correct, but this integration does not accept deliveries now.",
    408: "The body did not arrive in time. Check the network or the proxy between the two.",
    422: (
        "The body is JSON, but no alert is in it. Compare it with the example on the page “Send "
        "test alert”, and check that the type of this integration matches the sender."
    ),
}


def advice_for(status_code: int, sender: Sender) -> str:
    """Return what to change where, for a request that was refused with this status code."""
    of_sender = {
        401: sender.key,
        413: sender.volume or "Send fewer alerts in one request, or shorter texts.",
        415: sender.media_type or _ANY_TYPE,
        429: sender.volume or "Send less often, or several alerts in one request.",
        503: sender.volume or "Send less often; the sender tries again.",
    }
    return of_sender.get(status_code) or _ADVICE.get(status_code) or "Look at the delivery."
