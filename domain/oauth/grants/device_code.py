"""The device authorization grant: device requests and polls (RFC 8628 sections 3.1, 3.4, 3.5)."""

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
from domain.core.clock import MAX_HOST_CLOCK_DIFFERENCE
from domain.core.database.bulk_statements import asynchronous_commit
from domain.oauth.client_requests import ClientEndpoint, ClientParameters, ClientRequest, TokenGrant
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.credential_lookup import (
    CLIENT_QUERY,
    DEVICE_CODE_LOOKUP,
    LookupWithWrite,
    build_lookup_with_write,
    build_registered_scopes_condition,
    select_single_value,
)
from domain.oauth.clients.credential_rows import DeviceRow, GrantRow
from domain.oauth.device_authorizations import (
    build_device_request,
    build_device_request_insert,
    create_device_request,
)
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.rejection_reasons import (
    DENIED_BY_OWNER,
    RejectedGrantError,
    Rejection,
    RejectionReason,
)
from domain.oauth.requested_scopes import parse_allowed_scopes, parse_known_scopes
from domain.oauth.tokens import (
    DEVICE_CODE_REDEMPTION,
    build_grant,
    build_token_response,
    can_refresh,
    finish_device_request,
    generate_token_pair,
    redeem_credential,
)
from models import DeviceAuthorization

_USED_CODE_REASON = RejectionReason(
    name="used_device_code",
    title="Device code used twice",
    advice="Stop polling as soon as you have received the tokens.",
)
_EXPIRED_CODE_REASON = RejectionReason(
    name="expired_device_code",
    title="Expired device code",
    advice="Request a new device code and show the new user code.",
)
#: One error for unknown codes, codes of other clients and codes of inactive users. The thief of a
#: code must not be able to distinguish these cases.
UNKNOWN_CODE = Rejection(
    sentence="The device code is unknown, or was issued to another client.",
    reason=RejectionReason(
        name="unknown_device_code",
        title="Unknown device code",
        advice="Poll with the device_code of the response, not with the user_code.",
    ),
)
REDEEMED_CODE = Rejection(
    sentence="The device code has already been redeemed.", reason=_USED_CODE_REASON
)
WITHDRAWN_CODE = Rejection(
    sentence="The approval of the device was withdrawn.", reason=DENIED_BY_OWNER
)
REDEEMED_OR_WITHDRAWN_CODE = Rejection(
    sentence="The device code has already been redeemed, or its approval was withdrawn.",
    reason=_USED_CODE_REASON,
)
#: Maximum time that a poll is assumed to take over the network.
_MAX_NETWORK_TIME = timedelta(seconds=1)
#: Time by which a poll may arrive early without being rejected. Two polls may take different times
#: over the network, and hosts with different clocks may record them.
_EARLY_TOLERANCE = _MAX_NETWORK_TIME + MAX_HOST_CLOCK_DIFFERENCE
_NO_GRACE = timedelta(0)
#: Number of seconds that each early poll adds to the interval (section 3.5).
_SLOW_DOWN_SECONDS = 5
_ONE_SECOND = literal_column("interval '1 second'", Interval)
#: Maximum polling interval in seconds; device codes expire earlier.
_MAX_INTERVAL_SECONDS = 3600

_CAN_SLOW_DOWN = DeviceAuthorization.interval <= _MAX_INTERVAL_SECONDS - _SLOW_DOWN_SECONDS


def _build_poll_statement(device_id: ColumnElement[int], begin: ColumnElement[datetime]) -> Update:
    """Return the UPDATE that records a poll and returns the new polling interval.

    The commit is not awaited, since losing a poll in a crash does no harm.
    """
    interval, is_early = DeviceAuthorization.interval, DeviceAuthorization.last_polled_at > begin
    return (
        update(DeviceAuthorization)
        .where(DeviceAuthorization.id == device_id, asynchronous_commit())
        .values(
            last_polled_at=bindparam("now"),
            interval=case(
                (and_(is_early, _CAN_SLOW_DOWN), interval + _SLOW_DOWN_SECONDS), else_=interval
            ),
        )
        .returning(DeviceAuthorization.interval)
    )


_RECORD_POLL_STATEMENT = _build_poll_statement(bindparam("device_id"), bindparam("begin"))


