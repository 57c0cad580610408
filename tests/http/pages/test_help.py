"""The help pages /help: guides and documents with the values of their readers."""

import re
from urllib.parse import urldefrag

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from blueprints.help.documents import (
    RENAMED_DOCUMENTS,
    GuideValues,
    get_page_path,
    load_documents,
    load_sections,
)
from blueprints.help.search import search_documents
from domain.access.roles import Role
from domain.access.scopes import ALWAYS_ALLOWED_SCOPES, NON_APPLICATION_SCOPES, SCOPES
from domain.oauth.openid import userinfo
from domain.oauth.personal_tokens.tokens import PERSONAL_SCOPES
from tests.support.accounts.people import alice, bob, make_application, signed_in
from tests.support.accounts.team import browser_of
from tests.support.alerts.senders import connect
from tests.support.service.live import ROOT, LiveGatebell


def names_in_index() -> list[str]:
    return [topic.name for section in load_sections() for topic in section.topics]


def test_the_index_has_every_document_once_and_begins_with_the_quickstart() -> None:
    names = names_in_index()
    records = {name for name in load_documents() if re.match(r"adr/\d", name)}
    assert sorted(names) == sorted(load_documents().keys() - records - {"README"})
    assert names[0] == "quickstart"


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_every_link_of_the_help_has_a_page_and_an_anchor(client: FlaskClient) -> None:
    pages: dict[str, str] = {}
    waiting, asked = ["/help"], set[tuple[str, str]]()
    while waiting:
        if (path := waiting.pop()) in pages:
            continue
        answer = client.get(path)
        assert answer.status_code == 200, path
        main = re.search("(?s)<main.*</main>", answer.text) if _is_page(answer) else None
        pages[path] = main[0] if main else ""
        # The content security policy blocks style attributes.
        assert not re.search(r"<[^>]* style=", pages[path]), path
        answer.close()
        for target in _TARGET.findall(pages[path]):
            bare, anchor = urldefrag(target)
            asked.add((bare or path, anchor))
            waiting.append(bare or path)
    assert {each for each in asked if each[1] and f'id="{each[1]}"' not in pages[each[0]]} == set()
    assert {get_page_path(name) for name in names_in_index()} <= pages.keys()


#: Links to documents, pictures and parts of a page.
_TARGET = re.compile(r'(?:href|src)="((?:/help/(?:docs|guides|images)/|#)[^"]*)"')


def _is_page(answer: TestResponse) -> bool:
    return answer.mimetype == "text/html"


@pytest.mark.one_database("sqlite")
def test_a_drawing_is_served_and_described(client: FlaskClient) -> None:
    page = client.get("/help/docs/concepts").text
    shown = re.search(r'<img src="(/help/images/[^"]+\.svg)" alt="([^"]+)"', page)
    assert shown
    answer = client.get(shown[1])
    assert (answer.status_code, answer.mimetype) == (200, "image/svg+xml")
    drawing = answer.text
    answer.close()
    assert "<title " in drawing
    assert f">{shown[2]}</desc>" in drawing
    assert "prefers-color-scheme: dark" in drawing
    # Images load nothing from elsewhere.
    assert re.findall(r"(?:href=\"|src=\"|url\()(?!#)", drawing) == []
    width = re.search(r'<svg [^>]*width="(\d+)"', drawing)
    assert width
    # A reader sees text of at least 12 px at the natural width, and of 11 px on a phone.
    smallest = min(float(size) for size in re.findall(r"font-size: ([\d.]+)px", drawing))
    assert smallest >= 12
    assert smallest * 358 / int(width[1]) >= 11


@pytest.mark.long
def test_a_guide_shows_only_values_of_the_readers_own_application(gatebell: LiveGatebell) -> None:
    client = make_application(gatebell, bob(gatebell), name="Notes")
    url = f"{gatebell.url}/help/guides/web-application?application={client.id}"
    own = signed_in(gatebell, bob(gatebell)).get(url).text
    page = f"{gatebell.url}/-/user_settings/applications/{client.id}"
    path = url.removeprefix(gatebell.url)
    assert path in signed_in(gatebell, bob(gatebell)).get(page).text
    assert f"client_id=&#34;{client.client_id}&#34;" in own
    assert f"authorize_redirect(&#34;{client.redirect_uri}&#34;)" in own
    assert client.secret not in own
    assert "Requests for them are rejected" in " ".join(own.split())
    assert f"/-/user_settings/applications/{client.id}/edit" in own
    suiting = make_application(gatebell, bob(gatebell), scopes="openid profile email")
    suits = url.replace(f"={client.id}", f"={suiting.id}")
    assert "are rejected until" not in signed_in(gatebell, bob(gatebell)).get(suits).text
    offer = f"/help/guides/web-application?application={client.id}"
    plain = f"{gatebell.url}/help/guides/web-application"
    assert offer in signed_in(gatebell, bob(gatebell)).get(plain).text
    for session in (signed_in(gatebell, alice(gatebell)), gatebell.http()):
        assert offer not in session.get(plain).text
        others = session.get(url).text
        assert "client_id=&#34;CLIENT_ID&#34;" in others
        assert f"{gatebell.url}/.well-known/openid-configuration" in others
        assert "shows placeholders" in others
        assert client.client_id not in others
        assert "Notes" not in others


