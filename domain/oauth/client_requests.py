"""The phases of a request that a client makes: to the token endpoint, or to one beside it.

Tokens, device codes, pushed requests, introspection and revocation go through the one list in
`ClientEndpoint.respond`. A grant or an endpoint says what it looks up, what it refuses and what it
does; it can neither leave out a shared phase nor change their order.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar, final

from pydantic import Field

from domain.core.types.base import Body
from domain.oauth.clients.assertions import TYPE as ASSERTION_TYPE
from domain.oauth.clients.authentication import (
    MISSING,
    Client,
    ClientRefusedError,
    authenticate_with,
)
from domain.oauth.clients.credential_lookup import (
    CredentialLookup,
    Found,
    LookupWithWrite,
)
from domain.oauth.clients.secrets import is_recent_use, record_use
from domain.oauth.context import Server
from domain.oauth.presented_tokens.dpop import (
    InvalidProofError,
    Proof,
    ProofTarget,
    check_proof,
    consume_proof,
)
from domain.oauth.protocol import NO_STORE, OAuthResponse, ProtocolRequest
from domain.oauth.reasons import Reason, Refusal, RefusedGrantError

Checked = TypeVar("Checked")


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
    #: The result of `write_with_lookup`; None if nothing was written.
    written: Any = None

    def get_client(self) -> Client:
        """Return the client, or raise invalid_client (RFC 6749 section 5.2)."""
        if self.client is None:
            raise ClientRefusedError(was_basic=False, sentence=MISSING)
        return self.client

    def get_credential(self, unknown: Refusal) -> Found:
        """Return the credential that was found, or raise invalid_grant with this refusal."""
        if self.found is None:
            raise RefusedGrantError(unknown)
        return self.found


class ClientEndpoint(ABC, Generic[Found, Checked]):
    """The part of a grant or an endpoint in the phases that all client requests share."""

    server: Server
    #: How the credential in a request is found, together with its client; None where `lookup`
    #: says it, or where a request brings none.
    LOOKUP: CredentialLookup[Found] | None = None
    #: Requests that name no client are served if `takes_no_client` says so.
    MAY_LACK_CLIENT: ClassVar[bool] = False
    #: The path for which a DPoP proof must be made; None where a proof has no meaning.
    PROOF_PATH: ClassVar[str | None] = None
    #: An application that registered for bound tokens has to prove its key here (RFC 9449, 5.2).
    ISSUES_TOKENS: ClassVar[bool] = False
    #: The status of a response that is no error.
    STATUS: ClassVar[int] = 200
    #: The application counts as used by a request that succeeds.
    RECORDS_USE: ClassVar[bool] = True

    @final
    def respond(self, request: ProtocolRequest) -> OAuthResponse:
        """Go through all phases; raises OAuth2Error in the first that refuses the request."""
        if request.payload.repeated:
            request.refuse_repeated_parameters(self.server.PARAMETERS)
        lookup = self.LOOKUP or self.lookup(request)
        client, found, written = None, None, None
        if not (self.MAY_LACK_CLIENT and self.takes_no_client(request)):
            context = self.server.context
            write = self.write_with_lookup(request) if self._may_write(request) else None
            authenticated = authenticate_with(request, context, lookup, write)
            client, found, written = authenticated
            self.check_client(client, request)
        proof = self._find_proof(request, client)
        if lookup is not None:
            request.required(lookup.parameter)
        asked = ClientRequest(
            request=request,
            client=client,
            found=found,
            key_thumbprint=None if proof is None else proof.thumbprint,
            written=written,
        )
        checked = self.check(asked)
        if proof is not None:
            # No earlier: a request without a client and a credential stores no used proofs.
            consume_proof(proof, self.server.context)
        body = self.perform(asked, checked)
        if client is not None and self.RECORDS_USE:
            last_used_at, context = client.application.last_used_at, self.server.context
            if not is_recent_use(last_used_at, context.now):
                record_use(client.application.id, None, run=context.run, now=context.now)
        return OAuthResponse(status=self.STATUS, body=body, headers=NO_STORE)

    # The hooks

    def lookup(self, request: ProtocolRequest) -> CredentialLookup[Found] | None:
        """Return the lookup for a request, where it depends on that."""
        del request
        return None

    def write_with_lookup(self, request: ProtocolRequest) -> LookupWithWrite | None:
        """Return a lookup that writes what `perform` would write, or None.

        The statement must not write for a request that `check_client` or `check` rejects.
        """
        del request
        return None

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
        """Execute the request and return the body of the response.

        A grant consumes the credential and stores the pair.
        """

    def _may_write(self, request: ProtocolRequest) -> bool:
        """Return whether the lookup may write as well: a proof is consumed before that."""
        context = self.server.context
        is_alone = context.connection.dialect_name == "postgresql" and not context.has_begun()
        return is_alone and "DPoP" not in request.headers

    def _find_proof(self, request: ProtocolRequest, client: Client | None) -> Proof | None:
        """Return the DPoP proof of the request, which `respond` consumes once all is checked."""
        if self.PROOF_PATH is None:
            return None
        text = request.headers.get("DPoP")
        if text is None:
            if self.ISSUES_TOKENS and client is not None and client.application.require_dpop:
                raise InvalidProofError(
                    "Tokens of this application are bound to a key: send a DPoP proof."
                )
            return None
        context = self.server.context
        target = ProofTarget("POST", f"{context.policy.issuer}{self.PROOF_PATH}")
        return check_proof(text, target, now=context.now)


class ClientParameters(Body):
    """Who the client is, unless Basic authentication says so."""

    client_id: str = ""
    client_secret: str = Field(
        default="", description="Client secret of a confidential application."
    )
    client_assertion: str = Field(
        default="",
        description="JWT that is signed with the key of the application, instead of a secret.",
    )
    client_assertion_type: Literal["", ASSERTION_TYPE] = ""  # type: ignore[valid-type]


class TokenGrant(ClientEndpoint[Found, Checked]):
    """A grant at the token endpoint (RFC 6749 section 3.2): all that there is to say about it.

    Mixed into the grant of Authlib that has the GRANT_TYPE. Documents, descriptions, forms and
    help read the declarations from `grants/registry.py`.
    """

    PROOF_PATH = "/oauth/token"
    ISSUES_TOKENS = True
    GRANT_TYPE: str
    #: The name of the credential in a sentence, as in “the device code cannot be used”.
    CREDENTIAL: ClassVar[str]
    #: The parameters of a request, which the description of the API shows.
    REQUEST: ClassVar[type[Body]]
    #: Those of them that may be given more than once.
    REPEATABLE: ClassVar[frozenset[str]] = frozenset()
    #: The reasons of its refusals that no other grant has.
    REASONS: ClassVar[Sequence[Reason]] = ()
    #: What a developer can do if the credential is refused.
    REMEDIES: ClassVar[Sequence[str]] = ()
    #: The name of the grant in forms where administrators allow it to an application, with what
    #: that means; without a name every application may use it.
    PERMISSION: ClassVar[str] = ""
    PERMISSION_HELP: ClassVar[str] = ""
    #: A client that registers itself may ask for it (RFC 7591 section 2).
    IS_REGISTRABLE: ClassVar[bool] = False
    #: Says of an OAuthPolicy whether the instance offers it; None for a grant of every instance.
    SWITCH: ClassVar[Any] = None
    request: ProtocolRequest

    def check_client(self, client: Client, request: ProtocolRequest) -> None:
        """Refuse a client that is not allowed the grant, or is registered for others."""
        del request
        if self.PERMISSION:
            client.require_allowed_grant(self.GRANT_TYPE)
        else:
            client.require_grant_type(self.GRANT_TYPE)
