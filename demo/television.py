"""A television in the device grant: it shows a code, and polls for its token."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_TIMEOUT_SECONDS = 10
#: Errors while the user has not decided yet (RFC 8628 section 3.5).
_PENDING_ERRORS = frozenset({"authorization_pending", "slow_down"})
#: Seconds added to the polling interval, so that the service never answers slow_down.
_EXTRA_POLL_SECONDS = 1


@dataclass(frozen=True, kw_only=True)
class Television:
    """Shows a new code whenever the previous code expires, until a code is approved."""

    base_url: str
    client_id: str
    say: Callable[[str], None]

    def wait_for_approval(self, is_stopped: Event) -> None:
        """Wait for an approval; if the service is unreachable, try again later."""
        while not is_stopped.is_set():
            with suppress(URLError, OSError):
                if self._poll_for_decision(self._request_codes(), is_stopped):
                    self.say("  television: connected")
                    return
            is_stopped.wait(_TIMEOUT_SECONDS)

    def _request_codes(self) -> Mapping[str, Any]:
        codes = self._post_request("authorize_device", client_id=self.client_id, scope="read_user")
        if "user_code" in codes:
            self.say(f"  television: enter {codes['user_code']} at {codes['verification_uri']}")
        return codes

    def _poll_for_decision(self, codes: Mapping[str, Any], is_stopped: Event) -> bool:
        """Poll until there is a decision, and return whether it was an approval."""
        while "device_code" in codes and not is_stopped.wait(
            codes["interval"] + _EXTRA_POLL_SECONDS
        ):
            asked = {"grant_type": _DEVICE_GRANT, "device_code": codes["device_code"]}
            answer = self._post_request("token", client_id=self.client_id, **asked)
            if answer.get("error") not in _PENDING_ERRORS:
                return "access_token" in answer
        return False

    def _post_request(self, endpoint: str, **fields: str) -> Mapping[str, Any]:
        """Return the JSON object of a response, including error responses."""
        url, body = f"{self.base_url}/oauth/{endpoint}", urlencode(fields).encode()
        request = Request(url, data=body, method="POST")  # noqa: S310 - our own
        try:
            with urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - our own
                text = answer.read()
        except HTTPError as error:
            text = error.read()
        with suppress(ValueError):
            found = json.loads(text)
            return found if isinstance(found, dict) else {}
        return {}
