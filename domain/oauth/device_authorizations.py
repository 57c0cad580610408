"""Device authorization requests, and the decisions of users on these requests (RFC 8628).

The states of a request are:

- waiting
- opened: one user has typed the code, and no other user can open the request until the user signs
  out
- approved or denied
- redeemed

An approval also creates an authorization, as in the authorization code grant. The user can
therefore revoke the access even before the device has fetched its tokens.
"""

import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import cache

from sqlalchemy import BigInteger, ColumnElement, Executable, Row, Select, bindparam, select
from sqlalchemy.sql.dml import ReturningInsert

from domain.access.scopes import filter_grantable_scopes
from domain.accounts.attempt_counters import AttemptLimit, consume_attempt, refund_attempt
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import (
    asynchronous_commit,
    build_bulk_update,
    build_insert,
)
from domain.core.errors import ConflictError, ForbiddenError, InvalidError
from domain.core.ip_addresses import get_client_network
from domain.core.randomness import generate_random_hex, generate_random_letters
from domain.core.types.base import get_column_values
from domain.oauth.clients.allowed_groups import is_in_allowed_groups
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.user_agents import describe_device
from domain.oauth.consent.approvals import Approver
from domain.oauth.context import OAuthContext
from domain.oauth.rejection_reasons import NOT_IN_ALLOWED_GROUPS
from models import Application, Authorization, DeviceAuthorization

#: Letters of user codes: no vowels, so that no words occur, and no ambiguous letters.
USER_CODE_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
#: Length of user codes. 20**8 codes are 34.5 bits, enough with a short lifetime and few guesses.
USER_CODE_LENGTH = 8
#: Maximum number of typed characters, with room for spaces and dashes.
MAX_TYPED_CODE_LENGTH = 64
_STORED_COLUMNS = (
    "scopes",
    "device_code_digest",
    "user_code_digest",
    "created_at",
    "expires_at",
    "interval",
    "address",
    "user_agent",
)


def generate_user_code() -> str:
    """Return a random user code of eight letters, without separators."""
    return generate_random_letters(USER_CODE_ALPHABET, USER_CODE_LENGTH)


def format_user_code(code: str) -> str:
    """Return a code in display form: two groups of four letters."""
    return f"{code[:4]}-{code[4:]}"


def parse_user_code(typed_code: str) -> str | None:
    """Return the code in a user's input, or None if it cannot be a code.

    Case, spaces and dashes are ignored, and full-width letters are accepted.
    """
    if len(typed_code) > MAX_TYPED_CODE_LENGTH:
        return None
    letters = unicodedata.normalize("NFKC", typed_code).upper()
    code = "".join(each for each in letters if not _is_separator(each))
    return code if len(code) == USER_CODE_LENGTH and set(code) <= set(USER_CODE_ALPHABET) else None


def _is_separator(character: str) -> bool:
    """Return whether a character is a separator: a space, a dash or an invisible character."""
    return character.isspace() or unicodedata.category(character) in {"Pd", "Zs", "Cf"}


_MALFORMED_CODE = "A code has eight letters. Compare it with the code on the device."
_UNKNOWN_CODE = (
    "No device is waiting for this code. Compare the code with the device. If it is the same, "
    "request a new code on the device."
)
#: Messages for expired and used codes. Such codes give no access, so users may learn that the codes
#: existed.
_EXPIRED_CODE = "This code has expired. Request a new code on the device."
_USED_CODE = (
    "This code was already used. If the device is still waiting, request a new code on the device."
)


class UnknownUserCodeError(InvalidError):
    """Error for a user code that does not belong to a request that this user can open."""

    def __init__(self, reason: str) -> None:
        """Set the reason as the message."""
        super().__init__(reason, field="user_code")


class OpenedByAnotherUserError(InvalidError):
    """Error for a request that another user has opened and can release."""

    def __init__(self) -> None:
        """Set the message, which suggests the other account or a new code as a solution."""
        super().__init__(
            "This code was opened with another account. Sign in with that account and select "
            "“Use another account”, or request a new code on the device.",
            field="user_code",
        )


class AlreadyDecidedError(ConflictError):
    """Error for a request that can no longer be decided."""

    def __init__(self) -> None:
        """Set the message, which names the field of the user code."""
        super().__init__(
            "This request was already answered, or the code has expired. Request a new code on "
            "the device.",
            field="user_code",
        )


class DeviceDecision(Enum):
    """A user's decision to approve or deny a device request."""

    APPROVE = "approve"
    DENY = "deny"


_EVENT_KINDS = {
    DeviceDecision.APPROVE: EventKind.DEVICE_APPROVED,
    DeviceDecision.DENY: EventKind.DEVICE_DENIED,
}