@pytest.mark.long
def test_the_page_of_an_application_links_the_quickstart_with_its_values(
    gatebell: LiveGatebell,
) -> None:
    client = make_application(gatebell, bob(gatebell))
    browser = signed_in(gatebell, bob(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/applications/{client.id}").text
    path = f"/help/guides/quickstart?application={client.id}"
    assert path in page
    guide = browser.get(f"{gatebell.url}{path}").text
    assert f"--data client_id={client.client_id} " in guide
    assert f"REDIRECT_URI={client.redirect_uri}\n" in guide
    assert f"{client.redirect_uri}?code=gbc-…" in guide
    # Guides that mention the loopback address as an alternative keep it.
    other = f"{gatebell.url}/help/guides/single-page-application?application={client.id}"
    assert (
        "For development, you can add <code>http://127.0.0.1/callback</code>"
        in browser.get(other).text
    )


@pytest.mark.long
def test_a_guide_shows_only_urls_of_the_readers_own_integration(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    base = f"{gatebell.url}/help/guides/curl?integration={endpoint.id}&project="
    own = signed_in(gatebell, alice(gatebell)).get(base + endpoint.project).text
    assert endpoint.url in own
    assert endpoint.key not in own
    page = f"/{endpoint.project}/-/settings/integrations/{endpoint.id}/credentials"
    linked = signed_in(gatebell, alice(gatebell)).get(gatebell.url + page).text
    assert f"/help/guides/curl?project={endpoint.project}&amp;integration={endpoint.id}" in linked
    for session, project in (
        (signed_in(gatebell, bob(gatebell)), endpoint.project),
        (browser_of(gatebell, endpoint.project, Role.DEVELOPER), endpoint.project),
        (gatebell.http(), endpoint.project),
        (signed_in(gatebell, alice(gatebell)), connect(gatebell).project),
        (signed_in(gatebell, alice(gatebell)), "a%00b"),
        (signed_in(gatebell, alice(gatebell)), "9" * 3_000),
    ):
        answer = session.get(base + project)
        assert answer.status_code == 200
        assert endpoint.url not in answer.text
        assert "shows placeholders" in answer.text
    scripts = f"{gatebell.url}/help/guides/scripts?project={endpoint.project}"
    encoded = endpoint.project.replace("/", "%2F")
    assert encoded in signed_in(gatebell, alice(gatebell)).get(scripts).text
    assert encoded not in gatebell.http().get(scripts).text
    wrong = f"{gatebell.url}/help/guides/curl?integration=x"
    assert gatebell.http().get(wrong).status_code == 400


def test_the_loopback_address_is_replaced_except_behind_proxies_and_in_local_checks() -> None:
    values = GuideValues(base_url="https://gate.test/a")
    kept = "proxy_pass http://127.0.0.1:8000; curl http://127.0.0.1:8000/readyz"
    assert (
        values.replace_placeholders(f"http://127.0.0.1:8000/help {kept}")
        == f"https://gate.test/a/help {kept}"
    )


@pytest.mark.one_database("sqlite")
def test_names_in_tables_break_only_after_dots_and_underscores(client: FlaskClient) -> None:
    page = client.get("/help/docs/log-events").text
    assert "<code>gatebell.<wbr>audit</code>" in page
    assert "<code>audit_<wbr>stream.<wbr>delivery_<wbr>failed</code>" in page
    assert "<code>LOG_FORMAT=text</code>" in page, "text wraps at other places"
    # On a phone, each cell of a wide table shows the heading of its column.
    assert '<td role="cell" data-label="logger"><code>gatebell.<wbr>audit</code></td>' in page
    # Tables of numbers stay tables, so that numbers can be compared.
    tables = client.get("/help/docs/evidence/performance").text.split("<table")[1:]
    numeric = [each for each in tables if 'class="number"' in each.partition("</table>")[0]]
    assert numeric
    assert not [each for each in numeric if "cards" in each.partition(">")[0]]


def test_excerpts_of_tables_have_no_rulers() -> None:
    found = search_documents("silences")
    assert found
    assert not [hit.excerpt for hit in found if "---" in hit.excerpt]


def test_values_with_shell_syntax_are_not_filled_into_commands() -> None:
    values = GuideValues(base_url="https://gate.test/a", redirect_uri="https://a.example/$(reboot)")
    text = "curl https://gate.example/x https://gate.example.org https://app.example/callback"
    assert values.replace_placeholders(text) == (
        "curl https://gate.test/a/x https://gate.example.org https://app.example/callback"
    )


@pytest.mark.one_database("sqlite")
@pytest.mark.parametrize("name", RENAMED_DOCUMENTS)
def test_the_former_name_of_a_document_redirects_to_it(client: FlaskClient, name: str) -> None:
    answer = client.get(f"/help/{name if name.startswith('guides/') else f'docs/{name}'}?a=b")
    assert answer.status_code == 301
    assert answer.headers["Location"] == f"{get_page_path(RENAMED_DOCUMENTS[name])}?a=b"
    assert client.get(get_page_path(RENAMED_DOCUMENTS[name])).status_code == 200


#: Search terms of users, and a part of the first result's URL.
_SEARCHES = {
    "2FA": "approve-access",
    "lost phone": "approve-access#if-you-lose",
    "MFA": "approve-access",
    "SSO": "identity-providers",
    "quickstart": "quickstart",
    "getting started": "quickstart",
    "troubleshooting": "troubleshooting",
    "handoff": "reports",
    "GDPR": "personal-data",
    "high availability": "scaling-out",
    "kubernetes": "kubernetes",
    "k8s": "kubernetes",
    "dedupe": "concepts#integrations-and-alerts",
    "restore": "backup-and-restore",
    "disaster recovery": "backup-and-restore",
    "upgrade": "upgrade",
    "LDAP": "ldap-and-saml",
    "webhook signature": "webhooks",
    "PAT": "token",
    "dead man's switch": "heartbeats",
    "mute": "silences",
    "on-call": "on-call",
    "postmortem": "reports",
    "rate limits": "api",
    "metrics": "health-and-metrics",
    "TOTP": "approve-access",
    "WebAuthn": "approve-access",
    "device code": "device",
    "PKCE": "single-page-application",
    "grafana": "grafana",
    "nobody was paged": "nobody-was-paged",
    "invalid_grant": "docs/errors#",
    "access_denied": "docs/errors#",
    "authorization_pending": "docs/errors#",
    "mail.failed": "log-events",
    "PAGE_SIZE": "settings",
}


@pytest.mark.parametrize("words", _SEARCHES)
def test_the_first_result_of_a_search_is_the_page_on_it(words: str) -> None:
    pages = [hit.part.page for hit in search_documents(words)[:3]]
    assert any(_SEARCHES[words] in page for page in pages[:1]), pages


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_search_finds_the_part_with_the_words(client: FlaskClient) -> None:
    found = client.get("/help", query_string={"search": "PROMPT=none works"}).text
    assert "/help/guides/scopes-and-claims#where-promptnone-works" in found
    assert "No results" in client.get("/help?search=prompt+zzzyx").text
    for words in ("\0", "a" * 10_000, "<script>alert(1)</script>", "%"):
        answer = client.get("/help", query_string={"search": words})
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text


def test_the_tables_of_scopes_and_claims_are_true() -> None:
    text = load_documents()["guides/scopes-and-claims"].text
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", text, re.MULTILINE)
    scopes = {name: kind for name, _, kind in rows[: len(SCOPES)]}
    assert list(scopes) == [scope.name for scope in SCOPES if scope.is_offered]
    of_tokens = {name for name, kind in scopes.items() if "applications" not in kind}
    assert of_tokens == NON_APPLICATION_SCOPES
    assert tuple(name for name, kind in scopes.items() if "tokens" in kind) == PERSONAL_SCOPES
    assert {
        name for name, kind in scopes.items() if "without registering" in kind
    } == ALWAYS_ALLOWED_SCOPES
    claims = [(name, scope.strip("`")) for name, scope, _ in rows[len(SCOPES) :]]
    assert claims == [
        (name, scope) for scope, names in userinfo.CLAIMS_BY_SCOPE.items() for name in names
    ]


def test_every_named_block_of_a_guide_is_run_by_a_test() -> None:
    named = {
        block
        for name, document in load_documents().items()
        if name.startswith("guides/")
        for block in re.findall(r"^```\w+ (\S+)$", document.text, re.MULTILINE)
    }
    tests = [
        *(ROOT / "tests" / "stories").rglob("*guide*.py"),
        *(ROOT / "tests" / "browser").rglob("*guide*.py"),
    ]
    run = "".join(file.read_text(encoding="utf-8") for file in tests)
    assert named - {each for each in named if f'"{each}"' in run} == {"build.gradle"}