def _list_pending_conditions(found: Any) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions for recording a poll of a pending request."""
    return (
        found.device_application_id == found.id,
        found.device_redeemed_at.is_(None),
        found.device_denied_at.is_(None),
        found.device_approved_at.is_(None),
        found.device_expires_at > bindparam("now"),
        found.device_interval <= _MAX_INTERVAL_SECONDS - _SLOW_DOWN_SECONDS,
    )


def _build_poll_write(met: CTE) -> CTE:
    latest = bindparam("latest", type_=DeviceAuthorization.last_polled_at.type)
    interval = DeviceAuthorization.interval * _ONE_SECOND
    return _build_poll_statement(select_single_value(met, "device_id"), latest - interval).cte(
        "polled"
    )


POLL_LOOKUP = build_lookup_with_write(
    DEVICE_CODE_LOOKUP.statement, _list_pending_conditions, _build_poll_write
)
DEVICE_REQUEST_LOOKUP = build_lookup_with_write(
    CLIENT_QUERY,
    lambda client: (build_registered_scopes_condition(bindparam("scopes", type_=Text), client),),
    lambda met: build_device_request_insert("postgresql", met.c.id).cte("stored"),
)
#: The default scope of a device request (RFC 6749 section 3.3).
DEFAULT_DEVICE_SCOPE = "read_user"


class DevicePollParameters(ClientParameters):
    """Request parameters of a poll (RFC 8628 section 3.4)."""

    grant_type: Literal["urn:ietf:params:oauth:grant-type:device_code"]
    device_code: str


class ExpiredDeviceCodeError(ExpiredTokenError):
    """Error for a code that the user neither approved nor denied in time (RFC 8628 section 3.5)."""

    description = "The device code has expired. Request a new code."
    reason = _EXPIRED_CODE_REASON


class EarlyPollError(SlowDownError):
    """Error for a poll that arrived too early, which increases the polling interval."""

    def __init__(self, interval: int) -> None:
        """Store the new interval in seconds, which is part of the response."""
        super().__init__(f"Poll every {interval} seconds from now on.")
        self.interval = interval

    def get_body(self) -> list[tuple[str, object]]:
        """Return the members of the response, including `interval` (section 3.2)."""
        return [*super().get_body(), ("interval", self.interval)]


class ApprovedDevice(NamedTuple):
    """An approved device request with its grant."""

    device: DeviceRow
    grant: GrantRow


class DeviceCodeGrant(TokenGrant[DeviceRow, ApprovedDevice], AuthlibDeviceCodeGrant):
    """The device code grant, which issues tokens when a user has approved the device."""

    CREDENTIAL = "device code"
    REQUEST = DevicePollParameters
    REASONS = (UNKNOWN_CODE.reason, _USED_CODE_REASON, _EXPIRED_CODE_REASON)
    IS_REGISTRABLE = True
    SWITCH = attrgetter("devices.is_offered")
    LOOKUP = DEVICE_CODE_LOOKUP

    def get_lookup_with_write(self, request: ProtocolRequest) -> LookupWithWrite | None:
        """Return the lookup that also records the poll of a pending request."""
        del request
        values = {"latest": self.server.context.now + _EARLY_TOLERANCE}
        return LookupWithWrite(POLL_LOOKUP, values)

    def validate_request(self, client_request: ClientRequest[DeviceRow]) -> ApprovedDevice:
        """Check the code and the state of the request, and return the approved request.

        A code that another client presents is rejected but stays valid, like a refresh token.
        Unlike an authorization code, a device code never appears in a browser's address bar, where
        it could leak.
        """
        found = client_request.get_credential(UNKNOWN_CODE)
        if found.device_application_id != client_request.get_client().application.id:
            raise RejectedGrantError(UNKNOWN_CODE)
        if found.device_redeemed_at is not None:
            raise RejectedGrantError(REDEEMED_CODE)
        self._check_approved(found, client_request.written)
        if found.grant is None:
            raise RejectedGrantError(WITHDRAWN_CODE)
        return ApprovedDevice(device=found, grant=found.grant)

    def _check_approved(self, device: DeviceRow, interval: int | None) -> None:
        """Check that a request is approved, and raise the error for its state otherwise.

        `interval` is the result of a poll that is already recorded. Approved codes stay valid a
        little longer than other codes. If the user approves in the last second, the next poll
        arrives one interval later and must still find the approval.
        """
        if device.device_denied_at is not None:
            raise AccessDeniedError("The user has denied the request.")
        is_approved = device.device_approved_at is not None
        grace = (
            timedelta(seconds=device.device_interval) + _MAX_NETWORK_TIME
            if is_approved
            else _NO_GRACE
        )
        if device.device_expires_at + grace <= self.server.context.now:
            raise ExpiredDeviceCodeError
        if device.device_approved_at is None:
            self._reject_poll(device, interval)

    def _reject_poll(self, device: DeviceRow, interval: int | None) -> NoReturn:
        """Record the poll, and raise slow_down or authorization_pending.

        The database computes the interval, so that each of several concurrent early polls increases
        it. A poll is not recorded if the interval has reached its maximum.
        """
        known, last = device.device_interval, device.device_last_polled_at
        is_early = last is not None and last > self._compute_interval_start(device)
        is_longest = known > _MAX_INTERVAL_SECONDS - _SLOW_DOWN_SECONDS
        if interval is None:
            interval = known if is_early and is_longest else self._record_poll(device)
        if is_early or interval > known:
            raise EarlyPollError(interval)
        raise AuthorizationPendingError("The user has not decided yet.")

    def _record_poll(self, device: DeviceRow) -> int:
        """Store the poll, and return the new interval in seconds."""
        connection, now = self.server.context.connection, self.server.context.now
        begin = self._compute_interval_start(device)
        values = {"device_id": device.device_id, "now": now, "begin": begin}
        interval: int = connection.execute_statement(_RECORD_POLL_STATEMENT, values)[0][0]
        return interval

    def _compute_interval_start(self, device: DeviceRow) -> datetime:
        """Return the start of the polling interval.

        A poll is too early if the previous poll was recorded after this time.
        """
        interval = timedelta(seconds=device.device_interval)
        return self.server.context.now - interval + _EARLY_TOLERANCE

    def execute_request(
        self, client_request: ClientRequest[DeviceRow], checked_input: ApprovedDevice
    ) -> Mapping[str, object]:
        """Consume the approval and store the token pair.

        Only one of several concurrent polls succeeds. All polls fail if the user has revoked the
        approval.
        """
        context, client = self.server.context, client_request.get_client()
        device_id = checked_input.device.device_id
        is_renewable = can_refresh(client.application, checked_input.grant.grant_scopes)
        grant = build_grant(
            checked_input.grant,
            client,
            key_thumbprint=client_request.key_thumbprint,
            is_renewable=is_renewable,
        )
        pair = generate_token_pair(is_renewable=is_renewable)
        is_active = checked_input.grant.user_state == ACTIVE
        if not is_active or not redeem_credential(
            DEVICE_CODE_REDEMPTION, pair, grant, context, spent_device=device_id
        ):
            # The request ends permanently, even if the user is unlocked later.
            finish_device_request(device_id, context)
            raise RejectedGrantError(REDEEMED_OR_WITHDRAWN_CODE if is_active else UNKNOWN_CODE)
        issued = build_token_response(pair, grant, context)
        is_bound = client_request.key_thumbprint is not None
        # The example in RFC 8628 capitalizes the token type in this response.
        kind = issued["token_type"] if is_bound else "Bearer"
        return {**issued, "token_type": kind}


class DeviceAuthorizationEndpoint(ClientEndpoint[None, str], AuthlibDeviceAuthorizationEndpoint):
    """The POST /oauth/authorize_device endpoint, which issues a device code and a user code."""

    def check_client_permission(self, client: Client, request: ProtocolRequest) -> None:
        """Reject clients that are not registered for the device grant (RFC 7591 section 2)."""
        del request
        client.require_grant_type(DeviceCodeGrant.GRANT_TYPE)

    def get_lookup_with_write(self, request: ProtocolRequest) -> LookupWithWrite | None:
        """Return the lookup that also stores the device request."""
        try:
            scopes = parse_known_scopes(request.get_parameter("scope") or DEFAULT_DEVICE_SCOPE)
        except InvalidScopeError:
            return None
        new, values = build_device_request(" ".join(scopes), self.server.context)
        return LookupWithWrite(DEVICE_REQUEST_LOOKUP, values, new)

    def validate_request(self, client_request: ClientRequest[None]) -> str:
        """Return the requested scopes.

        Raise invalid_scope if a scope is unknown or not allowed.
        """
        text = client_request.request.get_parameter("scope") or DEFAULT_DEVICE_SCOPE
        return parse_allowed_scopes(text, client_request.get_client())

    def execute_request(
        self, client_request: ClientRequest[None], checked_input: str
    ) -> Mapping[str, object]:
        """Store the device request and return its codes (section 3.2)."""
        policy = self.server.context.policy
        application, context = client_request.get_client().application, self.server.context
        new = client_request.written or create_device_request(
            application.id, checked_input, context=context
        )
        page = f"{policy.issuer}/oauth/device"
        return {
            "device_code": new.device_code,
            "user_code": new.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': new.user_code})}",
            "expires_in": int(policy.devices.code_lifetime.total_seconds()),
            "interval": policy.devices.poll_interval,
        }
