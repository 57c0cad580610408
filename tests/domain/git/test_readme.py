"""READMEs of people whom nobody trusts."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.git.readme import readme_among, render_readme


def rendered(source: str, folder: bytes = b"") -> str:
    return render_readme(source, folder=folder, url_of=lambda path: f"/files/{path.decode()}")


class Seen(HTMLParser):
    """The elements and attributes of a text, as a browser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, name, value or "") for name, value in (*attrs, ("", ""))}


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("docs/a.md", "/files/docs/a.md"),
        ("./docs/../b.md", "/files/b.md"),
        ("/a%20b.md", "/files/a b.md"),
        ("https://example.com/x?y=1", "https://example.com/x?y=1"),
        ("mailto:a@b.example", "mailto:a@b.example"),
        ("../../etc/passwd", None),
        ("//evil.example/x", None),
        ("#part", None),
        ("javascript:alert(1)", None),
        ("JaVaScRiPt:alert(1)", None),
        ("vbscript:x", None),
        ("data:text/html,x", None),
        ("http:", None),
        ("http://[", None),
    ],
)
def test_a_link_leads_to_the_web_or_to_a_file_and_nowhere_else(
    address: str, target: str | None
) -> None:
    for source in (f"[words](<{address}>)", f'<p><a href="{address}">words</a></p>'):
        found = re.search(r'<a href="([^"]*)"', rendered(source))
        assert (found[1] if found else None) == target
        if found:
            assert 'rel="nofollow noopener noreferrer"' in rendered(source)


def test_cells_are_aligned_by_classes_alone() -> None:
    html = rendered("| a | b | c |\n|:--|--:|:-:|\n| 1 | 2 | 3 |")
    assert re.findall(r"<t[hd]\b([^>]*)>", html) == ["", ' class="number"', ' class="centered"'] * 2
    assert '<td class="">' in rendered('<table><tr><td class="button" style="color:red">')


def test_a_link_is_relative_to_the_folder_of_the_readme() -> None:
    assert 'href="/files/lib/a.py"' in rendered("[a](a.py)", b"lib")
    assert 'href="/files/b.py"' in rendered("[b](../b.py)", b"lib")


def test_an_image_is_its_description() -> None:
    assert rendered("![A *red* <b>](https://x.example/a.png)") == "<p>A red &lt;b&gt;</p>\n"
    assert "img" not in rendered('<p><img src="https://x.example/a.png" onerror="x()"></p>')


def test_headings_come_below_those_of_the_page() -> None:
    html = rendered("# One\n\n## Two\n\n###### Six\n\n<h1>raw</h1>")
    assert "<h3>One</h3>" in html
    assert "<h4>Two</h4>" in html
    assert "<h6>Six</h6>" in html
    assert "<h1" not in html


HARMLESS = {"a", "blockquote", "br", "code", "details", "em", "h3", "h4", "hr", "li", "ol", "p"}
HARMLESS |= {"pre", "s", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul"}
HARMLESS |= {"b", "del", "h5", "h6", "i", "kbd", "sub", "sup"}
PARTS = (
    *("<script>", "</script>", "<svg onload=x>", "<math>", "<style>", "<a href=", "javascript:x"),
    *("<img src=x onerror=y>", "<iframe>", "<form action=/x>", "<input autofocus onfocus=x>"),
    *("<p style=x class=y id=z>", "<!--", "-->", "<![CDATA[", "&lt;script&gt;", "<b", "'", '"'),
    *(
        "[a](",
        ")",
        "![",
        "]",
        "`",
        "```\n",
        "# ",
        "> ",
        "- ",
        "| a |\n|---|\n",
        "\n\n",
        "\x00",
        "é",
    ),
    *("<noscript>", "<template>", "<base href=//x>", "<meta http-equiv=refresh>"),
    *("&#106;avascript:", "é"),
)


@pytest.mark.long
@given(st.lists(st.sampled_from(PARTS), max_size=30))
def test_nothing_but_harmless_elements_comes_out(parts: list[str]) -> None:
    seen = Seen()
    seen.feed(rendered("".join(parts)))
    for tag, name, value in seen.found:
        assert tag in HARMLESS
        assert name in {"", "href", "rel", "start"}
        if name == "href":
            assert value.startswith(("/files/", "http://", "https://", "mailto:"))


def test_the_readme_of_a_folder_is_found_whatever_its_case() -> None:
    assert readme_among([b"a", b"readme.txt", b"ReadMe.MD"]) == b"ReadMe.MD"
    assert readme_among([b"README"]) == b"README"
    assert readme_among([b"README.pdf", b"xreadme.md"]) is None
