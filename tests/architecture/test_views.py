"""Blueprints and forms get frozen views from the domain, and never rows of the database."""

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import get_annotations, isclass, isfunction
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

import pytest
from sqlalchemy import Row

from domain.core.types.base import Body, Query, Resource
from models.base import Base
from tests.architecture.test_shape import modules, path_of

#: Packages whose classes and functions are inspected.
OURS = {"blueprints", "domain", "forms", "web"}


def used_by(file: Path) -> dict[str, Any]:
    """Return the globals of a file, including attributes that it uses of imported modules."""
    dotted = path_of(file).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    names = vars(import_module(dotted))
    taken = {
        f"{node.value.id}.{node.attr}": getattr(names[node.value.id], node.attr)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and isinstance(names.get(node.value.id), ModuleType)
    }
    return {**names, **taken}


def is_ours(thing: Any) -> bool:
    return getattr(thing, "__module__", "").split(".")[0] in OURS


@cache
def imported_for_types(module: str) -> dict[str, Any]:
    """Return names of the project that a module imports only for type checkers."""
    file = import_module(module).__file__
    tree = ast.parse(Path(file).read_text(encoding="utf-8") if file else "")
    guarded = (
        each
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for each in node.body
        if isinstance(each, ast.ImportFrom) and (each.module or "").split(".")[0] in OURS
    )
    return {
        alias.asname or alias.name: getattr(import_module(each.module or ""), alias.name)
        for each in guarded
        for alias in each.names
    }


def read_annotations(thing: Any) -> dict[str, Any]:
    names = {**imported_for_types(thing.__module__), **(vars(thing) if isclass(thing) else {})}
    return get_annotations(thing, eval_str=True, locals=names)


def annotations_of(thing: Any) -> Iterator[Any]:
    """Return the annotations of a function, or of the public members of a class."""
    for part in filter(is_ours, thing.__mro__ if isclass(thing) else (thing,)):
        yield from read_annotations(part).values()
        for name, member in vars(part).items():
            getter = member.fget if isinstance(member, property) else member
            if isfunction(getter) and not name.startswith("_"):
                yield read_annotations(getter).get("return")


def rows_in(thing: Any, known: set[Any]) -> Iterator[type[Base | Row[Any]]]:
    """Return the row classes that a type, a class or a function refers to."""
    for part in (thing, get_origin(thing), *get_args(thing)):
        if isclass(part) and issubclass(part, (Base, Row)):
            yield part
        if is_ours(part) and (isclass(part) or isfunction(part)) and part not in known:
            known.add(part)
            for annotation in annotations_of(part):
                yield from rows_in(annotation, known)
        elif part is not thing and get_args(part):
            yield from rows_in(part, known)


@pytest.mark.parametrize("package", ["blueprints", "forms"])
def test_no_row_of_the_database_reaches_a_view(package: str) -> None:
    leading = {
        f"{path_of(file)}: {name}: {row.__name__}"
        for file in modules(package)
        for name, found in used_by(file).items()
        for row in rows_in(found, set())
    }
    assert leading == set()


def below(base: type[Any]) -> Iterator[type[Any]]:
    """Return all subclasses of a type."""
    for each in base.__subclasses__():
        yield each
        yield from below(each)


@pytest.mark.parametrize("base", [Body, Query, Resource])
def test_models_with_deferred_builds_can_be_built(base: type[Any]) -> None:
    for file in modules("domain", "blueprints"):
        import_module(path_of(file).removesuffix(".py").replace("/", "."))
    found = list(below(base))
    assert len(found) > 20
    assert [each.__name__ for each in found if each.model_rebuild() is False] == []
