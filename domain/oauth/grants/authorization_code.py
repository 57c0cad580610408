"""The authorization code grant (RFC 6749 section 4.1) with PKCE (RFC 7636)."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from authlib.oauth2.rfc6749 import (
    AccessDeniedError,
    InvalidClientError,
    InvalidRequestError,
    InvalidScopeError,
    OAuth2Error,
    UnsupportedResponseTypeError,
    grants,
)
from authlib.oidc.core.errors import RequestNotSupportedError, RequestURINotSupportedError
from pydantic import Field
from sqlalchemy import ColumnElement, bindparam

from domain.access.scopes import filter_grantable_scopes
from domain.accounts.users import ACTIVE
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.keyring import CredentialType
from domain.oauth import pkce
from domain.oauth.client_requests import ClientParameters, ClientRequest, TokenGrant
from domain.oauth.clients.applications import build_application_view, find_application_row
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.credential_lookup import (
    ACTIVE_STATE,
    AUTHORIZATION_CODE_LOOKUP,
    LookupWithWrite,
    build_registered_scopes_condition,
)
from domain.oauth.clients.credential_rows import GrantRow
from domain.oauth.clients.redirect_uris import add_query_parameters, is_redirect_uri_registered
from domain.oauth.clients.types import ApplicationView
from domain.oauth.consent.approvals import Approver
from domain.oauth.context import OAuthPolicy
from domain.oauth.openid.backchannel_logout import compute_session_id, store_backchannel_session
from domain.oauth.pkce import check_challenge, check_verifier
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.rejection_reasons import (
    INVALID_PROOF,
    REDIRECT_URI_MISMATCH,
    UNREGISTERED_REDIRECT_URI,
    RejectedGrantError,
    Rejection,
    RejectionReason,
)
from domain.oauth.requested_scopes import parse_allowed_scopes
from domain.oauth.token_authentication.dpop import check_thumbprint
from domain.oauth.tokens import (
    CODE_REDEMPTION,
    RedemptionLookup,
    build_consume_code_update,
    build_grant,
    build_token_response,
    generate_token_pair,
    redeem_credential,
    revoke_authorization,
)
from models import Application, Authorization

_REDEEM_ONCE_ADVICE = "Redeem each code once, immediately after the redirect."
_USED_CODE_REASON = RejectionReason(
    name="used_code",
    title="Authorization code used twice",
    advice=(
        f"{_REDEEM_ONCE_ADVICE} A second use revokes the tokens of the first use, because one of "
        "them may be "
        "an attack. Common causes: a reloaded callback page, or a retry after a timeout."
    ),
)
#: One error for unknown codes, codes of other clients and codes of inactive users. An attacker with
#: a stolen code must not be able to distinguish these cases.
UNKNOWN_CODE = Rejection(
    sentence="The authorization code is unknown, or was issued to another client.",
    reason=RejectionReason(
        name="unknown_code",
        title="Unknown authorization code",
        advice=(
            "The code is truncated, is from another instance, or was issued to another "
            f"client_id. {_REDEEM_ONCE_ADVICE}"
        ),
    ),
)
EXPIRED_CODE = Rejection(
    sentence="The authorization code has expired. Request a new code.",
    reason=RejectionReason(
        name="expired_code",
        title="Expired authorization code",
        advice=f"A code is valid for at most ten minutes. {_REDEEM_ONCE_ADVICE}",
    ),
)
USED_CODE = Rejection(
    sentence="The authorization code has already been used, and its tokens are revoked.",
    reason=_USED_CODE_REASON,
)
ALREADY_USED_CODE = Rejection(
    sentence="The authorization code has already been used.", reason=_USED_CODE_REASON
)
WRONG_REDIRECT_URI = Rejection(
    sentence="The redirect_uri does not match the authorization request.",
    reason=REDIRECT_URI_MISMATCH,
)
WRONG_CODE_KEY = Rejection(
    sentence="The authorization code requires a DPoP proof with the key of dpop_jkt.",
    reason=INVALID_PROOF,
)
DENIED_BY_USER = "The resource owner denied the request."
#: Maximum length in characters of the URL that returns a code to an application. Few web servers
#: accept longer request lines, and many accept only half this length.
MAX_RESPONSE_URL_LENGTH = 16_000
_CODE_LENGTH = 64
#: Pattern for a number of seconds. Leading zeros are rejected, so that zero is always `0`.
_SECONDS_PATTERN = re.compile("0|[1-9][0-9]{0,9}")
SUPPORTED_PROMPTS = frozenset({"none", "login", "consent", "select_account"})


def build_issuer_parameter(application: Application, policy: OAuthPolicy) -> list[tuple[str, str]]:
    """Return the `iss` parameter (RFC 9207 section 2), unless the application omits it.

    Clients written for GitLab might not accept this parameter.
    """
    return [] if application.omit_iss else [("iss", policy.issuer)]


class UnknownRedirectUriError(InvalidRequestError):
    """Error for an unregistered redirect URI, which is shown on a page (section 4.1.2.1)."""

    description = "The redirect_uri is not registered for this application."
    reason = UNREGISTERED_REDIRECT_URI

    def __init__(self, presented: str, application: ApplicationView) -> None:
        """Store the presented URI and the application, for the explanation on the error page."""
        super().__init__()
        self.presented = presented
        self.application = application


class CodeParameters(ClientParameters):
    """Request parameters of the authorization code grant (RFC 6749 section 4.1.3)."""

    grant_type: Literal["authorization_code"]
    code: str
    redirect_uri: str
    code_verifier: Annotated[str, Field(pattern=pkce.VERIFIER_PATTERN)] = Field(
        default="", description="PKCE code verifier (RFC 7636). Required for public applications."
    )


def _list_code_acceptance_conditions(found: Any) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions for accepting a code in a request without a DPoP proof."""
    return (
        found.grant_application_id == found.id,
        found.grant_code_expires_at > bindparam("now"),
        found.grant_redirect_uri == bindparam("redirect_uri"),
        found.grant_code_challenge.is_not_distinct_from(bindparam("code_challenge")),
        found.grant_key_thumbprint.is_(None),
        found.user_state == ACTIVE_STATE,
        build_registered_scopes_condition(found.grant_scopes, found),
    )


