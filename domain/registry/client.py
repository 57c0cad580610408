"""Deletes tags and manifests in the registry (Docker Registry HTTP API V2).

The registry deletes a manifest by its digest, together with all its tags. To delete only one of
several tags, the tag is first moved to an empty image. That image is then deleted.
"""

import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urljoin

import orjson
from sqlalchemy.orm import Session
from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError

from domain.core.errors import DomainError
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_hex
from domain.core.tls import build_outgoing_tls_context, find_tls_failure_reason
from domain.registry.repositories import DIGEST_PATTERN, TAG_PATTERN
from domain.registry.signing_keys import get_signer
from domain.registry.tokens import TokenPolicy, sign_token

#: Timeouts in seconds. A web page may wait for both, and requests time out after half a minute.
_TIMEOUT = Timeout(connect=3, read=7)
_MAX_RESPONSE_BYTES = 1024 * 1024
#: Maximum number of pages in a tag list, which is far more than any repository needs.
_MAX_TAG_PAGES = 1_000
_OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST_MEDIA_TYPES = (
    _OCI_MANIFEST,
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_ACCEPT_HEADERS = {"Accept": ", ".join(_MANIFEST_MEDIA_TYPES)}
_RETRY_AFTER_SECONDS = 30
_OK, _CREATED, _ACCEPTED, _UNAUTHORIZED, _NOT_FOUND, _NOT_ALLOWED = 200, 201, 202, 401, 404, 405
_TOO_MANY, _SERVER_ERRORS = 429, 500
_ALL_ACTIONS = ["pull", "push", "delete"]
#: Subject of the service's own tokens. No user can have this name.
_SERVICE_SUBJECT = "-"


class _Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes


class RegistryUnavailableError(DomainError):
    """Error for a registry that does not respond or fails internally.

    A retry may succeed.
    """

    retry_after = _RETRY_AFTER_SECONDS


class RegistryRequestError(DomainError):
    """Error for a request that the registry rejects, or for an unusable response of the registry.

    The cause is usually the configuration of the registry, so a retry does not help.
    """


@dataclass(frozen=True, kw_only=True)
class RegistryConnection:
    """The URL of the registry, with its TLS context and the function that creates its tokens."""

    url: str
    #: Function that creates a token for a repository.
    token_for: Callable[[str], str] = field(repr=False)
    #: TLS context for https.
    tls: ssl.SSLContext | None = None


class RegistryClient:
    """A client for one registry. Close the client after use."""

    def __init__(self, address: RegistryConnection) -> None:
        """Store the address of the registry.

        The first request opens the connection.
        """
        self._address = address
        self._pool = PoolManager(timeout=_TIMEOUT, retries=False, ssl_context=address.tls)

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def find_digest(self, repository: str, tag: str) -> str | None:
        """Return the current digest of a tag, or None if there is no such tag.

        Raise RegistryRequestError if the request is rejected or the response has no digest.
        """
        answer = self._send_repository_request(
            "HEAD", repository, f"manifests/{tag}", headers=_ACCEPT_HEADERS
        )
        if answer.status == _NOT_FOUND:
            return None
        _check_status(answer, _OK)
        digest = answer.headers.get("Docker-Content-Digest", "")
        if not DIGEST_PATTERN.fullmatch(digest):
            message = "The container registry did not return the digest of the tag."
            raise RegistryRequestError(message)
        return digest

    def delete_manifest(self, repository: str, digest: str) -> None:
        """Delete a manifest with all its tags, if it exists.

        Raise RegistryRequestError if the registry rejects the request or does not allow deletion.
        """
        answer = self._send_repository_request("DELETE", repository, f"manifests/{digest}")
        if answer.status == _NOT_ALLOWED:
            message = (
                "The container registry does not allow deletion. Set storage.delete.enabled in its "
                "configuration."
            )
            raise RegistryRequestError(message)
        if answer.status != _NOT_FOUND:
            _check_status(answer, _ACCEPTED)

    def remove_tag(self, repository: str, tag: str) -> None:
        """Remove one tag, but keep its image, which has other tags."""
        # The image is unique, so that no other tag is removed with it.
        config = orjson.dumps({"gatebell.removed": generate_random_hex(16)})
        config_digest = self._upload_blob(repository, config)
        manifest = {
            "schemaVersion": 2,
            "mediaType": _OCI_MANIFEST,
            "config": {"mediaType": _OCI_CONFIG, "digest": config_digest, "size": len(config)},
            "layers": [],
        }
        content = orjson.dumps(manifest)
        headers = {"Content-Type": _OCI_MANIFEST}
        answer = self._send_repository_request(
            "PUT", repository, f"manifests/{tag}", content, headers=headers
        )
        _check_status(answer, _CREATED)
        self.delete_manifest(repository, _compute_digest(content))

    def iterate_tags(self, repository: str) -> Iterator[str]:
        """Yield all tags of a repository in the registry."""
        url: str | None = self._build_url(repository, "tags/list?n=500")
        for _ in range(_MAX_TAG_PAGES):
            if url is None:
                return
            answer = self._send_request("GET", repository, url)
            if answer.status == _NOT_FOUND:
                return
            _check_status(answer, _OK)
            yield from _parse_tags(answer)
            url = self._find_next_page_url(url, answer)

    def _find_next_page_url(self, url: str, answer: _Response) -> str | None:
        link = answer.headers.get("Link", "")
        target = link.partition("<")[2].partition(">")[0]
        following = urljoin(url, target) if target and "next" in link else None
        # The registry may return a different host name. The token may be sent only to the
        # configured host.
        is_here = following is not None and following.startswith(f"{self._address.url}/")
        return following if is_here else None

    def _upload_blob(self, repository: str, content: bytes) -> str:
        """Upload a blob in a single request, and return its digest."""
        begun = self._send_repository_request("POST", repository, "blobs/uploads/")
        _check_status(begun, _ACCEPTED)
        digest = _compute_digest(content)
        location = urljoin(self._build_url(repository, ""), begun.headers.get("Location", ""))
        # Only the path and query are used, because the registry may return a different host.
        path = location.partition("://")[2].partition("/")[2]
        joint = "&" if "?" in path else "?"
        headers = {"Content-Type": "application/octet-stream"}
        url = f"{self._address.url}/{path}{joint}digest={digest}"
        _check_status(
            self._send_request("PUT", repository, url, content, headers=headers), _CREATED
        )
        return digest

    def _send_repository_request(
        self,
        method: str,
        repository: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: dict[str, str] | None = None,
    ) -> _Response:
        return self._send_request(
            method, repository, self._build_url(repository, path), body, headers=headers
        )

    def _build_url(self, repository: str, path: str) -> str:
        return f"{self._address.url}/v2/{repository}/{path}"

    def _send_request(
        self,
        method: str,
        repository: str,
        url: str,
        body: bytes | None = None,
        *,
        headers: dict[str, str] | None = None,
    ) -> _Response:
        token = self._address.token_for(repository)
        sent = {"Authorization": f"Bearer {token}", **(headers or {})}
        try:
            response = self._pool.request(
                method, url, body=body, headers=sent, redirect=False, preload_content=False
            )
            content = response.read(_MAX_RESPONSE_BYTES + 1)
            if len(content) > _MAX_RESPONSE_BYTES:
                response.close()
            response.release_conn()
        except (HTTPError, OSError) as error:
            reason = find_tls_failure_reason(error)
            message = f"The container registry cannot be reached{f': {reason}' if reason else ''}."
            raise RegistryUnavailableError(message) from error
        if len(content) > _MAX_RESPONSE_BYTES:
            raise RegistryRequestError("The response of the container registry is too large.")
        return _Response(response.status, response.headers, content)


def _check_status(answer: _Response, expected_status: int) -> None:
    """Check that a response has the expected status.

    Raise RegistryUnavailableError if the registry failed. Raise RegistryRequestError for other
    statuses.
    """
    if answer.status == expected_status:
        return
    if answer.status >= _SERVER_ERRORS or answer.status == _TOO_MANY:
        message = f"The container registry failed with status {answer.status}."
        raise RegistryUnavailableError(message)
    message = f"The container registry rejected the request with status {answer.status}."
    if answer.status == _UNAUTHORIZED:
        message = (
            "The container registry does not accept this service's tokens. Compare its auth.token "
            "section with the generated configuration, and install the current certificates."
        )
    raise RegistryRequestError(message)


def _parse_tags(answer: _Response) -> list[str]:
    try:
        found = orjson.loads(answer.content)
    except ValueError as error:
        message = "The response of the container registry is not valid JSON."
        raise RegistryRequestError(message) from error
    names = found.get("tags") if isinstance(found, dict) else None
    return [each for each in names or () if isinstance(each, str) and TAG_PATTERN.fullmatch(each)]


def _compute_digest(content: bytes) -> str:
    return f"sha256:{sha256(content).hexdigest()}"


@dataclass(frozen=True, kw_only=True)
class RegistryPolicy:
    """The configuration of the registry and of its tokens."""

    #: Host at the start of image names. None if no registry is configured.
    host: str | None
    #: URL of the registry for requests from this service. Empty if no registry is configured.
    api_url: str
    tokens: TokenPolicy
    trusted_ca_file: Path | None = None


def open_registry_client(
    policy: RegistryPolicy, *, session: Session, keyring: Keyring, now: datetime
) -> RegistryClient:
    """Return a registry client, which the caller must close.

    The transaction must allow writes, because the first call creates a key. Raise
    RegistryUnavailableError if no registry is configured.
    """
    url = policy.api_url
    if not url:
        message = "No container registry is connected. An administrator must set REGISTRY_URL."
        raise RegistryUnavailableError(message)
    signer = get_signer(session=session, keyring=keyring, now=now)

    def token_for(repository: str) -> str:
        access = [{"type": "repository", "name": repository, "actions": _ALL_ACTIONS}]
        token = sign_token(
            access, subject=_SERVICE_SUBJECT, signer=signer, policy=policy.tokens, now=now
        )
        return token.clear

    tls = build_outgoing_tls_context(policy.trusted_ca_file) if url.startswith("https:") else None
    return RegistryClient(RegistryConnection(url=url, token_for=token_for, tls=tls))
