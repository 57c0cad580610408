"""Pages at /help: guides, documents, and the page that errors link to."""

from flask import redirect, render_template, request, send_from_directory
from flask.typing import ResponseReturnValue

from blueprints.help.documents import (
    DOCS_FOLDER,
    RENAMED_DOCUMENTS,
    Document,
    GuideValues,
    find_document,
    get_page_path,
    load_sections,
    render_document,
)
from blueprints.help.guide_context import find_guide_context, find_offered_applications
from blueprints.help.search import MAX_SEARCH_LENGTH, search_documents
from domain.core.errors import NotFoundError
from domain.oauth.error_help import OAUTH_ERRORS
from web.access.decorators import open_to_anyone
from web.http.endpoints import PageBlueprint
from web.pages.list_query import get_list_query
from web.services import get_settings

help_pages = PageBlueprint("help_pages", __name__, url_prefix="/help")


@help_pages.get("")
@open_to_anyone
def index() -> ResponseReturnValue:
    """List the guides and documents, or the sections that match a search."""
    asked = get_list_query("search").get("search", "").strip()
    return render_template(
        "help/index.html",
        sections=load_sections(),
        asked=asked[:MAX_SEARCH_LENGTH],
        found=search_documents(asked) if asked else (),
    )


@help_pages.get("/guides/<name>")
@open_to_anyone
def guide(name: str) -> ResponseReturnValue:
    """Show a guide with the values of the reader's application, integration or project."""
    if new_name := RENAMED_DOCUMENTS.get(f"guides/{name}"):
        return _redirect_to_document(new_name)
    document = _get_document(f"guides/{name}")
    reader = find_guide_context(document)
    return render_template(
        "help/document.html",
        document=document,
        rendered=render_document(document, reader.values),
        sections=load_sections(),
        reader=reader,
        offered=find_offered_applications(document, reader),
    )


@help_pages.get("/docs/<path:name>")
@open_to_anyone
def document(name: str) -> ResponseReturnValue:
    """Show a document from `docs/` that is not a guide."""
    if name.startswith("guides/"):
        raise NotFoundError(_NOT_FOUND_MESSAGE)
    if new_name := RENAMED_DOCUMENTS.get(name):
        return _redirect_to_document(new_name)
    document = _get_document(name)
    return render_template(
        "help/document.html",
        document=document,
        rendered=render_document(document, GuideValues(base_url=get_settings().base_url)),
        sections=load_sections(),
        reader=None,
        offered=(),
    )


@help_pages.get("/images/<name>.<any(png, svg):extension>")
@open_to_anyone
def image(name: str, extension: str) -> ResponseReturnValue:
    """Return an image of a document."""
    return send_from_directory(DOCS_FOLDER / "images", f"{name}.{extension}")


@help_pages.get("/errors")
@open_to_anyone
def errors() -> ResponseReturnValue:
    """Explain the errors of the OAuth endpoints."""
    return render_template("help/errors.html", errors=OAUTH_ERRORS)


_NOT_FOUND_MESSAGE = "Help page not found."


def _redirect_to_document(name: str) -> ResponseReturnValue:
    """Redirect to the new name of a document, and keep the query string."""
    query = request.query_string.decode("ascii", "ignore")
    return redirect(
        f"{request.script_root}{get_page_path(name)}{f'?{query}' if query else ''}", 301
    )


def _get_document(name: str) -> Document:
    found = find_document(name)
    if found is None:
        raise NotFoundError(_NOT_FOUND_MESSAGE)
    return found
