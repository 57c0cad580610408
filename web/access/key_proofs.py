"""Tokens that are bound to a key, where they are presented (RFC 9449 section 7)."""

from datetime import datetime
from urllib.parse import quote

from flask import request

from domain.oauth.presented_tokens.bearer import Bearer
from domain.oauth.presented_tokens.dpop import ProofTarget
from domain.oauth.presented_tokens.key_binding import PresentedToken, check_bound
from web.http.routes import decoded_reference
from web.services import services, settings


def check_key(found: Bearer, token: str, *, now: datetime) -> None:
    """Raise KeyNotProvedError unless a token comes with a proof exactly if it is bound to a key."""
    scheme = request.headers.get("Authorization", "")[:5].lower()
    is_with_proof = scheme == "dpop "
    if found.key_thumbprint is None and not is_with_proof:
        return  # an ordinary token, which is nearly all of them
    # The public URL from BASE_URL, never from the Host header.
    url = f"{settings().base_url}{quote(decoded_reference(request.path))}"
    presented = PresentedToken(
        target=ProofTarget(request.method, url, token),
        is_with_proof=is_with_proof,
        proof=request.headers.get("DPoP"),
    )
    check_bound(
        found, presented, connection=services().connections, keyring=services().keyring, now=now
    )
