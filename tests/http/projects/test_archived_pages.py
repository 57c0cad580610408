"""Pages of an archived project offer no change that the project rejects."""

import re
from urllib.parse import urljoin, urlsplit

import pytest
import requests

from tests.http.pages.test_every_form import shape_of
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import open_browser
from tests.support.described.instance import SETTINGS, furnish
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import forms_in

pytestmark = pytest.mark.long

#: Forms that an archived project accepts and that would end the crawl.
ENDS = re.compile(r"/settings/(?:unarchive|delete)|/members/.*/remove")
REJECTION = "is archived and cannot be changed"


def find_offers(live: LiveGatebell, browser: requests.Session, project: str) -> set[str]:
    """Return the pages of a project, each with the path of a form that the project rejects."""
    waiting, seen, found = [f"{live.url}/{project}"], set[str](), set[str]()
    while waiting:
        url = waiting.pop()
        if shape_of(url) in seen:
            continue
        seen.add(shape_of(url))
        page = browser.get(url, timeout=60)
        if not page.headers["Content-Type"].startswith("text/html"):
            continue
        links = re.findall(r'href="([^"#]+)', page.text)
        targets = [urljoin(page.url, each.replace("&amp;", "&")) for each in links]
        waiting += [each for each in targets if each.startswith(f"{live.url}/{project}/")]
        texts = re.findall("<form.*?</form>", page.text, re.DOTALL)
        for form, text in zip(forms_in(page.text), texts, strict=True):
            target = urljoin(page.url, form.action)
            kind = f"{shape_of(url)} {shape_of(target)}"
            if form.method != "post" or ENDS.search(target) or kind in seen:
                continue
            if 'type="submit"' not in text:
                continue
            seen.add(kind)
            if urlsplit(target).path.startswith(f"/{project}/"):
                answer = browser.post(target, data=form.filled(), timeout=60)
                if REJECTION in answer.text:
                    found.add(kind)
    assert len(seen) > 40
    return found


def test_pages_of_an_archived_project_offer_no_rejected_change(new_service: NewService) -> None:
    with running(new_service("sqlite", only="web", **SETTINGS)) as live:
        project = furnish(live).project
        browser = open_browser(live, get_shared_administrator(live))
        live.cli("projects", "archive", project)
        assert sorted(find_offers(live, browser, project)) == []
