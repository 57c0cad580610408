"""Tests that rendering lets other requests run, except in requests that can hold a lock."""

import pytest
from flask import Flask

from web.pages.cooperative_rendering import CooperativeTemplate

ROWS = "{% for each in rows %}<b>{{ each }}</b>{% endfor %}"


@pytest.mark.parametrize(("method", "gives_turns"), [("GET", True), ("POST", False)])
def test_rendering_yields_to_other_requests_between_pieces_of_a_page(
    monkeypatch: pytest.MonkeyPatch, method: str, *, gives_turns: bool
) -> None:
    turns: list[float] = []
    monkeypatch.setattr("web.pages.cooperative_rendering.sleep", turns.append)
    monkeypatch.setattr("web.pages.cooperative_rendering._MAX_TURN_SECONDS", 0)
    app = Flask("pages")
    app.jinja_env.template_class = CooperativeTemplate
    template = app.jinja_env.from_string("{% autoescape true %}" + ROWS + "{% endautoescape %}")
    with app.test_request_context(method=method):
        assert template.render(rows=["<", "x"]) == "<b>&lt;</b><b>x</b>"
    assert bool(turns) is gives_turns
