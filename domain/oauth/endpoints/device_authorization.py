"""A device asks for its codes: POST /oauth/authorize_device (RFC 8628 section 3.1)."""

from typing import Any
from urllib.parse import urlencode

from authlib.oauth2.rfc6749 import UnauthorizedClientError
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint as AuthlibDeviceAuthorizationEndpoint

from domain.oauth.clients.authentication import note_use
from domain.oauth.context import PartOfServer
from domain.oauth.devices.authorizations import begin
from domain.oauth.grants.device_code import DeviceCodeGrant
from domain.oauth.messages import NO_STORE, ProtocolRequest
from domain.oauth.requested_scopes import allowed_scopes

#: What a device gets that does not say what it wants (RFC 6749 section 3.3): the least there is.
DEFAULT_SCOPE = "read_user"


class DeviceAuthorizationEndpoint(PartOfServer, AuthlibDeviceAuthorizationEndpoint):
    """Answers with a code for the device and one for its user."""

    def create_endpoint_response(self, request: ProtocolRequest) -> Any:
        """Authenticate the client, check what it asks for, and issue the codes (3.2)."""
        request.refuse_repeated_parameters()
        client = self.server.authenticate_client(request, ())
        if not client.check_grant_type(DeviceCodeGrant.GRANT_TYPE):
            raise UnauthorizedClientError("The application is not registered for this grant type.")
        scopes = allowed_scopes(request.value("scope") or DEFAULT_SCOPE, client)
        policy = self._context.policy
        new = begin(client.application.id, scopes, context=self._context)
        note_use(client, self._context)
        page = f"{policy.issuer}/oauth/device"
        body = {
            "device_code": new.device_code,
            "user_code": new.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': new.user_code})}",
            "expires_in": int(policy.devices.code_lifetime.total_seconds()),
            "interval": policy.devices.poll_interval,
        }
        return 200, body, NO_STORE
