"""Unparsable files are rejected with the line; parts of files and any language are accepted."""

import json

import pytest

from domain.releases.checker.findings import UnreadableContentError
from domain.releases.checker.text_checks import check_file, check_text
from tests.domain.releases.checker.examples import API, har


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.json", "{not json", 1),
        ("a.json", '{"a": 1,\n "b": }', 2),
        ("a.json", '{"a": 1}\n{"b": 2', 2),
        ("", '{"query": "{ user { id } }"', 1),
        ("", '[\n {"method": "GET"},\n]', 3),
        ("a.py", "def (:", 1),
        ("a.py", "x = 1\ny = [1, 2)\n", 2),
        ("a.py", "call(\n)\n}\n", 3),
        ("a.pyi", 'x: str = "\n', 1),
        ("a.py", 'def f():\n    """Say.\n    return 1\n', 2),
    ],
)
def test_files_that_cannot_be_parsed_are_rejected_with_the_line(
    name: str, text: str, line: int
) -> None:
    with pytest.raises(UnreadableContentError, match=rf"\(line {line}\)"):
        check_file(name, text.encode())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_ignored(encoding: str) -> None:
    text = '\ufeff{"query": "{ runnerPlatforms { id } }"}' if encoding == "utf-8" else '{"a": 1}'
    assert check_file("a.json", text.encode(encoding)).kind == "JSON"
    assert check_text("a.json", text).kind == "JSON"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # A part of a file, without its name.
        ("", "    gl.users.list(page=2)\n    )\n"),
        ("", "import gitlab\nfor user in gl.users.list(\n"),
        ("", "[ -f token ] && curl https://gate.example/api/v4/version"),
        ("", "[[ -f token ]] && curl https://gate.example/api/v4/version"),
        ("", "[settings]\nurl = 1"),
        ("", "def (:"),
        # Syntax that is valid in the language.
        ("a.js", "const brackets = /[({]/;\nlet apostrophe = <p>don't</p>;"),
        ("a.rs", "fn first<'a>(x: &'a str) -> &'a str { x }"),
        ("a.sh", "cat <<END\ndon't (\nEND\ncase $x in a) echo ;; esac"),
        ("a.rb", "x =~ /[(]/"),
        # Nested quotes, which Python supports from 3.12 on, and Python 2.
        ("a.py", 'print(f"{", ".join(names)} {d["("]}")\n'),
        ("a.py", 'print "hello", 0777, `x`\n'),
        ("a.py", "x = 'it\\'s' + r'\\d' # don't (\ny = \"\"\"\n(\n\"\"\"\n"),
        ("a.py", '"""{"""\nx = "a\\\nb"\n'),
        # A quote after a backslash does not close a text in triple quotes.
        ("a.py", 'x = """a \\""""\n'),
        ("a.py", "x = '''a \\''''\ny = '''b\\\\'''\n"),
        ("a.py", 'x = """a "b" ""c"""\n'),
    ],
)
def test_parts_of_files_and_any_language_are_accepted(name: str, text: str) -> None:
    assert check_file(name, text.encode()).kind


@pytest.mark.parametrize(
    "name", ["a.json", "a.har", "a.graphql", "a.yml", "a.py", "a.log", "a.http", ""]
)
@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_file_has_no_findings(name: str, text: str) -> None:
    assert check_text(name, text).findings == ()


@pytest.mark.parametrize("name", ["README.md", "notes.txt", ""])
def test_prose_is_not_parsed_as_yaml(name: str) -> None:
    text = 'Note:\n\nThis is *prose* with: a colon: here\n- [x] "an open quote\n'
    assert check_text(name, text).kind == "Text"


def test_findings_in_a_recording_of_one_line_name_their_requests() -> None:
    """Compact HAR files have one line, so the line does not identify a request."""
    requests = [
        {"method": "POST", "url": f"{API}/runners?tag_list=a"},
        {"url": f"{API}/version"},
        {"method": "POST", "url": f"{API}/runners?paused=true&tag_list=a"},
    ]
    compact = json.dumps(json.loads(har(*requests)))
    report = check_file("a.har", compact.encode())
    assert [(each.line, each.request, each.reason) for each in report.findings] == [
        (1, 1, "POST /api/v4/runners: parameter tag_list"),
        (1, 3, "POST /api/v4/runners: parameter paused, tag_list"),
    ]