@dataclass(frozen=True, kw_only=True)
class NewDeviceCodes:
    """The two codes of a device authorization response."""

    device_code: str = field(repr=False)
    #: User code in display form, such as `BCDF-GHJK`.
    user_code: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class DeviceRequest:
    """A device request, as shown on the page where the user approves or denies it."""

    id: int
    application_id: int
    scopes: tuple[str, ...]
    user_code: str
    created_at: datetime
    expires_at: datetime
    address: str | None
    #: User-Agent header of the device.
    user_agent: str | None

    @property
    def device(self) -> str:
        """The device, as described by its User-Agent header."""
        return describe_device(self.user_agent)


@dataclass(frozen=True, kw_only=True)
class DisplayedDeviceRequest:
    """The displayed parts of a device request, to which the user's decision applies."""

    id: int
    #: User code. SQLite reuses IDs, so a later request may have the same ID but another code.
    user_code: str
    #: Scopes that the page showed; the application may have lost some of them since then.
    scopes: tuple[str, ...]


def build_device_request(
    scopes: str, context: OAuthContext
) -> tuple[NewDeviceCodes, dict[str, object]]:
    """Return the codes of a new request, and the column values to store."""
    device_code, user_code, digest = (
        generate_random_hex(32),
        generate_user_code(),
        context.keyring.compute_digest,
    )
    source, policy = context.source, context.policy.devices
    values = {
        "scopes": scopes,
        "device_code_digest": digest(device_code),
        "user_code_digest": digest(user_code),
        "created_at": context.now,
        "expires_at": context.now + policy.code_lifetime,
        "interval": policy.poll_interval,
        "address": source.address,
        "user_agent": (source.user_agent or "")[:255] or None,
    }
    return NewDeviceCodes(device_code=device_code, user_code=format_user_code(user_code)), values


def create_device_request(
    application_id: int, scopes: str, *, context: OAuthContext
) -> NewDeviceCodes:
    """Store a device request, and return its two codes (section 3.1)."""
    store = _get_device_request_insert(context.connection.dialect_name)
    while True:
        # If two devices are assigned the same code, the second device is assigned a new code.
        new, values = build_device_request(scopes, context)
        if context.connection.execute_statement(
            store, {**values, "application_id": application_id}
        ):
            return new


@cache
def _get_device_request_insert(dialect_name: str) -> Executable:
    return build_device_request_insert(dialect_name, bindparam("application_id", type_=BigInteger))


def build_device_request_insert(
    dialect_name: str, application_id: ColumnElement[int]
) -> ReturningInsert[int]:
    """Return the INSERT statement for a device request.

    The statement returns a row unless the code is already in use. The commit does not wait for the
    disk. If the row is lost in a crash, the device code is unknown.
    """
    columns = DeviceAuthorization.__table__.c
    others = (bindparam(name, type_=columns[name].type) for name in _STORED_COLUMNS)
    row = select(application_id, *others).where(asynchronous_commit())
    store = build_insert(dialect_name, DeviceAuthorization)
    store = store.from_select(("application_id", *_STORED_COLUMNS), row)
    return store.on_conflict_do_nothing().returning(DeviceAuthorization.id)


def open_device_request(typed_code: str, *, user_id: int, context: OAuthContext) -> DeviceRequest:
    """Return the request with a user code, and reserve it for this user (section 5.1).

    Raise UnknownUserCodeError or OpenedByAnotherUserError, or TooManyAttemptsError after too many
    guesses. The caller must not roll back the transaction on these errors, since the guesses must
    be counted.
    """
    code = parse_user_code(typed_code)
    if code is None:
        raise UnknownUserCodeError(_MALFORMED_CODE)
    limits = _build_attempt_limits(user_id, context)
    session, keyring = context.session, context.keyring
    for limit in limits:
        consume_attempt(limit, session=session, keyring=keyring, now=context.now)
    digests = keyring.compute_digests(code)
    row = session.execute(
        _select_requests_for_update().where(DeviceAuthorization.user_code_digest.in_(digests))
    ).first()
    if row is None or not _is_request_open(row, context):
        raise UnknownUserCodeError(_explain_unusable_code(row, context))
    if row[0].user_id not in {None, user_id}:
        raise OpenedByAnotherUserError
    for limit in limits:
        # Refund only this attempt: a user's own code must not reset earlier wrong guesses.
        refund_attempt(limit, session=session, keyring=keyring)
    device = row[0]
    device.user_id = user_id
    return _build_view(device, _get_allowed_scopes(row), format_user_code(code))


def _explain_unusable_code(
    row: Row[DeviceAuthorization, Application] | None, context: OAuthContext
) -> str:
    if row is not None and _get_decision(row[0]) is not None:
        return _USED_CODE
    if row is not None and row[0].expires_at <= context.now:
        return _EXPIRED_CODE
    return _UNKNOWN_CODE


