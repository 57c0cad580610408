"""Reads the forms of a page as a browser does, and submits them."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

import requests

Pairs = list[tuple[str, str]]


@dataclass
class HtmlForm:
    """A form: its URL, its fields with their values, and its buttons."""

    action: str
    method: str
    fields: Pairs = field(default_factory=list)
    buttons: Pairs = field(default_factory=list)

    def has(self, name: str) -> bool:
        return any(known == name for known, _ in (*self.fields, *self.buttons))

    def value(self, name: str) -> str:
        return next(value for known, value in self.fields if known == name)

    def filled(self, **values: str | list[str] | None) -> Pairs:
        """Return the pairs to submit; a list makes several pairs, None removes the field."""
        kept = [pair for pair in self.fields if pair[0] not in values]
        for name, value in values.items():
            texts = [value] if isinstance(value, str) else value or []
            kept += [(name, text) for text in texts]
        return kept


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[HtmlForm] = []
        self._textarea: str | None = None
        self._text = ""
        self._select: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        begin = getattr(self, f"_begin_{tag}", None)
        if begin is not None:
            begin(given)

    def _begin_form(self, given: dict[str, str]) -> None:
        method = given.get("method", "get").lower()
        self.forms.append(HtmlForm(action=given.get("action", ""), method=method))

    def _begin_textarea(self, given: dict[str, str]) -> None:
        self._textarea, self._text = given.get("name", ""), ""

    def _begin_select(self, given: dict[str, str]) -> None:
        self._select = given.get("name", "")

    def _begin_option(self, given: dict[str, str]) -> None:
        if self._select and "selected" in given:
            self._add(self._select, given.get("value", ""))

    def _begin_button(self, given: dict[str, str]) -> None:
        if self.forms and "name" in given:
            self.forms[-1].buttons.append((given["name"], given.get("value", "")))

    def _begin_input(self, given: dict[str, str]) -> None:
        is_choice = given.get("type") in {"checkbox", "radio"}
        if "name" in given and ("checked" in given or not is_choice):
            self._add(given["name"], given.get("value", "y" if is_choice else ""))

    def _add(self, name: str, value: str) -> None:
        if self.forms:
            self.forms[-1].fields.append((name, value))

    def handle_data(self, data: str) -> None:
        if self._textarea is not None:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._textarea is not None:
            self._add(self._textarea, self._text.removeprefix("\r\n").removeprefix("\n"))
            self._textarea = None
        elif tag == "select":
            self._select = None


def forms_in(page: str) -> list[HtmlForm]:
    """Return the forms of a page in their order."""
    reader = _Reader()
    reader.feed(page)
    return reader.forms


def form_with(page: requests.Response, name: str) -> HtmlForm:
    """Return the form of a page that has a field or button of this name."""
    for form in forms_in(page.text):
        if form.has(name):
            return form
    raise AssertionError(f"{page.status_code} {page.url} has no form with {name}:\n{page.text}")


def form_to(page: requests.Response, ending: str) -> HtmlForm:
    """Return the form of a page that is sent to a URL with this ending.

    The ending may contain the fragment. A query is ignored.
    """
    for form in forms_in(page.text):
        address = urljoin(page.url, form.action).partition("?")[0]
        if address.endswith(ending) or address.partition("#")[0].endswith(ending):
            return form
    raise AssertionError(f"{page.status_code} {page.url} has no form to {ending}:\n{page.text}")


def submit(
    browser: requests.Session,
    page: requests.Response,
    form: HtmlForm,
    **values: str | list[str] | None,
) -> requests.Response:
    """Submit a form with some fields filled in, without following a redirect."""
    address = urljoin(page.url, form.action)
    return browser.post(address, data=form.filled(**values), allow_redirects=False)
