"""The device authorization grant at the token endpoint (RFC 8628 sections 3.4 and 3.5)."""

from datetime import timedelta
from typing import Any

from authlib.oauth2.rfc6749 import AccessDeniedError, InvalidGrantError
from authlib.oauth2.rfc8628 import (
    AuthorizationPendingError,
    ExpiredTokenError,
    SlowDownError,
)
from authlib.oauth2.rfc8628 import DeviceCodeGrant as AuthlibDeviceCodeGrant
from sqlalchemy import select, update

from domain.accounts.users import ACTIVE
from domain.oauth.clients import Client
from domain.oauth.context import OAuthContext
from domain.oauth.id_tokens import Authentication
from domain.oauth.tokens import Grant, issue_pair, may_refresh, note_use
from domain.oauth.wire import NO_STORE, ProtocolRequest
from models import Authorization, DeviceAuthorization, User

INVALID_DEVICE_CODE = (
    "The device code is invalid, redeemed, taken back, or was issued to another client."
)
#: Seconds that each poll adds which comes too early (section 3.5).
_SLOWER = 5
#: More than any device code lives.
_LONGEST_INTERVAL = 3600


class DeviceCodeGrant(AuthlibDeviceCodeGrant):
    """Gives a device its tokens as soon as somebody has approved it."""

    request: ProtocolRequest

    @property
    def _context(self) -> OAuthContext:
        context: OAuthContext = self.server.context
        return context

    def validate_token_request(self) -> None:
        """Check client and code, and how far the request has come.

        A code of another client is refused and lives on, like a refresh token: it has never been
        in a browser's address, where codes of redirects get lost.
        """
        self.request.refuse_repeated_parameters()
        client = self.server.authenticate_client(self.request, ())
        device = self._find(self.request.required("device_code"))
        if device is None or device.redeemed_at is not None:
            raise InvalidGrantError(INVALID_DEVICE_CODE)
        if device.application_id != client.application.id:
            raise InvalidGrantError(INVALID_DEVICE_CODE)
        self._refuse_unless_approved(device)
        self.request.credential = device

    def _find(self, device_code: str) -> DeviceAuthorization | None:
        """Return the row, and hold it: polls of one device are served one after the other."""
        digests = self._context.keyring.digests(device_code)
        return self._context.session.scalar(
            select(DeviceAuthorization)
            .where(DeviceAuthorization.device_code_digest.in_(digests))
            .with_for_update()
        )

    def _refuse_unless_approved(self, device: DeviceAuthorization) -> None:
        """Say how it stands; who was approved is served however early the poll comes."""
        now = self._context.now
        if device.denied_at is not None:
            raise AccessDeniedError("The user has denied the request.")
        if device.expires_at <= now:
            raise ExpiredTokenError("The device code has expired. Ask for a new one.")
        if device.approved_at is not None:
            return
        last, pause = device.last_polled_at, timedelta(seconds=device.interval)
        device.last_polled_at = now
        if last is not None and now - last < pause:
            # Kept although the answer is a refusal: what is returned is committed.
            device.interval = min(device.interval + _SLOWER, _LONGEST_INTERVAL)
            raise SlowDownError(f"Poll every {device.interval} seconds from now on.")
        raise AuthorizationPendingError("The user has not decided yet.")

    def create_token_response(self) -> Any:
        """Claim the approval first, then issue: of parallel polls one is served."""
        context, device = self._context, self.request.credential
        client: Client = self.request.client
        device.redeemed_at = context.now
        authorization = self._claim(device)
        if authorization is None or not self._is_active(authorization.user_id):
            raise InvalidGrantError(INVALID_DEVICE_CODE)
        note_use(client.application, now=context.now)
        grant = Grant(
            user_id=authorization.user_id,
            application_id=authorization.application_id,
            authorization_id=authorization.id,
            scopes=authorization.scopes,
            is_renewable=may_refresh(client.application, authorization.scopes),
            authentication=Authentication(auth_time=authorization.auth_time),
        )
        issued = issue_pair(grant, context)
        is_bound = context.key_thumbprint is not None
        # The specification's example of this one answer writes it with a capital.
        kind = issued["token_type"] if is_bound else "Bearer"
        return 200, {**issued, "token_type": kind}, NO_STORE

    def _claim(self, device: DeviceAuthorization) -> Authorization | None:
        """Spend the approval; nothing is left of it if the user has taken it back meanwhile."""
        return self._context.session.scalar(
            update(Authorization)
            .where(
                Authorization.code_digest == device.device_code_digest,
                Authorization.code_used_at.is_(None),
                Authorization.revoked_at.is_(None),
            )
            .values(code_used_at=self._context.now)
            .returning(Authorization)
            .execution_options(synchronize_session=False)
        )

    def _is_active(self, user_id: int) -> bool:
        user = self._context.session.get(User, user_id)
        return user is not None and user.state == ACTIVE
