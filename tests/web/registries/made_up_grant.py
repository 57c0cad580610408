"""A made-up grant, which pytest loads as a plugin before everything else."""

import sys
from collections.abc import Mapping
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Literal

from authlib.oauth2.rfc6749 import grants

from domain.oauth.client_requests import ClientParameters, ClientRequest, TokenGrant
from domain.oauth.rejection_reasons import RejectedGrantError, Rejection, RejectionReason

_REGISTRY = "domain.oauth.grants.registry"
_LINE = "    DeviceCodeGrant,\n"
TOO_WEAK = Rejection(
    sentence="The handshake is too weak.",
    reason=RejectionReason(name="weak_handshake", title="Weak handshake", advice="Press harder."),
)


class HandshakeExchange(ClientParameters):
    """A handshake for a token."""

    grant_type: Literal["handshake"]
    handshake: str


class HandshakeGrant(TokenGrant[None, str], grants.BaseGrant):  # type: ignore[misc]
    GRANT_TYPE = "handshake"
    CREDENTIAL = "handshake"
    REQUEST = HandshakeExchange
    REASONS = (TOO_WEAK.reason,)
    REMEDIES = ("A handshake has to be firm.",)
    PERMISSION = "Handshakes"
    PERMISSION_HELP = "It may shake hands."
    IS_REGISTRABLE = True

    def validate_request(self, client_request: ClientRequest[None]) -> str:
        handshake = client_request.request.require_parameter("handshake")
        if handshake != "firm":
            raise RejectedGrantError(TOO_WEAK)
        return handshake

    def execute_request(
        self, client_request: ClientRequest[None], checked_input: str
    ) -> Mapping[str, object]:
        return {"access_token": f"{checked_input} {client_request.get_client().application.name}"}


def _add() -> None:
    """Load the registry with an additional line."""
    spec = find_spec(_REGISTRY)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text()
    assert _LINE in source
    module = module_from_spec(spec)
    sys.modules[_REGISTRY] = module
    vars(module)["HandshakeGrant"] = HandshakeGrant
    exec(source.replace(_LINE, f"{_LINE}    HandshakeGrant,\n"), vars(module))  # noqa: S102 - this repository's own text


_add()
