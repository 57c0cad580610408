"""The same OAuth requests for every server that supports them."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode

from bench.shots import VALUE_PLACEHOLDER, OneTimeValues, Shot, ValueMode
from bench.workloads import RequestKind

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
#: Number of codes per second, above what any of the servers reaches on a small machine. An empty
#: pool only ends a run early.
CODES_PER_SECOND = 2_000
CALLBACK_URL = "https://client.example/callback"
_FORM_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, kw_only=True)
class EndpointPaths:
    """The endpoint paths of a server."""

    token: str
    introspection: str
    device: str


@dataclass(frozen=True, kw_only=True)
class SeedData:
    """The data that was stored in a server's database before the run."""

    client_id: str
    client_secret: str = field(repr=False)
    device_client_id: str
    scope: str
    access_tokens: Sequence[str] = field(repr=False)
    refresh_tokens: Sequence[str] = field(repr=False)
    codes: Sequence[str] = field(repr=False)
    device_codes: Sequence[str] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> "SeedData":
        """Read the output of a peer's seed program."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def build_oauth_shots(paths: EndpointPaths, seed: SeedData) -> Mapping[RequestKind, Shot]:
    """Return the requests that can be sent to a server with this seed."""
    known = {**_FORM_HEADERS, "Authorization": f"Basic {_build_basic_header(seed)}"}
    code = {
        "grant_type": "authorization_code",
        "code": VALUE_PLACEHOLDER,
        "redirect_uri": CALLBACK_URL,
    }
    device = {"client_id": seed.device_client_id, "scope": seed.scope}
    poll = {
        "grant_type": DEVICE_GRANT,
        "client_id": seed.device_client_id,
        "device_code": VALUE_PLACEHOLDER,
    }
    pending = {400: ("authorization_pending", "slow_down")}
    return {
        RequestKind.INTROSPECTION: _build_post(
            paths.introspection,
            {"token": VALUE_PLACEHOLDER},
            headers=known,
            mode=ValueMode.ROTATE,
            values=OneTimeValues(seed.access_tokens),
            expected={200: ('"active":true',)},
        ),
        RequestKind.REFRESH: _build_post(
            paths.token,
            {"grant_type": "refresh_token", "refresh_token": VALUE_PLACEHOLDER},
            headers=known,
            mode=ValueMode.CHAIN,
            values=OneTimeValues(seed.refresh_tokens),
            expected={200: ('"refresh_token"',)},
        ),
        RequestKind.CODE: _build_post(
            paths.token,
            code,
            headers=known,
            mode=ValueMode.ONCE,
            values=OneTimeValues(seed.codes),
            values_a_second=CODES_PER_SECOND,
            expected={200: ('"access_token"',)},
        ),
        RequestKind.DEVICE: _build_post(paths.device, device, expected={200: ('"user_code"',)}),
        RequestKind.POLL: _build_post(
            paths.token,
            poll,
            mode=ValueMode.ROTATE,
            values=OneTimeValues(seed.device_codes),
            expected=pending,
        ),
    }


def _build_post(path: str, form: Mapping[str, str], **more: Any) -> Shot:
    # The placeholder must not be escaped, and its values contain no characters that need escaping.
    body = urlencode(form).replace(quote_plus(VALUE_PLACEHOLDER), VALUE_PLACEHOLDER)
    return Shot(method="POST", path=path, body=body, **{"headers": _FORM_HEADERS, **more})


def _build_basic_header(seed: SeedData) -> str:
    return b64encode(f"{seed.client_id}:{seed.client_secret}".encode()).decode()
