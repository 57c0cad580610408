"""The device authorization endpoint: POST /oauth/authorize_device (RFC 8628 section 3.1)."""

from collections.abc import Mapping
from urllib.parse import urlencode

from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint as AuthlibDeviceAuthorizationEndpoint

from domain.oauth.client_requests import ClientEndpoint, ClientRequest
from domain.oauth.clients.authentication import Client
from domain.oauth.devices.authorizations import begin
from domain.oauth.grants.device_code import DeviceCodeGrant
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.requested_scopes import allowed_scopes

#: The default scope of a device request (RFC 6749 section 3.3).
DEFAULT_SCOPE = "read_user"


class DeviceAuthorizationEndpoint(ClientEndpoint[None, str], AuthlibDeviceAuthorizationEndpoint):
    """POST /oauth/authorize_device: issues a code for the device and one for its user."""

    def check_client(self, client: Client, request: ProtocolRequest) -> None:
        """Refuse a client that is not registered for the device grant (RFC 7591 section 2)."""
        del request
        client.require_grant_type(DeviceCodeGrant.GRANT_TYPE)

    def check(self, asked: ClientRequest[None]) -> str:
        """Return the requested scopes, or raise invalid_scope."""
        text = asked.request.value("scope") or DEFAULT_SCOPE
        return allowed_scopes(text, asked.get_client())

    def perform(self, asked: ClientRequest[None], checked: str) -> Mapping[str, object]:
        """Store the request of the device and return its codes (section 3.2)."""
        policy = self._context.policy
        new = begin(asked.get_client().application.id, checked, context=self._context)
        page = f"{policy.issuer}/oauth/device"
        return {
            "device_code": new.device_code,
            "user_code": new.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': new.user_code})}",
            "expires_in": int(policy.devices.code_lifetime.total_seconds()),
            "interval": policy.devices.poll_interval,
        }
