"""Client for identity providers (OpenID Connect Core, Discovery, PKCE and RFC 9207).

Authlib prepares requests and checks claims, and joserfc checks signatures. Requests are sent with
the protections that apply to all URLs entered by users.
"""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import orjson
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.client import DEFAULT_HEADERS, OAuth2Client
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import get_well_known_url
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import GuestProtocol, KeySet
from pydantic import BaseModel, ConfigDict, Field

from domain.accounts.identity_providers.errors import (
    DeniedByProviderError,
    InvalidProviderResponseError,
    ProviderError,
    ProviderTokenRejectedError,
    ProviderUnreachableError,
)
from domain.accounts.identity_providers.presets import PRESETS
from domain.accounts.identity_providers.provider_users import ProviderUser
from domain.core.errors import InvalidError
from domain.core.keyring import Keyring
from domain.delivery.outgoing.errors import OutgoingError, ResponseTooLargeError
from domain.delivery.outgoing.urls import OutgoingUrl, parse_outgoing_url

#: Accepted signature algorithms. HMAC and `none` are excluded, since a client could create such
#: signatures itself.
_SIGNATURE_ALGORITHMS = tuple(
    f"{kind}{size}" for kind in ("RS", "PS", "ES") for size in (256, 384, 512)
)
_DOCUMENT_LIFETIME = timedelta(hours=1)
#: Delay before the next attempt after a provider could not be reached.
_RETRY_DELAY = timedelta(seconds=10)
#: Accepted difference between the clocks of two hosts.
PROVIDER_CLOCK_LEEWAY = timedelta(minutes=2)
#: Claims from which the name and address of an account are taken.
_ACCOUNT_CLAIMS = ("email", "preferred_username", "name")
#: Error codes for an invalid refresh token. RFC 6749 and GitHub define the first two codes. Dex
#: returns `invalid_request`, as do servers based on Authlib if the user no longer exists.
_INVALID_GRANT_CODES = ("invalid_grant", "bad_refresh_token", "invalid_request")
PARSE_ERRORS = (ValueError, TypeError, KeyError, AttributeError)

JsonDocument = Mapping[str, Any]


class RequestSender(Protocol):
    """A function that sends a single request: POST if there is a body, and GET otherwise."""

    def __call__(
        self, url: OutgoingUrl, body: bytes | None, headers: Mapping[str, str], /
    ) -> tuple[int, bytes]:
        """Return the status and the whole body of the response.

        Raise OutgoingError if there is no response.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ProviderHttpAccess:
    """HTTP access to providers, and a cache of their documents."""

    fetch: RequestSender
    #: Cached metadata and keys by URL, each with the time of the request. They are the same for all
    #: users. The document is None after a failed request.
    documents: MutableMapping[str, tuple[datetime, JsonDocument | None]] = field(
        default_factory=dict
    )


@dataclass(frozen=True, kw_only=True)
class ProviderRegistration:
    """The registration of this service with a provider."""

    title: str
    preset: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    scopes: str
    redirect_uri: str
    #: Name of the claim that contains the groups; None if the groups are not needed.
    groups_claim: str | None


@dataclass(frozen=True, kw_only=True)
class ProviderSignInSecrets:
    """Values that bind a response to the browser that made the request. They are not stored."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    #: PKCE code verifier (RFC 7636).
    verifier: str = field(repr=False)

    @classmethod
    def from_number(cls, number: str, keyring: Keyring) -> "ProviderSignInSecrets":
        """Derive the values from the random number in the browser's session."""
        return cls(
            **{
                name: keyring.compute_digest(f"{name} of sign-in {number} at a provider").hex()
                for name in ("state", "nonce", "verifier")
            }
        )


class ProviderTokens(BaseModel):
    """The response of a token endpoint."""

    model_config = ConfigDict(frozen=True, strict=True)

    access_token: str = Field(repr=False)
    id_token: str | None = Field(default=None, repr=False)
    refresh_token: str | None = Field(default=None, repr=False)


