"""Visits of users that an application redirects to the service."""

from dataclasses import dataclass

import requests

from tests.support.accounts.people import ClientCredentials
from tests.support.oauth.oauth_wire import Changes, open_authorization, submit_decision
from tests.support.service.live import LiveGatebell


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A browser in which a user is signed in, and the application that redirects it."""

    gatebell: LiveGatebell
    browser: requests.Session
    client: ClientCredentials

    def open_authorization(self, **changes: Changes) -> requests.Response:
        """Open the authorization URL of the application."""
        return open_authorization(self.browser, self.gatebell, self.client, **changes)

    def submit_decision(
        self, page: requests.Response, decision: str = "authorize"
    ) -> requests.Response:
        """Press a button of the consent page."""
        return submit_decision(self.browser, page, decision)
