"""Pages at /help: guides, documents, and the page that errors link to."""

from flask import redirect, render_template, request, send_from_directory
from flask.typing import ResponseReturnValue

from blueprints.help.documents import (
    DOCS,
    MOVED,
    Document,
    Values,
    find_document,
    page_of,
    rendered,
    sections,
)
from blueprints.help.readers import find_reader, offered_applications
from blueprints.help.search import LONGEST_SEARCH, search
from domain.core.errors import NotFoundError
from domain.oauth.error_help import ERRORS
from web.access.decorators import open_to_anyone
from web.http.endpoints import PageBlueprint
from web.pages.list_query import list_query
from web.services import settings

help_pages = PageBlueprint("help_pages", __name__, url_prefix="/help")


@help_pages.get("")
@open_to_anyone
def index() -> ResponseReturnValue:
    """List the guides and documents, or the parts of them that match a search."""
    asked = list_query("search").get("search", "").strip()
    return render_template(
        "help/index.html",
        sections=sections(),
        asked=asked[:LONGEST_SEARCH],
        found=search(asked) if asked else (),
    )


@help_pages.get("/guides/<name>")
@open_to_anyone
def guide(name: str) -> ResponseReturnValue:
    """Show a guide with the values of an application, integration or project of the reader."""
    if new_name := MOVED.get(f"guides/{name}"):
        return _redirect(new_name)
    document = _existing(f"guides/{name}")
    reader = find_reader(document)
    return render_template(
        "help/document.html",
        document=document,
        rendered=rendered(document, reader.values),
        sections=sections(),
        reader=reader,
        offered=offered_applications(document, reader),
    )


@help_pages.get("/docs/<path:name>")
@open_to_anyone
def document(name: str) -> ResponseReturnValue:
    """Show a document."""
    if name.startswith("guides/"):
        raise NotFoundError(_MISSING)
    if new_name := MOVED.get(name):
        return _redirect(new_name)
    document = _existing(name)
    return render_template(
        "help/document.html",
        document=document,
        rendered=rendered(document, Values(base_url=settings().base_url)),
        sections=sections(),
        reader=None,
        offered=(),
    )


@help_pages.get("/images/<name>.<any(png, svg):extension>")
@open_to_anyone
def image(name: str, extension: str) -> ResponseReturnValue:
    """Return an image of a document."""
    return send_from_directory(DOCS / "images", f"{name}.{extension}")


@help_pages.get("/errors")
@open_to_anyone
def errors() -> ResponseReturnValue:
    """Explain the errors of the OAuth endpoints."""
    return render_template("help/errors.html", errors=ERRORS)


_MISSING = "Help page not found."


def _redirect(name: str) -> ResponseReturnValue:
    """Redirect to the new name of a document and keep the query."""
    query = request.query_string.decode("ascii", "ignore")
    return redirect(f"{request.script_root}{page_of(name)}{f'?{query}' if query else ''}", 301)


def _existing(name: str) -> Document:
    found = find_document(name)
    if found is None:
        raise NotFoundError(_MISSING)
    return found
