"""While a page is rendered, other requests have their turn."""

import pytest
from jinja2 import Environment

from web.pages.rendering import SharingTemplate


def test_others_have_their_turn_between_the_pieces_of_a_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[float] = []
    monkeypatch.setattr("web.pages.rendering.sleep", turns.append)
    monkeypatch.setattr("web.pages.rendering._TURN_SECONDS", 0)
    environment = Environment(autoescape=True)
    environment.template_class = SharingTemplate
    template = environment.from_string("{% for each in rows %}<b>{{ each }}</b>{% endfor %}")
    assert template.render(rows=["<", "x"]) == "<b>&lt;</b><b>x</b>"
    assert len(turns) > 1
    assert set(turns) == {0}
