"""Incident pages in a browser: hostile Markdown has no effect, and scripts are not required."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.alerts.test_alert_list import HOSTILE, check_harmless
from tests.browser.doors import have_signed_in, sign_in
from tests.support.accounts.people import alice, make_project, make_user
from tests.support.alerts.senders import connect, item, webhook
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
OWNED = "document.title='owned'"
#: Markdown that produces links, pictures, headings and HTML.
MARKDOWN = f"""
# {HOSTILE}

[a](javascript:{OWNED}) [b](JaVaScRiPt&colon;{OWNED}) [c](data:text/html,<script>{OWNED}</script>)
[d](vbscript:x) <javascript:{OWNED}> [e](//evil.example/) [f](/users/sign_out) [g][h]

![x](http://evil.example/pixel.png) ![y](javascript:{OWNED} "z\\" onerror={OWNED}")

[h]: javascript:{OWNED}

<a href="javascript:{OWNED}" onclick="{OWNED}">x</a> <form action="/users/sign_out"><input></form>
<style>* {{ display: none }}</style><iframe srcdoc="<script>{OWNED}</script>"></iframe>

| <img src=x onerror={OWNED}> | b |
|---|---|
| {HOSTILE} | `<script>{OWNED}</script>` |

```html
<script>{OWNED}</script>
```
"""


@pytest.mark.spec("J2")
def test_hostile_markdown_has_no_effect(
    gatebell: LiveGatebell, page: Page, told: list[str]
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    fields = dict.fromkeys(("alertname", "service", "instance"), HOSTILE)
    markdown = {"platform_incident_markdown": MARKDOWN, "description": MARKDOWN}
    endpoint.post(webhook(item("x", labels=fields, annotations=markdown)))
    have_signed_in(page, gatebell, alice(gatebell))
    page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.locator("#more > summary").click()
    page.get_by_role("button", name="Create incident").click()
    page.get_by_label("Comment", exact=True).fill(MARKDOWN)
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".timeline .comment h3")).to_be_visible()

    check_harmless(page)
    assert OWNED in page.locator("main").inner_html(), "the page shows nothing hostile"
    assert page.locator(".markdown style, .markdown form, .markdown iframe").count() == 0
    hrefs = page.eval_on_selector_all(
        ".markdown a", "nodes => nodes.map(node => node.getAttribute('href'))"
    )
    assert {href for href in hrefs if href} == {
        "http://evil.example/pixel.png",
        f"{gatebell.url}/{endpoint.project}/-/alerts/1",
    }
    assert [url for url in requested if not url.startswith(gatebell.url)] == []
    page.goto(f"{gatebell.url}/{endpoint.project}/-/incidents")
    check_harmless(page)
    assert told == []


@pytest.mark.long
def test_an_incident_is_handled_without_scripts(gatebell: LiveGatebell, plain_page: Page) -> None:
    person = make_user(gatebell)
    endpoint = connect(gatebell, make_project(gatebell, person))
    endpoint.accepted(title="Checkout is down")
    sign_in(plain_page, gatebell, person)
    plain_page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    plain_page.locator("#more > summary").click()
    plain_page.get_by_role("button", name="Create incident").click()
    expect(plain_page.get_by_role("heading", level=1)).to_have_text("Checkout is down #1")
    plain_page.get_by_role("button", name="Acknowledge").click()
    plain_page.get_by_role("button", name="Assign", exact=True).click()
    plain_page.get_by_label("Severity").select_option("low")
    plain_page.get_by_role("button", name="Change", exact=True).click()
    plain_page.get_by_text("Edit incident").click()
    plain_page.get_by_label("Title").fill("No orders")
    plain_page.get_by_role("button", name="Save incident").click()
    plain_page.get_by_label("Comment", exact=True).fill("Rolled *back*")
    plain_page.get_by_role("button", name="Comment", exact=True).click()
    plain_page.locator("#more > summary").click()
    plain_page.get_by_role("button", name="Close").click()
    expect(plain_page.locator(".state-line")).to_contain_text("Resolved")
    expect(plain_page.locator(".timeline .comment em")).to_have_text("back")
    timeline = plain_page.locator(".timeline > li").all_inner_texts()
    assert ["closed it and its 1 alert" in line for line in timeline].count(True) == 1
    plain_page.goto(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    expect(plain_page.get_by_text("resolved it with incident #1")).to_be_visible()
