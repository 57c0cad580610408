"""The device authorization grant (RFC 8628): device requests (3.1) and polls (3.4, 3.5)."""

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
    advice="Stop polling as soon as you have received the tokens.",
)
_EXPIRED = Reason(
    name="expired_device_code",
    title="Expired device code",
    advice="Request a new device code and show the new user code.",
)
#: The error is the same in all these cases, so that the thief of a code learns nothing more.
UNKNOWN_CODE = Refusal(
    sentence="The device code is unknown, or was issued to another client.",
    reason=Reason(
        name="unknown_device_code",
        title="Unknown device code",
        advice="Poll with the device_code of the response, not with the user_code.",
    ),
)
REDEEMED_CODE = Refusal(sentence="The device code has already been redeemed.", reason=_USED)
WITHDRAWN_CODE = Refusal(sentence="The approval of the device was withdrawn.", reason=DENIED)
LOST_CODE = Refusal(
    sentence="The device code has already been redeemed, or its approval was withdrawn.",
    reason=_USED,
)
#: Maximum time that a poll may spend on the network.
_ON_THE_WAY = timedelta(seconds=1)
#: Tolerance before a poll counts as too early. Two polls may take different times on the network,
#: and hosts with different clocks may record them.
_EARLY_TOLERANCE = _ON_THE_WAY + HOST_CLOCK_DIFFERENCE
_NONE = timedelta(0)
#: Number of seconds that each early poll adds to the interval (section 3.5).
_SLOWER = 5
_SECOND = literal_column("interval '1 second'", Interval)
#: Maximum polling interval in seconds; device codes expire earlier.
_LONGEST_INTERVAL = 3600

_can_slow_down = DeviceAuthorization.interval <= _LONGEST_INTERVAL - _SLOWER


def _record_poll(device_id: ColumnElement[int], begin: ColumnElement[datetime]) -> Update:
    """Return the UPDATE that records a poll and returns the new polling interval.

    The commit is not awaited, since losing a poll in a crash does no harm.
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
    """Return the conditions under which `check` records a poll."""
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
    """Request parameters of a poll (RFC 8628 section 3.4)."""

    grant_type: Literal["urn:ietf:params:oauth:grant-type:device_code"]
    device_code: str


class ExpiredCodeError(ExpiredTokenError):
    """expired_token: the user did not decide in time (RFC 8628 section 3.5)."""

    description = "The device code has expired. Request a new code."
    reason = _EXPIRED


class TooEarlyPollError(SlowDownError):
    """slow_down: the poll arrived too early, so the polling interval increases."""

    def __init__(self, interval: int) -> None:
        """Store the new interval in seconds, which is part of the response."""
        super().__init__(f"Poll every {interval} seconds from now on.")
        self.interval = interval

    def get_body(self) -> list[tuple[str, object]]:
        """Return the members of the response, including `interval` (section 3.2)."""
        return [*super().get_body(), ("interval", self.interval)]


class ApprovedDevice(NamedTuple):
    """An approved device request with its grant."""

    device: FoundDevice
    grant: FoundGrant


class DeviceCodeGrant(TokenGrant[FoundDevice, ApprovedDevice], AuthlibDeviceCodeGrant):
    """The device code grant, which issues tokens when a user has approved the device."""

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
        """Check the code and the state of the request, and return the approved request.

        A code that another client presents is rejected but stays valid, like a refresh token.
        Unlike an authorization code, it never appears in a browser's address bar, where codes leak.
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
        """Check that a request is approved, and raise the error for its state otherwise.

        `interval` is the result of a poll that is already recorded. Approved codes stay valid a
        little longer than others. If the user approves in the last second, the next poll comes one
        interval later and must still find the approval.
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
        """Record the poll, and raise slow_down or authorization_pending.

        The database computes the interval, so that each of several concurrent early polls increases
        it. A poll is not recorded if the interval has reached its maximum.
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
        """Store the poll, and return the new interval in seconds."""
        connection, now = self.server.context.connection, self.server.context.now
        begin = self._begin_of_interval(found)
        values = {"device_id": found.device_id, "now": now, "begin": begin}
        interval: int = connection.all(_RECORD_POLL, values)[0][0]
        return interval

    def _begin_of_interval(self, found: FoundDevice) -> datetime:
        """Return the time after which a previous poll makes this poll too early."""
        interval = timedelta(seconds=found.device_interval)
        return self.server.context.now - interval + _EARLY_TOLERANCE

    def perform(
        self, asked: ClientRequest[FoundDevice], checked: ApprovedDevice
    ) -> Mapping[str, object]:
        """Consume the approval and store the pair atomically; one of concurrent polls succeeds.

        All polls fail if the user has revoked the approval meanwhile.
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
            # End the request for good, even if the user is unlocked later.
            end_device(device_id, context)
            raise RefusedGrantError(LOST_CODE if is_active else UNKNOWN_CODE)
        issued = token_response(pair, grant, context)
        is_bound = asked.key_thumbprint is not None
        # The example in RFC 8628 capitalizes the token type in this response.
        kind = issued["token_type"] if is_bound else "Bearer"
        return {**issued, "token_type": kind}


class DeviceAuthorizationEndpoint(ClientEndpoint[None, str], AuthlibDeviceAuthorizationEndpoint):
    """The endpoint POST /oauth/authorize_device, which issues a device code and a user code."""

    def check_client(self, client: Client, request: ProtocolRequest) -> None:
        """Reject clients that are not registered for the device grant (RFC 7591 section 2)."""
        del request
        client.require_grant_type(DeviceCodeGrant.GRANT_TYPE)

    def write_with_lookup(self, request: ProtocolRequest) -> LookupWithWrite | None:
        """Return the lookup that also stores the device request."""
        try:
            scopes = known_scopes(request.value("scope") or DEFAULT_SCOPE)
        except InvalidScopeError:
            return None
        new, values = new_request(" ".join(scopes), self.server.context)
        return LookupWithWrite(WITH_REQUEST, values, new)

    def check(self, asked: ClientRequest[None]) -> str:
        """Return the requested scopes.

        Raise invalid_scope if a scope is unknown or not allowed.
        """
        text = asked.request.value("scope") or DEFAULT_SCOPE
        return allowed_scopes(text, asked.get_client())

    def perform(self, asked: ClientRequest[None], checked: str) -> Mapping[str, object]:
        """Store the device request and return its codes (section 3.2)."""
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
