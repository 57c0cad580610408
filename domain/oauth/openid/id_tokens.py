"""ID tokens (OpenID Connect Core section 2)."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import GuestProtocol, RSAKey
from sqlalchemy.orm import Session

from domain.oauth.context import OAuthContext
from domain.oauth.openid.signing_keys import (
    SIGNING_ALGORITHM,
    find_public_key,
    find_signing_key,
    get_or_create_signing_key,
)

#: Claims of an ID token, except for the claims about the user.
ID_TOKEN_CLAIMS = (
    "iss",
    "sub",
    "aud",
    "exp",
    "iat",
    "auth_time",
    "acr",
    "amr",
    "nonce",
    "sid",
    "at_hash",
)
#: Authentication context classes (`acr`), with the levels that Keycloak clients expect.
ACR_ONE_FACTOR, ACR_TWO_FACTORS = "1", "2"
#: Maximum length of an id_token_hint; ID tokens of this server are shorter.
_MAX_HINT_LENGTH = 8192


@dataclass(frozen=True, kw_only=True)
class GrantAuthentication:
    """The sign-in on which a grant is based.

    Refreshed ID tokens repeat the claims about the sign-in.
    """

    #: Time of the user's last sign-in.
    auth_time: datetime
    #: Nonce of the authorization request, for the first ID token.
    nonce: str | None = None
    #: Authentication methods (RFC 8176), separated by spaces; None for grants from older releases.
    methods: str | None = None
    #: Session ID of the sign-in for one application.
    sid: str | None = None

    @property
    def claims(self) -> dict[str, object]:
        """The claims about the authentication (section 2, and Back-Channel Logout section 2.1)."""
        methods = (self.methods or "").split()
        level = ACR_TWO_FACTORS if "mfa" in methods else ACR_ONE_FACTOR
        return {
            "auth_time": int(self.auth_time.timestamp()),
            **({"amr": methods, "acr": level} if methods else {}),
            **({"sid": self.sid} if self.sid else {}),
            **({"nonce": self.nonce} if self.nonce is not None else {}),
        }


@dataclass(frozen=True, kw_only=True)
class IdTokenAudience:
    """The subject and the audience of an ID token."""

    user_id: int
    #: client_id of the application.
    application_uid: str
    #: Session of the user at the application, if the token was issued for a session.
    sid: str | None = None


class InvalidHintError(Exception):
    """Error for an id_token_hint that is not an ID token of this server.

    An ID token is also invalid if its signing key was deleted.
    """


def create_id_token(
    audience: IdTokenAudience,
    authentication: GrantAuthentication,
    access_token: str,
    *,
    user_claims: Mapping[str, object],
    context: OAuthContext,
) -> str:
    """Return a signed ID token for an access token.

    Times in the claims are in seconds. `user_claims` are the claims about the user that the granted
    scopes permit.
    """
    keyring, now = context.keyring, context.now
    key = find_signing_key(
        connection=context.connection, keyring=keyring, now=now
    ) or get_or_create_signing_key(session=context.session, keyring=keyring, now=now)
    expires_at = now + context.policy.id_token_lifetime
    claims: dict[str, object] = {
        **user_claims,
        "iss": context.policy.issuer,
        "sub": get_subject(audience.user_id),
        "aud": audience.application_uid,
        "exp": int(expires_at.timestamp()),
        "iat": int(now.timestamp()),
        **authentication.claims,
        "at_hash": compute_at_hash(access_token),
    }
    return jwt.encode({"alg": SIGNING_ALGORITHM, "kid": key.kid}, claims, key)


def get_subject(user_id: int) -> str:
    """Return the subject identifier of a user, which never changes and is never reused."""
    return str(user_id)


def compute_at_hash(access_token: str) -> str:
    """Return the left half of the token's SHA-256 hash in base64url (section 3.1.3.6)."""
    half = sha256(access_token.encode("ascii")).digest()[:16]
    return base64.urlsafe_b64encode(half).rstrip(b"=").decode()


def parse_id_token_hint(text: str, *, issuer: str, session: Session) -> IdTokenAudience:
    """Return the subject and the audience of an id_token_hint.

    Expired hints are valid (RP-Initiated Logout section 2). The token's header is not trusted: the
    `kid` only selects a key of this server, and the algorithm is fixed. Raise InvalidHintError if
    the hint is invalid.
    """

    def find_own_key(token: GuestProtocol) -> RSAKey:
        key = find_public_key(_get_key_id(token), session=session)
        if key is None:
            raise InvalidKeyIdError
        return key

    try:
        claims = jwt.decode(
            text[:_MAX_HINT_LENGTH], find_own_key, algorithms=[SIGNING_ALGORITHM]
        ).claims
    except (JoseError, ValueError) as error:
        raise InvalidHintError from error
    user, uid = claims.get("sub"), claims.get("aud")
    if "events" in claims:  # This is a logout token, which is signed with the same keys.
        raise InvalidHintError
    if claims.get("iss") != issuer or not isinstance(user, str) or not isinstance(uid, str):
        raise InvalidHintError
    sid = claims.get("sid")
    return IdTokenAudience(
        user_id=int(user), application_uid=uid, sid=sid if isinstance(sid, str) else None
    )


def _get_key_id(token: GuestProtocol) -> str:
    kid = token.headers().get("kid")
    if not isinstance(kid, str) or "\x00" in kid:
        raise InvalidKeyIdError
    return kid
