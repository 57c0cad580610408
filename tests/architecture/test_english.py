"""Documents, docstrings and comments follow the rules for plain English in CONTRIBUTING.md."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.architecture.english import LONG_SENTENCE, REPEATED_NOUN, SUBJECT_FIRST, findings

ROOT = Path(__file__).parents[2]
CODE = ("bench", "blueprints", "demo", "domain", "forms", "models", "tests", "web")
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs")
#: Documents that are generated, mostly from texts of the product, and the glossary.
GENERATED = {
    *(f"docs/{name}.md" for name in ("command-line", "permissions", "releases", "settings")),
    "docs/glossary.md",
    "docs/personal-data.md",
}
#: Rules that documents may break in a clear sentence.
LENIENT = {LONG_SENTENCE, REPEATED_NOUN, SUBJECT_FIRST}
#: Names of headings and of columns of measurements that keep their wording.
KEPT = ("hand-over", "clones at once")


@pytest.mark.parametrize("folder", CODE)
def test_docstrings_and_comments_are_plain_english(folder: str) -> None:
    # The programs of others that tests install are not ours to rewrite.
    files = (file for file in (ROOT / folder).rglob("*.py") if "packages" not in file.parts)
    assert list(_found(files)) == []


@pytest.mark.parametrize("files", ["static/js/*.js", "static/css/*.css", "templates/**/*.html"])
def test_comments_of_pages_are_plain_english(files: str) -> None:
    assert list(_found(ROOT.glob(files))) == []


def test_documents_are_plain_english() -> None:
    files = [file for name in DOCUMENTS for file in _markdown(ROOT / name)]
    found = [each for each in _found(files) if each[0] not in GENERATED and each[2] not in LENIENT]
    assert [each for each in found if not any(kept in each[1].lower() for kept in KEPT)] == []


def _markdown(path: Path) -> Iterable[Path]:
    return [path] if path.is_file() else path.rglob("*.md")


def _found(files: Iterable[Path]) -> Iterable[tuple[str, str, str]]:
    for file in sorted(files):
        yield from findings(file, ROOT)
