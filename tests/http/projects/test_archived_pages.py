"""Pages of an archived project offer no change that the project rejects."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
import requests

from tests.http.pages.test_every_form import shape_of
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import open_browser
from tests.support.described.instance import SETTINGS, furnish
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import HtmlForm, forms_in

pytestmark = pytest.mark.long

#: Forms that an archived project accepts and that would end the crawl.
ENDS = re.compile(r"/settings/(?:unarchive|delete)|/members/.*/remove")
REJECTION = "is archived and cannot be changed"


def list_forms(page: requests.Response) -> Iterator[tuple[str, HtmlForm]]:
    """Yield the forms that change something, each with its target."""
    texts = re.findall("<form.*?</form>", page.text, re.DOTALL)
    for form, text in zip(forms_in(page.text), texts, strict=True):
        target = urljoin(page.url, form.action)
        if form.method == "post" and 'type="submit"' in text and not ENDS.search(target):
            yield target, form


def find_offers(live: LiveGatebell, browser: requests.Session, project: str) -> set[str]:
    """Return the pages of a project, each with the path of a form that the project rejects."""
    waiting, seen, found = [f"{live.url}/{project}"], set[str](), set[str]()
    while waiting:
        url = waiting.pop()
        if shape_of(url) in seen:
            continue
        seen.add(shape_of(url))
        page = browser.get(url, timeout=60)
        if page.headers["Content-Type"].startswith("text/html"):
            links = re.findall(r'href="([^"#]+)', page.text)
            targets = [urljoin(page.url, each.replace("&amp;", "&")) for each in links]
            waiting += [each for each in targets if each.startswith(f"{live.url}/{project}/")]
            for target, form in list_forms(page):
                kind = f"{shape_of(url)} {shape_of(target)}"
                if kind not in seen and target.startswith(f"{live.url}/{project}/"):
                    seen.add(kind)
                    answer = browser.post(target, data=form.filled(), timeout=60)
                    found |= {kind} if REJECTION in answer.text else set()
    assert len(seen) > 40
    return found


def test_pages_of_an_archived_project_offer_no_rejected_change(new_service: NewService) -> None:
    with running(new_service("sqlite", only="web", **SETTINGS)) as live:
        project = furnish(live).project
        browser = open_browser(live, get_shared_administrator(live))
        live.cli("projects", "archive", project)
        assert sorted(find_offers(live, browser, project)) == []
