"""Each deliberate break fits the code of today: `python -m tests.breaks.try_breaks` tries them."""

import ast

import pytest

from tests.breaks.try_breaks import ROOT, Break, read_breaks

BREAKS = read_breaks()


@pytest.mark.parametrize("each", BREAKS, ids=lambda each: f"{each.room}: {each.says}")
def test_a_break_fits(each: Break) -> None:
    assert each.file.startswith(f"{each.room}/")
    text = (ROOT / each.file).read_text(encoding="utf-8")
    assert each.apply(text) != text
    if each.file.endswith(".py"):
        ast.parse(each.apply(text))
    assert each.says.endswith(".")
    assert each.tests
    for test in each.tests:
        file, _, name = test.partition("::")
        words = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {name.partition('[')[0]}(" in words or not name
