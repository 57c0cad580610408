"""Applications in several states: trusted, approved, with a renewed secret, and unused.

One application registers itself. Another runs on a television, which users connect with its code.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from demo.arrangement import DemoObjects
from demo.fortnight import ActionPlan
from demo.machine import DemoError, SimulatedService
from domain.core.grace_period import GracePeriod
from domain.oauth.clients.secrets import renew_secret
from web.extensions import db
from web.services import get_services

_DAY = timedelta(days=1)
_CALLBACK_URL = "http://127.0.0.1:9000/callback"
_INPUT_PATTERN = re.compile(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"')
_FORM_PATTERN = re.compile(r"<form[^>]*>.*?</form>", re.DOTALL)
_TELEVISION_USER_AGENT = (
    "Mozilla/5.0 (SMART-TV; Linux; Tizen 8.0) AppleWebKit/537.36 TV Safari/537.36"
)
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
#: PKCE code verifier. Applications that register themselves must use PKCE; real applications create
#: a new verifier for each request.
_CODE_VERIFIER = "the-same-for-every-request-of-the-demonstration"
_FIREFOX_USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


class DemoApplications:
    """Registers applications and lets users approve them."""

    def __init__(self, machine: SimulatedService, places: DemoObjects, password: str) -> None:
        """Store the arguments without registering anything."""
        self.machine, self.places, self.password = machine, places, password

    def register_all(self) -> None:
        """Register all applications."""
        self.board = self._create_application("Deploy Board", "marta", "read_user read_api")
        self.wallboard = self._create_application("Wallboard", "bob", "read_user read_api")
        self.pager = self._create_application(
            "Pager for the pocket", "alice", "read_user", "--public"
        )
        self._create_application("Quarterly reports", "olivia", "read_api")
        trusted = ("--instance-wide", "--trusted")
        self.sign_in = self._create_application(
            "Intranet", "grace", "openid profile email", *trusted
        )
        for_good = ("--public", "--refresh-for-devices")
        self.television = self._create_application(
            "Hallway television", "chen", "read_user", *for_good
        )
        self.terminal = self._register_itself("Terminal notes", "chen")

    def plan_approvals(self, diary: ActionPlan, end: datetime) -> None:
        """Plan the approvals, and the renewal of a secret."""
        for days, who, application in (
            (13, "alice", self.board),
            (12, "bob", self.board),
            (9, "chen", self.board),
            (12, "bob", self.wallboard),
            (8, "rita", self.wallboard),
            (6, "olivia", self.sign_in),
            (1, "alice", self.sign_in),
            (7, "alice", self.terminal),
        ):
            diary.plan_action(end - days * _DAY, partial(self.use_application, who, application))
        diary.plan_action(end - 5 * _DAY, self._renew_secret)
        for days, who, decision in ((10, "alice", "approve"), (4, "bob", "deny")):
            diary.plan_action(end - days * _DAY, partial(self._connect_television, who, decision))

    def _create_application(
        self, name: str, owner: str, scopes: str, *more: str
    ) -> Mapping[str, Any]:
        given = ("--owner", owner, "--redirect-uri", _CALLBACK_URL, "--scopes", scopes)
        made: Mapping[str, Any] = self.machine.run_command(
            "applications", "create", name, *given, *more
        )
        return {**made, "scopes": scopes}

    def _register_itself(self, name: str, whose: str) -> Mapping[str, Any]:
        """Let an application register itself with a user's token."""
        metadata = {
            "client_name": name,
            "redirect_uris": [_CALLBACK_URL],
            "scope": "read_user",
            "token_endpoint_auth_method": "client_secret_post",
        }
        headers = {"Authorization": f"Bearer {self.places.tokens[whose]}"}
        answer = self.machine.create_browser().post(
            "/oauth/register", json=metadata, headers=headers
        )
        if answer.status_code != 201:  # noqa: PLR2004 - registered
            message = f"{name} could not register itself: {answer.text}"
            raise DemoError(message)
        made = answer.get_json()
        return {
            "application_id": made["client_id"],
            "secret": made["client_secret"],
            "scopes": made["scope"],
        }

    def _connect_television(self, who: str, decision: str) -> None:
        """Let a user enter the television's code and submit a decision."""
        device, client = (
            self.machine.create_browser(),
            {"client_id": self.television["application_id"]},
        )
        device.environ_base["HTTP_USER_AGENT"] = _TELEVISION_USER_AGENT
        scope = {"scope": self.television["scopes"]}
        codes = device.post("/oauth/authorize_device", data={**client, **scope}).get_json()
        browser = self.machine.create_browser()
        browser.environ_base["HTTP_USER_AGENT"] = _FIREFOX_USER_AGENT
        self._sign_in(browser, who)
        action, form = _find_form(browser.get("/oauth/device").text, 'name="user_code"')
        page = browser.post(action, data={**form, "user_code": codes["user_code"]}).text
        action, form = _find_form(page, 'name="decision"')
        browser.post(action, data={**form, "decision": decision})
        poll = {"grant_type": _DEVICE_GRANT, "device_code": codes["device_code"], **client}
        answer = device.post("/oauth/token", data=poll)
        if decision == "approve":
            self._request_profile(answer, self.television)

    def _renew_secret(self) -> None:
        """Renew the secret of the wallboard; the old secret, still in use, expires a day later."""
        with self.machine.app.app_context():
            renew_secret(
                self.wallboard["id"],
                session=db.session(),
                keyring=get_services().keyring,
                now=self.machine.now,
                grace_period=GracePeriod.DAY,
            )
            db.session.commit()

    def use_application(self, who: str, application: Mapping[str, Any]) -> None:
        """Sign a user in, approve an application, and let it request the user's profile."""
        browser = self.machine.create_browser()
        browser.environ_base["HTTP_USER_AGENT"] = _FIREFOX_USER_AGENT
        self._sign_in(browser, who)
        query = {
            "response_type": "code",
            "client_id": application["application_id"],
            "redirect_uri": _CALLBACK_URL,
            "scope": application["scopes"],
            "state": "demo",
            "code_challenge": create_s256_code_challenge(_CODE_VERIFIER),
            "code_challenge_method": "S256",
        }
        answer = browser.get(f"/oauth/authorize?{urlencode(query)}")
        if answer.status_code == 200:  # noqa: PLR2004 - it asks
            action, form = _find_form(answer.text, 'name="decision"')
            answer = browser.post(action, data={**form, "decision": "authorize"})
        code = parse_qs(urlsplit(answer.headers.get("Location", "")).query).get("code", [""])[0]
        self._redeem_code(browser, application, code)

    def _sign_in(self, browser: FlaskClient, who: str) -> None:
        page = browser.get("/users/sign_in").text
        action, form = _find_form(page, 'name="password"')
        answer = browser.post(action, data={**form, "login": who, "password": self.password})
        if answer.status_code != 302:  # noqa: PLR2004 - signed in
            message = f"{who} could not sign in: {answer.status_code}"
            raise DemoError(message)

    def _redeem_code(self, browser: FlaskClient, application: Mapping[str, Any], code: str) -> None:
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": _CALLBACK_URL,
            "code_verifier": _CODE_VERIFIER,
            "client_id": application["application_id"],
            "client_secret": application["secret"],
        }
        self._request_profile(browser.post("/oauth/token", data=fields), application)

    def _request_profile(self, answer: TestResponse, application: Mapping[str, Any]) -> None:
        """Request the user's profile with the token from a response."""
        if answer.status_code != 200:  # noqa: PLR2004 - a token
            message = f"{application['application_id']} got no token: {answer.text}"
            raise DemoError(message)
        token = answer.get_json()["access_token"]
        bare = self.machine.create_browser()
        bare.get("/api/v4/user", headers={"Authorization": f"Bearer {token}"})


def _find_form(page: str, mark: str) -> tuple[str, dict[str, str]]:
    """Return the action URL and the hidden fields of the form that contains `mark`."""
    (form, *_) = (found for found in _FORM_PATTERN.findall(page) if mark in found)
    hidden = (each for each in re.findall(r"<input[^>]*>", form) if 'type="hidden"' in each)
    pairs = (_INPUT_PATTERN.search(each) for each in hidden)
    action = re.search(r'action="([^"]*)"', form)
    return unescape(action[1]) if action else "", {
        found[1]: unescape(found[2]) for found in pairs if found
    }
