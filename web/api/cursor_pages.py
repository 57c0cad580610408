"""The header of keyset pagination: for lists that may have a million items, without a total."""

from collections.abc import Mapping

from web.api.links import link


def cursor_headers(next_cursor: str | None) -> Mapping[str, str]:
    """Return the headers of a page with a next one, if there is one."""
    return {} if next_cursor is None else {"Link": link("next", cursor=next_cursor)}
