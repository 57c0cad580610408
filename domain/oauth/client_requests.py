"""The phases of a client's request to the token endpoint and related endpoints.

Requests for tokens and device codes, pushed requests, introspection and revocation all run the
phases in `ClientEndpoint.handle_request`. Grants and endpoints implement the hooks: the lookup, the
checks and the action. They can neither skip a shared phase nor change the order.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar, final

from pydantic import Field

from domain.core.types.base import Body
from domain.oauth.clients.assertions import ASSERTION_TYPE
from domain.oauth.clients.authentication import (
    CLIENT_ID_MISSING,
    Client,
    ClientAuthenticationError,
    authenticate_client,
)
from domain.oauth.clients.credential_lookup import (
    CredentialLookup,
    CredentialT,
    LookupWithWrite,
)
from domain.oauth.clients.secrets import is_recent_use, record_secret_use
from domain.oauth.context import OAuthServer
from domain.oauth.protocol import OAUTH_NO_STORE_HEADERS, OAuthResponse, ProtocolRequest
from domain.oauth.rejection_reasons import RejectedGrantError, Rejection, RejectionReason
from domain.oauth.token_authentication.dpop import (
    DpopProof,
    DpopTarget,
    InvalidProofError,
    check_dpop_proof,
    consume_dpop_proof,
)

CheckedT = TypeVar("CheckedT")


@dataclass(frozen=True, kw_only=True)
class ClientRequest(Generic[CredentialT]):
    """A request from an authenticated client, with its credential and proof."""

    request: ProtocolRequest
    #: The client; None only if the endpoint accepts requests without a client.
    client: Client | None
    #: The credential that the lookup found, or None.
    found: CredentialT | None
    #: Thumbprint of the key that the DPoP proof was signed with (RFC 7638, RFC 9449), or None.
    key_thumbprint: str | None
    #: The result of `get_lookup_with_write`, or None if nothing was written.
    written: Any = None

    def get_client(self) -> Client:
        """Return the authenticated client of the request.

        Raise invalid_client if the request has no client (RFC 6749 section 5.2).
        """
        if self.client is None:
            raise ClientAuthenticationError(was_basic=False, sentence=CLIENT_ID_MISSING)
        return self.client

    def get_credential(self, unknown: Rejection) -> CredentialT:
        """Return the credential that the lookup found.

        Raise invalid_grant with the rejection `unknown` if the lookup found no credential.
        """
        if self.found is None:
            raise RejectedGrantError(unknown)
        return self.found


class ClientEndpoint(ABC, Generic[CredentialT, CheckedT]):
    """Base class of grants and endpoints, which implement the phases of client requests."""

    server: OAuthServer
    #: Lookup of the credential together with its client. None if `build_credential_lookup` chooses
    #: the lookup, or if requests have no credential.
    LOOKUP: CredentialLookup[CredentialT] | None = None
    #: True if requests without a client are allowed when `is_client_optional` returns True.
    MAY_LACK_CLIENT: ClassVar[bool] = False
    #: Path that DPoP proofs must be made for; None if proofs are not used.
    PROOF_PATH: ClassVar[str | None] = None
    #: True if the endpoint issues tokens, so that clients registered for bound tokens must send a
    #: DPoP proof (RFC 9449 section 5.2).
    ISSUES_TOKENS: ClassVar[bool] = False
    #: HTTP status of a successful response.
    STATUS: ClassVar[int] = 200
    #: True if a successful request counts as a use of the application.
    RECORDS_USE: ClassVar[bool] = True

    @final
    def handle_request(self, request: ProtocolRequest) -> OAuthResponse:
        """Run all phases of the request, and return the response.

        Raise OAuth2Error in the first phase that rejects the request.
        """
        if request.payload.repeated:
            request.check_no_repeated_parameters(self.server.PARAMETERS)
        lookup = self.LOOKUP or self.build_credential_lookup(request)
        client, found, written = None, None, None
        if not (self.MAY_LACK_CLIENT and self.is_client_optional(request)):
            context = self.server.context
            write = (
                self.get_lookup_with_write(request)
                if self._can_use_combined_lookup(request)
                else None
            )
            authenticated = authenticate_client(request, context, lookup, write)
            client, found, written = authenticated
            self.check_client_permission(client, request)
        proof = self._find_proof(request, client)
        if lookup is not None:
            request.require_parameter(lookup.parameter)
        asked = ClientRequest(
            request=request,
            client=client,
            found=found,
            key_thumbprint=None if proof is None else proof.thumbprint,
            written=written,
        )
        checked = self.validate_request(asked)
        if proof is not None:
            # Proofs are stored last, so that requests without a valid client and credential do not
            # store proofs.
            consume_dpop_proof(proof, self.server.context)
        body = self.execute_request(asked, checked)
        if client is not None and self.RECORDS_USE:
            last_used_at, context = client.application.last_used_at, self.server.context
            if not is_recent_use(last_used_at, context.now):
                record_secret_use(
                    client.application.id, None, run=context.run_write, now=context.now
                )
        return OAuthResponse(status=self.STATUS, body=body, headers=OAUTH_NO_STORE_HEADERS)

    # Hooks that subclasses override.

    def build_credential_lookup(
        self, request: ProtocolRequest
    ) -> CredentialLookup[CredentialT] | None:
        """Return the credential lookup for a request, or None if there is no credential to look up.

        Subclasses override this method if the lookup depends on the request.
        """
        del request
        return None

    def get_lookup_with_write(self, request: ProtocolRequest) -> LookupWithWrite | None:
        """Return a lookup that also performs the write of `execute_request`, or None.

        The statement must not write for a request that `check_client_permission` or
        `validate_request` rejects.
        """
        del request
        return None

    def is_client_optional(self, request: ProtocolRequest) -> bool:
        """Return whether this request is allowed without a client."""
        del request
        return False

    def check_client_permission(self, client: Client, request: ProtocolRequest) -> None:
        """Reject a client that may not use this endpoint."""

    @abstractmethod
    def validate_request(self, client_request: ClientRequest[CredentialT]) -> CheckedT:
        """Check the request, and return the input for `execute_request`."""

    @abstractmethod
    def execute_request(
        self, client_request: ClientRequest[CredentialT], checked_input: CheckedT
    ) -> Mapping[str, object]:
        """Execute the request, and return the body of the response.

        A grant consumes the credential and stores the token pair.
        """

    def _can_use_combined_lookup(self, request: ProtocolRequest) -> bool:
        """Return whether the lookup and the write can run as a single statement.

        A single statement requires Postgres. It cannot be used in an open transaction, or for a
        request with a DPoP proof, since the proof must be consumed before the write.
        """
        context = self.server.context
        is_alone = context.connection.dialect_name == "postgresql" and not context.has_begun()
        return is_alone and "DPoP" not in request.headers

    def _find_proof(self, request: ProtocolRequest, client: Client | None) -> DpopProof | None:
        """Return the DPoP proof of a request, or None.

        `handle_request` consumes the proof after all checks.
        """
        if self.PROOF_PATH is None:
            return None
        text = request.headers.get("DPoP")
        if text is None:
            if self.ISSUES_TOKENS and client is not None and client.application.require_dpop:
                raise InvalidProofError(
                    "Tokens of this application must be bound to a key. Send a DPoP proof."
                )
            return None
        context = self.server.context
        target = DpopTarget("POST", f"{context.policy.issuer}{self.PROOF_PATH}")
        return check_dpop_proof(text, target, now=context.now)


class ClientParameters(Body):
    """Client credentials in the body of a request.

    The credentials are not needed with Basic authentication.
    """

    client_id: str = ""
    client_secret: str = Field(
        default="", description="Client secret of a confidential application."
    )
    client_assertion: str = Field(
        default="",
        description="JWT signed with a private key of the application (RFC 7523). It replaces "
        "`client_secret`.",
    )
    client_assertion_type: Literal["", ASSERTION_TYPE] = Field(  # type: ignore[valid-type]
        default="", description="Format of `client_assertion`. Required with `client_assertion`."
    )


class TokenGrant(ClientEndpoint[CredentialT, CheckedT]):
    """Base class of the grants at the token endpoint (RFC 6749 section 3.2).

    Subclasses also inherit from Authlib's grants, which define GRANT_TYPE. Metadata documents, API
    descriptions, forms and help texts read the class attributes through `grants/registry.py`.
    """

    PROOF_PATH = "/oauth/token"
    ISSUES_TOKENS = True
    GRANT_TYPE: str
    #: Name of the credential in a sentence, as in “the device code cannot be used”.
    CREDENTIAL: ClassVar[str]
    #: Request parameters, for the API description.
    REQUEST: ClassVar[type[Body]]
    #: Parameters that may be repeated.
    REPEATABLE: ClassVar[frozenset[str]] = frozenset()
    #: Rejection reasons that only this grant has.
    REASONS: ClassVar[Sequence[RejectionReason]] = ()
    #: Advice to developers whose credential is rejected.
    REMEDIES: ClassVar[Sequence[str]] = ()
    #: Name and explanation of the grant in the forms in which administrators allow grants. A grant
    #: without a name is available to every application.
    PERMISSION: ClassVar[str] = ""
    PERMISSION_HELP: ClassVar[str] = ""
    #: True if clients that register themselves may request the grant (RFC 7591 section 2).
    IS_REGISTRABLE: ClassVar[bool] = False
    #: Function that returns whether an OAuthPolicy enables the grant; None if it is always enabled.
    SWITCH: ClassVar[Any] = None
    request: ProtocolRequest

    def check_client_permission(self, client: Client, request: ProtocolRequest) -> None:
        """Reject a client that may not use the grant, or is not registered for it."""
        del request
        if self.PERMISSION:
            client.require_allowed_grant(self.GRANT_TYPE)
        else:
            client.require_grant_type(self.GRANT_TYPE)