def release_device_requests(user_id: int, *, context: OAuthContext) -> None:
    """Release the undecided requests of a user, so that other users can open them.

    A user may have opened a code with the wrong account before signing out.
    """
    context.session.execute(
        build_bulk_update(DeviceAuthorization)
        .where(
            DeviceAuthorization.user_id == user_id,
            DeviceAuthorization.approved_at.is_(None),
            DeviceAuthorization.denied_at.is_(None),
            DeviceAuthorization.expires_at > context.now,
        )
        .values(user_id=None)
    )


def decide_device_request(
    displayed_device_request: DisplayedDeviceRequest,
    decision: DeviceDecision,
    approval: Approver,
    *,
    context: OAuthContext,
) -> str:
    """Store the decision on a device request, and return the application's name.

    Repeating the decision has no effect. An approval grants only scopes that the page showed. Raise
    AlreadyDecidedError if the request is no longer open, or if another user has opened it.
    """
    digests = context.keyring.compute_digests(
        parse_user_code(displayed_device_request.user_code) or ""
    )
    is_it = (
        DeviceAuthorization.id == displayed_device_request.id
    ) & DeviceAuthorization.user_code_digest.in_(digests)
    row = context.session.execute(_select_requests_for_update().where(is_it)).first()
    # The user ID is None if the user has signed out in another browser, which releases the request.
    if row is None or row[0].user_id not in {None, approval.user_id}:
        raise AlreadyDecidedError
    device, application = row
    if _get_decision(device) is decision:
        return str(application.name)
    scopes = " ".join(
        each for each in _get_allowed_scopes(row).split() if each in displayed_device_request.scopes
    )
    if not _is_request_open(row, context) or not scopes:
        raise AlreadyDecidedError
    device.user_id = approval.user_id
    if decision is DeviceDecision.APPROVE:
        if not is_in_allowed_groups(application.allowed_group_ids, approval.user_id, context):
            raise ForbiddenError(NOT_IN_ALLOWED_GROUPS.sentence)
        _store_approval(device, scopes, approval, context)
    else:
        device.denied_at = context.now
    _record_decision(decision, row, scopes, context)
    return str(application.name)


def _record_decision(
    decision: DeviceDecision,
    row: Row[DeviceAuthorization, Application],
    scopes: str,
    context: OAuthContext,
) -> None:
    device, application = row
    context.record_event(
        _EVENT_KINDS[decision],
        application,
        user_id=device.user_id,
        details={
            "application_id": application.uid,
            "scopes": scopes,
            # IP address of the device; the event itself contains the address of the user.
            "device_address": device.address,
            "device": describe_device(device.user_agent),
        },
    )


def _store_approval(
    device: DeviceAuthorization, scopes: str, approval: Approver, context: OAuthContext
) -> None:
    device.approved_at, device.auth_time = context.now, approval.auth_time
    context.session.add(
        Authorization(
            application_id=device.application_id,
            user_id=approval.user_id,
            scopes=filter_grantable_scopes(scopes, may_administer=approval.may_administer),
            auth_time=approval.auth_time,
            methods=approval.methods,
            # The device code is stored like an authorization code.
            code_digest=device.device_code_digest,
            code_expires_at=device.expires_at,
            created_at=context.now,
        )
    )


def _select_requests_for_update() -> Select[DeviceAuthorization, Application]:
    """Return the query that locks device requests and selects them with their applications."""
    return (
        select(DeviceAuthorization, Application)
        .join(Application, Application.id == DeviceAuthorization.application_id)
        .with_for_update(of=DeviceAuthorization)
    )


def _is_request_open(row: Row[DeviceAuthorization, Application], context: OAuthContext) -> bool:
    device = row[0]
    return (
        _get_decision(device) is None
        and device.expires_at > context.now
        and bool(_get_allowed_scopes(row))  # The application may have changed.
    )


def _get_allowed_scopes(row: Row[DeviceAuthorization, Application]) -> str:
    """Return the requested scopes that the application is still registered for."""
    device, application = row
    return Client(application).get_allowed_scope(device.scopes)


def _get_decision(device: DeviceAuthorization) -> DeviceDecision | None:
    if device.denied_at is not None:
        return DeviceDecision.DENY
    return DeviceDecision.APPROVE if device.approved_at is not None else None


def _build_view(device: DeviceAuthorization, scopes: str, user_code: str) -> DeviceRequest:
    columns = {**get_column_values(device, DeviceRequest), "scopes": tuple(scopes.split())}
    return DeviceRequest(**columns, user_code=user_code)


def _build_attempt_limits(user_id: int, context: OAuthContext) -> tuple[AttemptLimit, ...]:
    policy = context.policy.devices
    client = get_client_network(context.source.address or "")
    subjects = (
        (f"user code, user {user_id}", policy.guesses_per_user),
        (f"user code, address {client}", policy.guesses_per_address),
        ("user code, everybody", policy.guesses_in_all),
    )
    return tuple(
        AttemptLimit(subject=subject, attempts=attempts, window=policy.guess_window)
        for subject, attempts in subjects
    )
