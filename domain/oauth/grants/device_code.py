"""The device authorization grant (RFC 8628): its endpoint (section 3.1), its polls (3.4, 3.5)."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Literal, NamedTuple, NoReturn
from urllib.parse import urlencode

from authlib.oauth2.rfc6749 import AccessDeniedError, InvalidScopeError
from authlib.oauth2.rfc8628 import AuthorizationPendingError, ExpiredTokenError, SlowDownError
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint as AuthlibDeviceAuthorizationEndpoint
from authlib.oauth2.rfc8628 import DeviceCodeGrant as AuthlibDeviceCodeGrant
from sqlalchemy import (
    CTE,
    ColumnElement,
    Interval,
    Text,
    Update,
    and_,
    bindparam,
    case,
    literal_column,
    update,
)

from domain.accounts.users import ACTIVE
from domain.core.clock import HOST_CLOCK_DIFFERENCE
from domain.core.database.rows import commits_unawaited
from domain.oauth.client_requests import ClientEndpoint, ClientParameters, ClientRequest, TokenGrant
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.credential_lookup import (
    CLIENT_ALONE,
    DEVICE_CODE,
    LookupWithWrite,
    are_registered,
    lookup_with_write,
    single_value,
)
from domain.oauth.clients.found_rows import FoundDevice, FoundGrant
from domain.oauth.devices import begin, new_request, store_request
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.reasons import DENIED, Reason, Refusal, RefusedGrantError
from domain.oauth.requested_scopes import allowed_scopes, known_scopes
from domain.oauth.tokens import (
    FOR_DEVICE_CODE,
    end_device,
    grant_in,
    may_refresh,
    new_pair,
    redeem,
    token_response,
)
from models import DeviceAuthorization

_USED = Reason(
    name="used_device_code",
    title="Device code used twice",
    advice="Stop polling once the tokens have arrived.",
)
_EXPIRED = Reason(
    name="expired_device_code",
    title="Expired device code",
    advice="Request a new device code and show the new user code.",
)
#: The same for all of these, since a thief of a code must learn no more.
UNKNOWN_CODE = Refusal(
    sentence="The device code is unknown, or was issued to another client.",
    reason=Reason(
        name="unknown_device_code",
        title="Unknown device code",
        advice="Poll with the device_code of the answer, not with the user_code.",
    ),
)
REDEEMED_CODE = Refusal(sentence="The device code has already been redeemed.", reason=_USED)
WITHDRAWN_CODE = Refusal(sentence="The approval of the device was withdrawn.", reason=DENIED)
LOST_CODE = Refusal(
    sentence="The device code has already been redeemed, or its approval was withdrawn.",
    reason=_USED,
)
#: So long a poll may be on its way.
_ON_THE_WAY = timedelta(seconds=1)
#: A poll is early only if it arrives sooner than the interval minus this. Two polls travel for
#: different times, and different hosts may note their arrival.
_EARLY_TOLERANCE = _ON_THE_WAY + HOST_CLOCK_DIFFERENCE
_NONE = timedelta(0)
#: Seconds that each poll adds which comes too early (section 3.5).
_SLOWER = 5
_SECOND = literal_column("interval '1 second'", Interval)
#: More than any device code lives.
_LONGEST_INTERVAL = 3600

_can_slow_down = DeviceAuthorization.interval <= _LONGEST_INTERVAL - _SLOWER


def _record_poll(device_id: ColumnElement[int], begin: ColumnElement[datetime]) -> Update:
    """Return the UPDATE that records a poll, and returns the interval from then on.

    A poll that is lost in a crash does no harm.
    """
    interval, is_early = DeviceAuthorization.interval, DeviceAuthorization.last_polled_at > begin
    return (
        update(DeviceAuthorization)
        .where(DeviceAuthorization.id == device_id, commits_unawaited())
        .values(
            last_polled_at=bindparam("now"),
            interval=case((and_(is_early, _can_slow_down), interval + _SLOWER), else_=interval),
        )
        .returning(DeviceAuthorization.interval)
    )


_RECORD_POLL = _record_poll(bindparam("device_id"), bindparam("begin"))


def _is_pending(found: Any) -> Sequence[ColumnElement[bool]]:
    """Return conditions under which `check` records a poll."""
    return (
        found.device_application_id == found.id,
        found.device_redeemed_at.is_(None),
        found.device_denied_at.is_(None),
        found.device_approved_at.is_(None),
        found.device_expires_at > bindparam("now"),
        found.device_interval <= _LONGEST_INTERVAL - _SLOWER,
    )


def _record_found_poll(met: CTE) -> CTE:
    latest = bindparam("latest", type_=DeviceAuthorization.last_polled_at.type)
    interval = DeviceAuthorization.interval * _SECOND
    return _record_poll(single_value(met, "device_id"), latest - interval).cte("polled")


WITH_POLL = lookup_with_write(DEVICE_CODE.statement, _is_pending, _record_found_poll)
WITH_REQUEST = lookup_with_write(
    CLIENT_ALONE,
    lambda client: (are_registered(bindparam("scopes", type_=Text), client),),
    lambda met: store_request("postgresql", met.c.id).cte("stored"),
)
#: The default scope of a device request (RFC 6749 section 3.3).
DEFAULT_SCOPE = "read_user"


class DeviceExchange(ClientParameters):
    """A device code for tokens, asked again and again (RFC 8628 section 3.4)."""

    grant_type: Literal["urn:ietf:params:oauth:grant-type:device_code"]
    device_code: str


class ExpiredCodeError(ExpiredTokenError):
    """The user has not decided in time (RFC 8628 section 3.5)."""

    description = "The device code has expired. Ask for a new one."
    reason = _EXPIRED


class TooEarlyPollError(SlowDownError):
    """slow_down: the poll arrived too early, and the interval is longer from now on."""

    def __init__(self, interval: int) -> None:
        """Store the new interval in seconds, which the response contains."""
        super().__init__(f"Poll every {interval} seconds from now on.")
        self.interval = interval

    def get_body(self) -> list[tuple[str, object]]:
        """Return the members of the response, with `interval` as at the start (section 3.2)."""
        return [*super().get_body(), ("interval", self.interval)]


class ApprovedDevice(NamedTuple):
    """An approved device request with its grant."""

    device: FoundDevice
    grant: FoundGrant


class DeviceCodeGrant(TokenGrant[FoundDevice, ApprovedDevice], AuthlibDeviceCodeGrant):
    """Issues the tokens of a device once a user has approved its request."""

    CREDENTIAL = "device code"
    REQUEST = DeviceExchange
    REASONS = (UNKNOWN_CODE.reason, _USED, _EXPIRED)
    IS_REGISTRABLE = True
    SWITCH = attrgetter("devices.is_offered")
    LOOKUP = DEVICE_CODE

    def write_with_lookup(self, request: ProtocolRequest) -> LookupWithWrite | None:
        """Return the lookup that also records the poll of a pending request."""
        del request
        values = {"latest": self.server.context.now + _EARLY_TOLERANCE}
        return LookupWithWrite(WITH_POLL, values)

    def check(self, asked: ClientRequest[FoundDevice]) -> ApprovedDevice:
        """Check the code and the state of the request; return the approved request.

        A code of another client is refused and lives on, like a refresh token: it has never been
        in a browser's address, where codes of redirects get lost.
        """
        found = asked.get_credential(UNKNOWN_CODE)
        if found.device_application_id != asked.get_client().application.id:
            raise RefusedGrantError(UNKNOWN_CODE)
        if found.device_redeemed_at is not None:
            raise RefusedGrantError(REDEEMED_CODE)
        self._refuse_unless_approved(found, asked.written)
        if found.grant is None:
            raise RefusedGrantError(WITHDRAWN_CODE)
        return ApprovedDevice(device=found, grant=found.grant)

    def _refuse_unless_approved(self, found: FoundDevice, interval: int | None) -> None:
        """Raise the error for a request that is not approved; `interval` is of a recorded poll.

        A user who approves in the last second reads that the device is connected: its next poll
        comes an interval later, and must find the approval.
        """
        if found.device_denied_at is not None:
            raise AccessDeniedError("The user has denied the request.")
        is_approved = found.device_approved_at is not None
        grace = timedelta(seconds=found.device_interval) + _ON_THE_WAY if is_approved else _NONE
        if found.device_expires_at + grace <= self.server.context.now:
            raise ExpiredCodeError
        if found.device_approved_at is None:
            self._refuse_to_wait(found, interval)

    def _refuse_to_wait(self, found: FoundDevice, interval: int | None) -> NoReturn:
        """Store the poll; raise slow_down or authorization_pending.

        The database decides that: of several polls at once each makes the pause longer. Only what
        makes no pause longer any more is not noted.
        """
        known, last = found.device_interval, found.device_last_polled_at
        is_early = last is not None and last > self._begin_of_interval(found)
        is_longest = known > _LONGEST_INTERVAL - _SLOWER
        if interval is None:
            interval = known if is_early and is_longest else self._record_poll(found)
        if is_early or interval > known:
            raise TooEarlyPollError(interval)
        raise AuthorizationPendingError("The user has not decided yet.")

    def _record_poll(self, found: FoundDevice) -> int:
        """Store the poll and return the new interval in seconds."""
        connection, now = self.server.context.connection, self.server.context.now
        begin = self._begin_of_interval(found)
        values = {"device_id": found.device_id, "now": now, "begin": begin}
        interval: int = connection.all(_RECORD_POLL, values)[0][0]
        return interval

    def _begin_of_interval(self, found: FoundDevice) -> datetime:
        """Return the moment after which the last poll makes this poll an early one."""
        interval = timedelta(seconds=found.device_interval)
        return self.server.context.now - interval + _EARLY_TOLERANCE

    def perform(
        self, asked: ClientRequest[FoundDevice], checked: ApprovedDevice
    ) -> Mapping[str, object]:
        """Consume the approval and store the pair atomically: one of concurrent polls succeeds.

        Nothing is left to consume if the user has taken the approval back meanwhile.
        """
        context, client = self.server.context, asked.get_client()
        device_id = checked.device.device_id
        is_renewable = may_refresh(client.application, checked.grant.grant_scopes)
        grant = grant_in(
            checked.grant,
            client,
            key_thumbprint=asked.key_thumbprint,
            is_renewable=is_renewable,
        )
        pair = new_pair(is_renewable=is_renewable)
        is_active = checked.grant.user_state == ACTIVE
        if not is_active or not redeem(
            FOR_DEVICE_CODE, pair, grant, context, spent_device=device_id
        ):
            # It is over, even if the user is unlocked some day.
            end_device(device_id, context)
            raise RefusedGrantError(LOST_CODE if is_active else UNKNOWN_CODE)
        issued = token_response(pair, grant, context)
        is_bound = asked.key_thumbprint is not None
        # The specification's example of this one response writes it with a capital.
        kind = issued["token_type"] if is_bound else "Bearer"
        return {**issued, "token_type": kind}


class DeviceAuthorizationEndpoint(ClientEndpoint[None, str], AuthlibDeviceAuthorizationEndpoint):
    """POST /oauth/authorize_device: issues a code for the device and one for its user."""

    def check_client(self, client: Client, request: ProtocolRequest) -> None:
        """Refuse a client that is not registered for the device grant (RFC 7591 section 2)."""
        del request
        client.require_grant_type(DeviceCodeGrant.GRANT_TYPE)

    def write_with_lookup(self, request: ProtocolRequest) -> LookupWithWrite | None:
        """Return the lookup that also stores the request of the device."""
        try:
            scopes = known_scopes(request.value("scope") or DEFAULT_SCOPE)
        except InvalidScopeError:
            return None
        new, values = new_request(" ".join(scopes), self.server.context)
        return LookupWithWrite(WITH_REQUEST, values, new)

    def check(self, asked: ClientRequest[None]) -> str:
        """Return the requested scopes, or raise invalid_scope."""
        text = asked.request.value("scope") or DEFAULT_SCOPE
        return allowed_scopes(text, asked.get_client())

    def perform(self, asked: ClientRequest[None], checked: str) -> Mapping[str, object]:
        """Store the request of the device and return its codes (section 3.2)."""
        policy = self.server.context.policy
        application, context = asked.get_client().application, self.server.context
        new = asked.written or begin(application.id, checked, context=context)
        page = f"{policy.issuer}/oauth/device"
        return {
            "device_code": new.device_code,
            "user_code": new.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': new.user_code})}",
            "expires_in": int(policy.devices.code_lifetime.total_seconds()),
            "interval": policy.devices.poll_interval,
        }
