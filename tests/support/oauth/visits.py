"""Somebody whom an application sends to the service, and who answers its question."""

from dataclasses import dataclass

import requests

from tests.support.accounts.people import ClientCredentials
from tests.support.oauth.oauth_wire import Changes, ask, decide
from tests.support.service.live import LiveGatebell


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A browser in which somebody is signed in, and the application that sends it."""

    gatebell: LiveGatebell
    browser: requests.Session
    client: ClientCredentials

    def ask(self, **changes: Changes) -> requests.Response:
        """Go where the application sends the browser."""
        return ask(self.browser, self.gatebell, self.client, **changes)

    def decide(self, page: requests.Response, decision: str = "authorize") -> requests.Response:
        """Press a button of the consent page."""
        return decide(self.browser, page, decision)
