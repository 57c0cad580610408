"""The same OAuth requests for every server that supports them."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode

from bench.shots import HOLE, Magazine, Mode, Shot
from bench.workloads import Work

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
#: Number of codes per second, above what any of the servers reaches on a small machine. An empty
#: pool only ends a run early.
CODES_A_SECOND = 2_000
CALLBACK = "https://client.example/callback"
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, kw_only=True)
class Paths:
    """The endpoint paths of a server."""

    token: str
    introspection: str
    device: str


@dataclass(frozen=True, kw_only=True)
class Seed:
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
    def read(cls, path: Path) -> "Seed":
        """Read the output of a peer's seed program."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def oauth_shots(paths: Paths, seed: Seed) -> Mapping[Work, Shot]:
    """Return the requests that can be sent to a server with this seed."""
    known = {**_FORM, "Authorization": f"Basic {_basic(seed)}"}
    code = {"grant_type": "authorization_code", "code": HOLE, "redirect_uri": CALLBACK}
    device = {"client_id": seed.device_client_id, "scope": seed.scope}
    poll = {
        "grant_type": DEVICE_GRANT,
        "client_id": seed.device_client_id,
        "device_code": HOLE,
    }
    pending = {400: ("authorization_pending", "slow_down")}
    return {
        Work.INTROSPECTION: _post(
            paths.introspection,
            {"token": HOLE},
            headers=known,
            mode=Mode.ROTATE,
            values=Magazine(seed.access_tokens),
            expected={200: ('"active":true',)},
        ),
        Work.REFRESH: _post(
            paths.token,
            {"grant_type": "refresh_token", "refresh_token": HOLE},
            headers=known,
            mode=Mode.CHAIN,
            values=Magazine(seed.refresh_tokens),
            expected={200: ('"refresh_token"',)},
        ),
        Work.CODE: _post(
            paths.token,
            code,
            headers=known,
            mode=Mode.ONCE,
            values=Magazine(seed.codes),
            values_a_second=CODES_A_SECOND,
            expected={200: ('"access_token"',)},
        ),
        Work.DEVICE: _post(paths.device, device, expected={200: ('"user_code"',)}),
        Work.POLL: _post(
            paths.token,
            poll,
            mode=Mode.ROTATE,
            values=Magazine(seed.device_codes),
            expected=pending,
        ),
    }


def _post(path: str, form: Mapping[str, str], **more: Any) -> Shot:
    # The placeholder must not be escaped, and its values contain no characters that need escaping.
    body = urlencode(form).replace(quote_plus(HOLE), HOLE)
    return Shot(method="POST", path=path, body=body, **{"headers": _FORM, **more})


def _basic(seed: Seed) -> str:
    return b64encode(f"{seed.client_id}:{seed.client_secret}".encode()).decode()
