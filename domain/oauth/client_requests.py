"""The phases of a request that a client makes: to the token endpoint, or to one beside it.

Tokens, device codes, pushed requests, introspection and revocation go through the one list in
`ClientEndpoint.respond`. A grant or an endpoint says what it looks up, what it refuses and what it
does; it can neither leave out a shared phase nor change their order.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, final

from authlib.oauth2.rfc6749 import InvalidGrantError

from domain.oauth.clients.authentication import (
    MISSING,
    Client,
    ClientRefusedError,
    authenticate_with,
    record_use,
)
from domain.oauth.clients.credential_lookup import CredentialLookup, Found
from domain.oauth.context import ServerComponent
from domain.oauth.messages import NO_STORE, ProtocolRequest
from domain.oauth.presented_tokens.dpop import (
    InvalidProofError,
    Proof,
    ProofTarget,
    consume_proof,
    find_proof,
)

Checked = TypeVar("Checked")
#: Status, body and headers, as Authlib hands responses over.
ResponseParts = tuple[int, Mapping[str, object], Sequence[tuple[str, str]]]


@dataclass(frozen=True, kw_only=True)
class ClientRequest(Generic[Found]):
    """A request of an authenticated client, with its credential and proof."""

    request: ProtocolRequest
    #: None only where the endpoint takes requests that name no client.
    client: Client | None
    #: The credential that the lookup found.
    found: Found | None
    #: Of the key that the request proves to have (RFC 7638, RFC 9449); None without a proof.
    key_thumbprint: str | None

    def get_client(self) -> Client:
        """Return the client, or raise invalid_client (RFC 6749 section 5.2)."""
        if self.client is None:
            raise ClientRefusedError(was_basic=False, sentence=MISSING)
        return self.client

    def get_credential(self, unknown: str) -> Found:
        """Return the credential that was found, or raise invalid_grant with this sentence."""
        if self.found is None:
            raise InvalidGrantError(unknown)
        return self.found


class ClientEndpoint(ServerComponent, ABC, Generic[Found, Checked]):
    """The part of a grant or an endpoint in the phases that all client requests share."""

    #: None where a request brings no credential beside that of its client.
    LOOKUP: CredentialLookup[Found] | None = None
    #: The path for which a DPoP proof must be made; None where a proof has no meaning.
    PROOF_PATH: ClassVar[str | None] = None
    #: An application that registered for bound tokens has to prove its key here (RFC 9449, 5.2).
    ISSUES_TOKENS: ClassVar[bool] = False
    #: The status of a response that is no error.
    STATUS: ClassVar[int] = 200
    #: The application counts as used by a request that succeeds.
    RECORDS_USE: ClassVar[bool] = True

    @final
    def respond(self, request: ProtocolRequest) -> ResponseParts:
        """Go through all phases; raises OAuth2Error in the first that refuses the request."""
        request.refuse_repeated_parameters()
        lookup = self.lookup(request)
        client, found = self._authenticate(request, lookup)
        if client is not None:
            self.check_client(client, request)
        proof = self._find_proof(request, client)
        if lookup is not None:
            request.required(lookup.parameter)
        asked = ClientRequest(
            request=request,
            client=client,
            found=found,
            key_thumbprint=None if proof is None else proof.thumbprint,
        )
        checked = self.check(asked)
        if proof is not None:
            # No earlier: a request without a client and a credential stores no used proofs.
            consume_proof(proof, self._context)
        body = self.perform(asked, checked)
        if client is not None and self.RECORDS_USE:
            record_use(client, self._context)
        return self.STATUS, body, NO_STORE

    # The hooks

    def lookup(self, request: ProtocolRequest) -> CredentialLookup[Found] | None:
        """Return how the credential in the request is found, together with its client."""
        del request
        return self.LOOKUP

    def takes_no_client(self, request: ProtocolRequest) -> bool:
        """Return whether this request is served although it names no client."""
        del request
        return False

    def check_client(self, client: Client, request: ProtocolRequest) -> None:
        """Refuse a client that may not use this endpoint."""

    @abstractmethod
    def check(self, asked: ClientRequest[Found]) -> Checked:
        """Check the request and return the input of `perform`."""

    @abstractmethod
    def perform(self, asked: ClientRequest[Found], checked: Checked) -> Mapping[str, object]:
        """Execute the request and return the body of the response."""

    # The phases, which subclasses do not override

    def _authenticate(
        self, request: ProtocolRequest, lookup: CredentialLookup[Found] | None
    ) -> tuple[Client | None, Found | None]:
        if self.takes_no_client(request):
            return None, None
        return authenticate_with(request, self._context, lookup)

    def _find_proof(self, request: ProtocolRequest, client: Client | None) -> Proof | None:
        """Return the DPoP proof of the request, which `respond` consumes once all is checked."""
        if self.PROOF_PATH is None:
            return None
        context = self._context
        target = ProofTarget("POST", f"{context.policy.issuer}{self.PROOF_PATH}")
        proof = find_proof(request, target, now=context.now)
        is_bound = client is not None and client.application.require_dpop
        if proof is None and is_bound and self.ISSUES_TOKENS:
            raise InvalidProofError(
                "Tokens of this application are bound to a key: send a DPoP proof."
            )
        return proof


class TokenGrant(ClientEndpoint[Found, Checked]):
    """A grant at the token endpoint (RFC 6749 section 3.2): its lookup, its check, its redeem.

    Mixed into the grant of Authlib that has the GRANT_TYPE.
    """

    PROOF_PATH = "/oauth/token"
    ISSUES_TOKENS = True
    GRANT_TYPE: str
    request: ProtocolRequest

    def create_token_response(self) -> ResponseParts:
        """Respond to the request that the grant was made for."""
        return self.respond(self.request)

    def check_client(self, client: Client, request: ProtocolRequest) -> None:
        """Refuse a client whose registration rules the grant out (RFC 7591 section 2)."""
        del request
        client.require_grant_type(self.GRANT_TYPE)

    def perform(self, asked: ClientRequest[Found], checked: Checked) -> Mapping[str, object]:
        """Redeem the credential."""
        return self.redeem(asked, checked)

    @abstractmethod
    def redeem(self, asked: ClientRequest[Found], checked: Checked) -> Mapping[str, object]:
        """Consume the credential, store the pair, and return the body of the token response."""
