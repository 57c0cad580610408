"""Tests of the cache of compiled templates, which processes share but do not depend on."""

import shutil
from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment

from web.pages.compiled_templates import open_template_cache


def _environment(root: Path, text: str = "Hello {{ name }}") -> Environment:
    """Return the template environment of a new process, with one template."""
    kept = open_template_cache(root)
    return Environment(loader=DictLoader({"a.html": text}), autoescape=True, bytecode_cache=kept)


def _page(environment: Environment) -> str:
    return environment.get_template("a.html").render(name="Grace")


def test_the_next_process_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _page(_environment(tmp_path)) == "Hello Grace"
    monkeypatch.delattr(Environment, "compile")
    assert _page(_environment(tmp_path)) == "Hello Grace"


def test_a_template_that_changed_is_compiled_again(tmp_path: Path) -> None:
    _page(_environment(tmp_path))
    assert _page(_environment(tmp_path, "Good night {{ name }}")) == "Good night Grace"


def test_a_template_is_rendered_if_it_cannot_be_cached(tmp_path: Path) -> None:
    started = _environment(tmp_path)
    shutil.rmtree(tmp_path / "__pycache__")
    assert _page(started) == "Hello Grace"
    (tmp_path / "__pycache__").write_text("no directory")
    assert _page(_environment(tmp_path)) == "Hello Grace"


def test_a_truncated_cache_file_is_compiled_again(tmp_path: Path) -> None:
    _page(_environment(tmp_path))
    (kept,) = (tmp_path / "__pycache__" / "templates").iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    assert _page(_environment(tmp_path)) == "Hello Grace"


def test_nothing_is_cached_when_python_writes_no_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    assert _page(_environment(tmp_path)) == "Hello Grace"
    assert list(tmp_path.iterdir()) == []