CODE_REDEMPTION_LOOKUP = RedemptionLookup(
    AUTHORIZATION_CODE_LOOKUP,
    lambda value: build_consume_code_update(value("grant_id")),
    _list_code_acceptance_conditions,
    authorization_id="grant_id",
    application_id="grant_application_id",
    user_id="grant_user_id",
    scopes="grant_scopes",
)


class AuthorizationCodeGrant(TokenGrant[GrantRow, GrantRow], grants.AuthorizationCodeGrant):
    """The authorization code grant, which issues codes and redeems them for tokens."""

    CREDENTIAL = "code"
    REQUEST = CodeParameters
    REASONS = tuple(
        each.reason for each in (UNKNOWN_CODE, EXPIRED_CODE, USED_CODE, *pkce.PKCE_REJECTIONS)
    )
    REMEDIES = (
        (
            "Use an authorization code once, within ten minutes, with the redirect_uri of the "
            "authorization request and the code_verifier of its code_challenge."
        ),
    )
    IS_REGISTRABLE = True

    # Authorization endpoint (section 4.1.1).

    @classmethod
    def check_authorization_endpoint(cls, request: ProtocolRequest) -> bool:
        """Return True: `validate_authorization_request` checks every request."""
        del request
        return True

    @staticmethod
    def validate_no_multiple_request_parameter(request: ProtocolRequest) -> None:
        """Do nothing: `validate_authorization_request` also rejects repeated parameters."""

    def validate_authorization_request(self) -> str:
        """Check all parameters, and return the redirect URI.

        The client and the redirect URI are checked first. If one of them is invalid, the error has
        no redirect URI and is shown on a page (section 4.1.2.1).
        """
        redirect_uri = self.check_client_and_redirect_uri()
        try:
            self._check_other_parameters()
        except OAuth2Error as error:
            error.redirect_uri = redirect_uri
            raise
        return redirect_uri

    def check_client_and_redirect_uri(self) -> str:
        """Check the client and the redirect URI, and return the redirect URI.

        Errors raised here are shown on a page and not redirected.
        """
        for name in ("client_id", "redirect_uri"):
            if name in self.request.payload.repeated:
                raise InvalidRequestError(f"The parameter {name} is given more than once.")
        uid = self.request.require_parameter("client_id")
        session = self.server.context.session
        application = None if "\x00" in uid else find_application_row(uid, session=session)
        if application is None:
            raise InvalidClientError("No application with this client_id is registered.")
        redirect_uri = self.request.require_parameter("redirect_uri")
        if not is_redirect_uri_registered(redirect_uri, application.redirect_uris):
            raise UnknownRedirectUriError(redirect_uri, build_application_view(application))
        self.request.client = Client(application)
        if (
            len(self.build_code_redirect_url(redirect_uri, "x" * _CODE_LENGTH))
            > MAX_RESPONSE_URL_LENGTH
        ):
            raise InvalidRequestError(
                "The state is too long: the URL that returns it to the application can have at "
                f"most {MAX_RESPONSE_URL_LENGTH:,} characters. Use a short random state, and "
                "store other "
                "data in the application."
            )
        return redirect_uri

    def _check_other_parameters(self) -> None:
        self.request.check_no_repeated_parameters(self.server.PARAMETERS)
        self.request.client.require_grant_type(self.GRANT_TYPE)
        if self.request.require_parameter("response_type") != "code":
            raise UnsupportedResponseTypeError("code", "The only supported response_type is code.")
        if (self.request.get_parameter("response_mode") or "query") != "query":
            raise InvalidRequestError("The only supported response_mode is query.")
        if "\x00" in (self.request.get_parameter("nonce") or ""):
            raise InvalidRequestError("The nonce cannot contain NUL characters.")
        self._check_scope()
        self._check_pkce()
        check_thumbprint(self.request.get_parameter("dpop_jkt"))
        self._check_prompt()
        self._check_request_objects()

    def _check_scope(self) -> None:
        text = self.request.get_parameter("scope") or self.request.client.default_scope
        if text is None:
            raise InvalidScopeError("Missing required parameter: scope.")
        self.request.scope = parse_allowed_scopes(text, self.request.client)

    def _check_pkce(self) -> None:
        application = self.request.client.application
        check_challenge(
            self.request.get_parameter("code_challenge"),
            self.request.get_parameter("code_challenge_method"),
            is_required=application.require_pkce or not application.confidential,
        )

    def _check_prompt(self) -> None:
        prompts = set((self.request.get_parameter("prompt") or "").split())
        if not prompts <= SUPPORTED_PROMPTS or ("none" in prompts and len(prompts) > 1):
            raise InvalidRequestError(
                "prompt must be none, or a combination of login, consent and select_account."
            )
        max_age = self.request.get_parameter("max_age")
        if max_age is not None and not _SECONDS_PATTERN.fullmatch(max_age):
            raise InvalidRequestError("max_age must be a number of seconds.")

    def _check_request_objects(self) -> None:
        """Reject request objects (JWT), since ignoring them would change the request."""
        if self.request.get_parameter("request") is not None:
            raise RequestNotSupportedError("Request objects are not supported.")
        is_foreign = (
            self.request.get_parameter("request_uri") is not None and not self.request.pushed
        )
        if is_foreign:
            raise RequestURINotSupportedError(
                "This request_uri is not supported: push the parameters first."
            )

    def create_authorization_response(
        self, redirect_uri: str, grant_user: Approver | None
    ) -> tuple[int, str, list[tuple[str, str]]]:
        """Store a code for the approved request, and redirect the browser to the client with it.

        `grant_user` is the approval of the signed-in user, or None if the user denied the request
        (section 4.1.2).
        """
        if grant_user is None:
            raise AccessDeniedError(DENIED_BY_USER, redirect_uri=redirect_uri)
        code = self._store_code(redirect_uri, grant_user)
        return 302, "", [("Location", self.build_code_redirect_url(redirect_uri, code))]

    def build_code_redirect_url(self, redirect_uri: str, code: str) -> str:
        """Return the redirect URL that delivers a code to the application (section 4.1.2)."""
        parameters = [("code", code)]
        state = self.request.get_parameter("state")
        if state is not None:
            parameters.append(("state", state))
        parameters += build_issuer_parameter(
            self.request.client.application, self.server.context.policy
        )
        return add_query_parameters(redirect_uri, parameters)

    def derive_codes(self, number: str) -> tuple[str, ...]:
        """Return the codes for the consent form with this number, one for each secret key.

        A form that is submitted twice yields the same code, although the code is not stored in
        plain text.
        """
        keyring = self.server.context.keyring
        return keyring.derive_credentials(
            f"consent form {number}", CredentialType.AUTHORIZATION_CODE
        )

    def _store_code(self, redirect_uri: str, approval: Approver) -> str:
        context = self.server.context
        application: Application = self.request.client.application
        number = self.request.decision
        code = (
            context.keyring.issue_credential(CredentialType.AUTHORIZATION_CODE).clear
            if number is None
            else self.derive_codes(number)[0]
        )
        sid = compute_session_id(approval.sign_in_id, application.uid, keyring=context.keyring)
        context.session.add(
            Authorization(
                application_id=application.id,
                user_id=approval.user_id,
                scopes=filter_grantable_scopes(
                    self.request.scope, may_administer=approval.may_administer
                ),
                redirect_uri=redirect_uri,
                code_challenge=self.request.get_parameter("code_challenge"),
                nonce=self.request.get_parameter("nonce"),
                key_thumbprint=self.request.get_parameter("dpop_jkt"),
                auth_time=approval.auth_time,
                methods=approval.methods,
                sid=sid,
                code_digest=context.keyring.compute_digest(code),
                code_expires_at=context.now + context.policy.code_lifetime,
                created_at=context.now,
            )
        )
        if "openid" in self.request.scope.split():
            store_backchannel_session(
                application,
                approval.sign_in_id,
                sid,
                user_id=approval.user_id,
                session=context.session,
                now=context.now,
            )
        return code

    # Token endpoint (section 4.1.3).

    LOOKUP = AUTHORIZATION_CODE_LOOKUP

    def get_lookup_with_write(self, request: ProtocolRequest) -> LookupWithWrite | None:
        """Return the lookup that also redeems the code, if the parameters permit it."""
        redirect_uri, verifier = (
            request.get_parameter("redirect_uri"),
            request.get_parameter("code_verifier"),
        )
        challenge = verifier and pkce.compute_challenge(verifier)
        # Postgres stores neither NUL nor lone surrogates.
        is_text = redirect_uri is not None and redirect_uri.isprintable()
        if not is_text or challenge is None is not verifier:
            return None
        values = {"redirect_uri": redirect_uri, "code_challenge": challenge}
        return CODE_REDEMPTION_LOOKUP.build_pair_lookup(
            generate_token_pair(), self.server.context, **values
        )

    def validate_request(self, client_request: ClientRequest[GrantRow]) -> GrantRow:
        """Check the code, redirect URI, verifier, key and user in order, and return the grant."""
        found = client_request.get_credential(UNKNOWN_CODE)
        self._check_code_owner_and_use(found, client_request.get_client())
        if client_request.request.require_parameter("redirect_uri") != found.grant_redirect_uri:
            raise RejectedGrantError(WRONG_REDIRECT_URI)
        check_verifier(
            client_request.request.get_parameter("code_verifier"), found.grant_code_challenge
        )
        if found.grant_key_thumbprint not in {None, client_request.key_thumbprint}:
            # RFC 9449 section 10.
            raise RejectedGrantError(WRONG_CODE_KEY)
        if found.user_state != ACTIVE:
            self._mark_code_used(found.grant_id)
            raise RejectedGrantError(UNKNOWN_CODE)
        return found

    def _check_code_owner_and_use(self, grant: GrantRow, client: Client) -> None:
        context = self.server.context
        if grant.grant_application_id != client.application.id:
            # The code was stolen, so it is invalidated for its own client as well.
            self._mark_code_used(grant.grant_id)
            self._record_code_theft(EventKind.CODE_INVALIDATED, grant, client)
            raise RejectedGrantError(UNKNOWN_CODE)
        if grant.grant_code_used_at is not None:
            # The code was redeemed twice, so one of the clients must have stolen it (section
            # 4.1.2).
            had_tokens = revoke_authorization(
                grant.grant_id, session=context.session, now=context.now
            )
            self._record_code_theft(EventKind.CODE_REUSED, grant, client)
            raise RejectedGrantError(USED_CODE if had_tokens else ALREADY_USED_CODE)
        expires_at = grant.grant_code_expires_at
        if expires_at is None or expires_at <= context.now:
            raise RejectedGrantError(EXPIRED_CODE)

    def _record_code_theft(self, kind: EventKind, grant: GrantRow, client: Client) -> None:
        """Record an audit event for the user about a possible theft of the code.

        Ordinary redemptions are not recorded: there are too many, and the consent is recorded
        already.
        """
        self.server.context.record_event(
            kind,
            client.application,
            user_id=grant.grant_user_id,
            details={"application_id": client.application.uid, "scopes": grant.grant_scopes},
        )

    def _mark_code_used(self, authorization_id: int) -> None:
        """Mark a code as used without issuing tokens."""
        self.server.context.session.execute(
            build_bulk_update(Authorization)
            .where(Authorization.id == authorization_id, Authorization.code_used_at.is_(None))
            .values(code_used_at=self.server.context.now)
        )

    def execute_request(
        self, client_request: ClientRequest[GrantRow], checked_input: GrantRow
    ) -> Mapping[str, object]:
        """Consume the code and store the token pair.

        Only one of several concurrent requests succeeds.
        """
        grant = build_grant(
            checked_input,
            client_request.get_client(),
            key_thumbprint=client_request.key_thumbprint,
            nonce=checked_input.grant_nonce,
        )
        pair = client_request.written or generate_token_pair()
        if not client_request.written and not redeem_credential(
            CODE_REDEMPTION, pair, grant, self.server.context
        ):
            raise RejectedGrantError(ALREADY_USED_CODE)
        return build_token_response(pair, grant, self.server.context)
