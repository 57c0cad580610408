"""Statements that pages run for every request are built only once."""

from typing import NoReturn

import pytest
from flask import Flask

from domain.accounts.factors import second_factors
from domain.projects import access
from domain.projects.views import Viewer
from tests.support.service.commands import operate
from web.extensions import db

pytestmark = pytest.mark.one_database("sqlite")


def test_a_page_builds_no_query_for_its_project_and_second_factors(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")

    def reject(*columns: object) -> NoReturn:
        raise AssertionError(f"built again: {columns}")

    for module in (access, second_factors):
        monkeypatch.setattr(module, "select", reject)
    with app.app_context():
        viewer = Viewer(user_id=1, is_admin=True)
        assert access.get_project("acme/shop", viewer, session=db.session()).path == "acme/shop"
        assert access.get_group("acme", viewer, session=db.session()).path == "acme"
        assert not second_factors.has_second_factor(1, session=db.session())
