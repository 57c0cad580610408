"""The header of keyset pagination: for lists that may have a million items, without a total."""

from collections.abc import Mapping

from web.api.links import link


def cursor_headers(next_cursor: str | None, **changed: str) -> Mapping[str, str]:
    """Return the headers of a page with a link to the next one, if there is one.

    The link has the parameters of this page, but for those that are `changed`.
    """
    if next_cursor is None:
        return {}
    return {"Link": link("next", cursor=next_cursor, **changed)}
