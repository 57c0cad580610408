"""Typed rows of `credential_lookup`: a client and its credential.

Each type is a slice of a row, since statements select the columns in the order of the fields.
"""

from datetime import datetime
from typing import NamedTuple


class ClientRow(NamedTuple):
    """A registered application with one of its valid secrets, if it has any."""

    id: int
    #: client_id of the application.
    uid: str
    name: str
    #: Scopes that the application is registered for, separated by spaces.
    scopes: str
    confidential: bool
    refresh_for_devices: bool
    require_dpop: bool
    #: Grant types that an administrator has allowed, separated by spaces.
    allowed_grants: str
    #: IDs of the groups whose members may use the application; None allows all users.
    allowed_group_ids: list[int] | None
    refresh_idle_days: int | None
    refresh_longest_days: int | None
    client_metadata: dict[str, object] | None
    last_used_at: datetime | None
    secret_id: int | None
    secret_digest: bytes | None
    secret_last_used_at: datetime | None


class TokenPairRow(NamedTuple):
    """A token pair, found by either of its tokens, with its grant and its user."""

    token_id: int
    token_application_id: int | None
    token_authorization_id: int | None
    token_user_id: int
    token_scopes: str
    token_created_at: datetime
    token_expires_at: datetime | None
    token_revoked_at: datetime | None
    token_refreshed_at: datetime | None
    token_key_thumbprint: str | None
    token_keeps_admin_mode: bool | None
    #: Scopes of the grant; None for a password grant whose token cannot be refreshed.
    grant_scopes: str | None
    grant_redirect_uri: str | None
    grant_code_challenge: str | None
    grant_auth_time: datetime | None
    grant_methods: str | None
    grant_sid: str | None
    grant_created_at: datetime | None
    grant_revoked_at: datetime | None
    username: str
    user_state: str


class GrantRow(NamedTuple):
    """A user's grant, found by its authorization code or its device code."""

    grant_id: int
    grant_application_id: int
    grant_user_id: int
    grant_scopes: str
    grant_redirect_uri: str | None
    grant_code_challenge: str | None
    grant_nonce: str | None
    grant_auth_time: datetime
    grant_methods: str | None
    grant_sid: str | None
    grant_code_expires_at: datetime | None
    grant_code_used_at: datetime | None
    grant_key_thumbprint: str | None
    username: str
    user_state: str


class DeviceRow(NamedTuple):
    """A device request, found by its device code."""

    device_id: int
    device_application_id: int
    device_expires_at: datetime
    #: Polling interval in seconds.
    device_interval: int
    device_last_polled_at: datetime | None
    device_approved_at: datetime | None
    device_denied_at: datetime | None
    device_redeemed_at: datetime | None
    #: Grant of the approved request; None before approval and after revocation.
    grant: GrantRow | None