class ProviderClient:
    """A client for the endpoints of one identity provider.

    `now` does not change during the lifetime of the client.
    """

    def __init__(
        self, client: ProviderRegistration, upstream: ProviderHttpAccess, *, now: datetime
    ) -> None:
        """Store the registration with the provider, the HTTP access and the time."""
        self._client = client
        self._upstream = upstream
        self._now = now

    def fetch_metadata(self, *, refresh: bool = False) -> JsonDocument:
        """Return the provider's metadata (Discovery section 4).

        With `refresh`, the cache is bypassed. Raise ProviderError if the metadata cannot be fetched
        or is not valid.
        """
        address = get_well_known_url(self._client.issuer, external=True)
        found = self._get_document(address, refresh=refresh)
        if found.get("issuer") != self._client.issuer:
            raise self._build_response_error(
                "the issuer in its metadata differs from the configured issuer"
            )
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            self._build_endpoint_url(found.get(name), name)
        if (userinfo := found.get("userinfo_endpoint")) is not None:
            self._build_endpoint_url(userinfo, "userinfo_endpoint")
        return found

    def fetch_keys(self, *, refresh: bool = False) -> KeySet:
        """Return the provider's signing keys.

        With `refresh`, the cache is bypassed.
        """
        found = self._get_document(str(self.fetch_metadata()["jwks_uri"]), refresh=refresh)
        try:
            return KeySet.import_key_set({"keys": [dict(each) for each in found["keys"]]})
        except (JoseError, *PARSE_ERRORS) as error:
            raise self._build_response_error("its keys cannot be read") from error

    def build_authorization_url(self, secrets: ProviderSignInSecrets, *, is_again: bool) -> str:
        """Return the URL of the authorization request (Core section 3.1.2.1)."""
        more = dict(PRESETS[self._client.preset].parameters)
        if is_again:
            # `max_age` makes the `auth_time` claim mandatory. With `max_age=0`, some providers
            # would show the sign-in page forever, because no completed sign-in is that recent.
            more |= {"prompt": "login", "max_age": str(int(PROVIDER_CLOCK_LEEWAY.total_seconds()))}
        client = OAuth2Client(
            None,
            client_id=self._client.client_id,
            redirect_uri=self._client.redirect_uri,
            scope=self._client.scopes,
            code_challenge_method="S256",
        )
        url, _ = client.create_authorization_url(
            self.fetch_metadata()["authorization_endpoint"],
            state=secrets.state,
            code_verifier=secrets.verifier,
            nonce=secrets.nonce,
            **more,
        )
        return str(url)

    def get_authorization_code(self, response: Mapping[str, str]) -> str:
        """Return the code from an authorization response whose state was checked.

        Raise InvalidProviderResponseError if another provider sent the response (RFC 9207 section
        2.4). Raise DeniedByProviderError for an error response.
        """
        names_itself = (
            self.fetch_metadata().get("authorization_response_iss_parameter_supported") is True
        )
        issuer = response.get("iss", None if names_itself else self._client.issuer)
        if issuer != self._client.issuer:
            raise self._build_response_error(
                "the response is from another provider, or does not name its issuer"
            )
        if "error" in response or not response.get("code"):
            error = response.get("error", "no code")
            reason = f"the provider returned {_replace_unprintable(error)[:60]}"
            raise DeniedByProviderError(self._client.title, reason)
        return response["code"]

    def redeem_code(self, code: str, secrets: ProviderSignInSecrets) -> ProviderTokens:
        """Exchange a code for tokens (Core section 3.1.3)."""
        return self._request_tokens(
            InvalidProviderResponseError,
            "authorization_code",
            code=code,
            redirect_uri=self._client.redirect_uri,
            code_verifier=secrets.verifier,
        )

    def refresh_tokens(self, refresh_token: str) -> ProviderTokens:
        """Exchange a refresh token for tokens (Core section 12).

        Raise ProviderTokenRejectedError if the refresh token is not valid.
        """
        return self._request_tokens(
            ProviderTokenRejectedError, "refresh_token", refresh_token=refresh_token
        )

    def identify_user(self, tokens: ProviderTokens, nonce: str) -> ProviderUser:
        """Return the user that the tokens from a sign-in identify."""
        if tokens.id_token is None:
            raise self._build_response_error("the response has no ID token")
        claims = self._verify_id_token(tokens.id_token, tokens.access_token, {"nonce": nonce})
        return self._build_provider_user(claims, tokens.access_token)

    def fetch_refreshed_user(self, tokens: ProviderTokens, subject: str) -> ProviderUser | None:
        """Return the user's details after a token refresh, or None if no details are returned."""
        if tokens.id_token is not None:
            # A refreshed ID token need not have a nonce (Core section 12.2).
            claims: JsonDocument = self._verify_id_token(tokens.id_token, tokens.access_token, {})
        elif self.fetch_metadata().get("userinfo_endpoint"):
            claims = {"sub": subject}
        else:
            return None
        if claims["sub"] != subject:
            raise self._build_response_error("the refreshed tokens belong to another user")
        return self._build_provider_user(claims, tokens.access_token)

    def _request_tokens(
        self, invalid_grant: type[ProviderError], grant_type: str, **sent: str
    ) -> ProviderTokens:
        """Send a request to the token endpoint, and parse the response (RFC 6749 section 5)."""
        metadata, client = self.fetch_metadata(), self._client
        methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        is_basic = "client_secret_basic" in methods
        # RFC 6749 section 2.3.1 requires encoding the ID and the secret before joining them.
        encoded = partial(quote, safe="") if is_basic else str
        auth = ClientAuth(
            encoded(client.client_id),
            encoded(client.client_secret),
            "client_secret_basic" if is_basic else "client_secret_post",
        )
        address = metadata["token_endpoint"]
        body = urlencode({"grant_type": grant_type, **sent})
        _, headers, body = auth.prepare("POST", address, dict(DEFAULT_HEADERS), body)
        url = self._build_endpoint_url(address, "token_endpoint")
        _, answer = self._send_request(url, body.encode(), headers)
        given = self._parse_json(answer, url)
        if "error" in given:
            code = _replace_unprintable(given["error"])[:60]
            kind = invalid_grant if code in _INVALID_GRANT_CODES else InvalidProviderResponseError
            raise kind(client.title, f"its token endpoint returned {code}")
        try:
            return ProviderTokens.model_validate(given)
        except ValueError as error:
            raise self._build_response_error("its token endpoint did not return tokens") from error

    def _verify_id_token(self, id_token: str, access_token: str, more: JsonDocument) -> CodeIDToken:
        """Return the verified claims of an ID token (Core section 3.1.3.7)."""
        client = self._client
        try:
            token = self._decode_id_token(id_token)
            claims = CodeIDToken(
                token.claims,
                token.header,
                options={
                    "iss": {"essential": True, "value": client.issuer},
                    "aud": {"essential": True, "value": client.client_id},
                },
                params={"client_id": client.client_id, "access_token": access_token, **more},
            )
            claims.validate(
                now=int(self._now.timestamp()), leeway=int(PROVIDER_CLOCK_LEEWAY.total_seconds())
            )
        except JoseError as error:
            reason = f"its ID token is not valid: {_replace_unprintable(str(error))[:120]}"
            raise self._build_response_error(reason) from error
        except PARSE_ERRORS as error:
            raise self._build_response_error("its ID token cannot be read") from error
        subject = claims["sub"]
        if not _get_text_if_clean(subject):
            raise self._build_response_error("its ID token has no usable sub")
        return claims

    def _decode_id_token(self, id_token: str) -> jwt.Token:
        """Return the decoded ID token after verifying its signature.

        If the token refers to an unknown key, the keys are fetched again.
        """
        try:
            return self._decode_with_keys(self.fetch_keys(), id_token)
        except InvalidKeyIdError:
            return self._decode_with_keys(self.fetch_keys(refresh=True), id_token)

    @staticmethod
    def _decode_with_keys(keys: KeySet, id_token: str) -> jwt.Token:
        def find_key(token: GuestProtocol) -> Any:
            return keys.get_by_kid(token.headers().get("kid"))

        return jwt.decode(id_token, find_key, algorithms=_SIGNATURE_ALGORITHMS)

    def _build_provider_user(self, claims: JsonDocument, access_token: str) -> ProviderUser:
        """Return the user that the claims identify.

        Claims that are missing from the ID token are fetched from userinfo (Core section 5.3).
        """
        groups_claim = self._client.groups_claim
        wanted = (*_ACCOUNT_CLAIMS, *([groups_claim] if groups_claim else ()))
        endpoint = self.fetch_metadata().get("userinfo_endpoint")
        if endpoint and any(name not in claims for name in wanted):
            said = self._fetch_userinfo(access_token)
            if said.get("sub") != claims["sub"]:
                raise self._build_response_error("its userinfo belongs to another user")
            claims = {**said, **claims}
        auth_time = claims.get("auth_time")
        return ProviderUser(
            subject=claims["sub"],
            name=_clean_text(claims.get("name")),
            username=_clean_text(claims.get("preferred_username")),
            email=_get_text_if_clean(claims.get("email")),
            is_email_verified=claims.get("email_verified") in (True, "true"),
            groups=_parse_groups(claims, groups_claim),
            methods=frozenset(map(str, claims.get("amr") or ())),
            authenticated_at=_parse_timestamp(auth_time),
        )

    def _fetch_userinfo(self, access_token: str) -> Any:
        return self._fetch_with_token(self.fetch_metadata()["userinfo_endpoint"], access_token)

    def _fetch_with_token(self, address: str, access_token: str, kind: type = dict) -> Any:
        headers = {"Authorization": f"Bearer {access_token}"}
        return self._fetch_json(
            self._build_endpoint_url(address, "userinfo_endpoint"), headers, kind
        )

    def _get_document(self, address: str, *, refresh: bool) -> JsonDocument:
        documents, url = self._upstream.documents, self._build_endpoint_url(address, "its address")
        asked_at, known = documents.get(address, (self._now - _DOCUMENT_LIFETIME, None))
        if known is not None and not refresh and self._now - asked_at < _DOCUMENT_LIFETIME:
            return known
        if known is None and not refresh and self._now - asked_at < _RETRY_DELAY:
            # Without this check, anyone could make many requests wait for the provider.
            reason = f"{url.redacted} did not respond a moment ago"
            raise ProviderUnreachableError(self._client.title, reason)
        try:
            found: JsonDocument = self._fetch_json(url, {})
        except ProviderUnreachableError:
            documents[address] = (self._now, None)
            raise
        documents[address] = (self._now, found)
        return found

    def _fetch_json(self, url: OutgoingUrl, headers: Mapping[str, str], kind: type = dict) -> Any:
        status, body = self._send_request(url, None, {"Accept": "application/json", **headers})
        if status != HTTPStatus.OK:
            raise self._build_status_error(status, body, url)
        return self._parse_json(body, url, kind)

    def _parse_json(self, body: bytes, url: OutgoingUrl, kind: type = dict) -> Any:
        try:
            found = orjson.loads(body)
        except ValueError:
            found = None
        if not isinstance(found, kind):
            name = "object" if kind is dict else "array"
            raise self._build_response_error(f"{url.redacted} did not return a JSON {name}")
        return found

    def _send_request(
        self, url: OutgoingUrl, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Send a request and return the status and body of the response.

        Raise ProviderUnreachableError or InvalidProviderResponseError for an unusable response.
        """
        try:
            status, answer = self._upstream.fetch(url, body, headers)
        except ResponseTooLargeError as error:
            raise self._build_response_error(f"{url.redacted}: {error}") from error
        except OutgoingError as error:
            raise ProviderUnreachableError(
                self._client.title, f"{url.redacted}: {error}"
            ) from error
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise self._build_status_error(status, answer, url)
        return status, answer

    def _build_status_error(self, status: int, _body: bytes, url: OutgoingUrl) -> ProviderError:
        return ProviderUnreachableError(self._client.title, f"{url.redacted} returned {status}")

    def _build_endpoint_url(self, address: object, name: str) -> OutgoingUrl:
        """Return a URL from the provider's metadata.

        If the issuer uses https, the URL must use https as well.
        """
        try:
            url = parse_outgoing_url(str(address))
        except InvalidError as error:
            raise self._build_response_error(f"{name} is not a URL") from error
        if self._client.issuer.startswith("https:") and not url.is_encrypted:
            raise self._build_response_error(f"{name} does not use https")
        return url

    def _build_response_error(self, reason: str) -> InvalidProviderResponseError:
        return InvalidProviderResponseError(self._client.title, reason)


def _replace_unprintable(text: object) -> str:
    return "".join(each if each.isprintable() else "\ufffd" for each in str(text))


def _clean_text(value: object) -> str:
    """Return at most 255 printable characters of a string, or "" for other types."""
    text = value.encode(errors="ignore").decode() if isinstance(value, str) else ""
    return "".join(each for each in text if each.isprintable()).strip()[:255]


def _get_text_if_clean(value: object) -> str:
    """Return the value if it is a string that `_clean_text` does not change.

    Return an empty string otherwise. Cleaning could turn an identifier into the identifier of
    another user.
    """
    return value if isinstance(value, str) and _clean_text(value) == value else ""


def _parse_groups(claims: JsonDocument, name: str | None) -> frozenset[str] | None:
    """Return the groups in the claims.

    A missing claim means that the user is in no groups. Return None if the claim only refers to
    another source (Core section 5.6.2), as Entra ID does for users with many groups.
    """
    if name is None:
        return frozenset()
    given = claims.get(name)
    if given is None:
        is_elsewhere = name in (claims.get("_claim_names") or ())
        return None if is_elsewhere else frozenset()
    return frozenset(map(str, given)) if isinstance(given, list) else frozenset([str(given)])


def _parse_timestamp(seconds: object) -> datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
