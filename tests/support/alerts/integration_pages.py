"""The pages of a project's integrations, seen by a user with a role."""

import html
import re

import requests

from domain.access.roles import Role
from tests.support.accounts.team import browser_of
from tests.support.alerts.senders import Endpoint
from tests.support.service.live import LiveGatebell


def address(gatebell: LiveGatebell, project: str, page: str = "", number: int = 0) -> str:
    path = f"/{page.format(id=number)}" if page else ""
    return f"{gatebell.url}/{project}/-/settings/integrations{path}"


def opened(
    gatebell: LiveGatebell, endpoint: Endpoint, page: str, role: Role | None = Role.MAINTAINER
) -> tuple[requests.Session, requests.Response]:
    browser = browser_of(gatebell, endpoint.project, role)
    return browser, browser.get(address(gatebell, endpoint.project, page, endpoint.id))


def words(page: str) -> str:
    """Return the visible text of a page, without the options of drop-downs."""
    seen = re.sub(r"<(option|script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", seen)).split())


def snippets_on(page: requests.Response) -> dict[str, str]:
    """Return the texts that the copy buttons of the credentials page copy, by title."""
    blocks = re.findall(
        r'<h3>([^<]*)</h3>.*?<code id="snippet-\d+">(.*?)</code>', page.text, re.DOTALL
    )
    return {
        html.unescape(title): html.unescape(re.sub(r"</?span[^>]*>", "", text))
        for title, text in blocks
    }
