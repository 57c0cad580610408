"""/-/user_settings/page_size: how many rows the pages of lists have for a user."""

from flask import redirect, request
from flask.typing import ResponseReturnValue

from domain.accounts.page_sizes import choose_page_size
from domain.database.paging import parse_id
from web.access.marks import signed_in
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.signing_in.completion import next_url

page_sizes = PageBlueprint("page_sizes", __name__, url_prefix="/-/user_settings")


@page_sizes.post("/page_size")
@signed_in
def choose() -> ResponseReturnValue:
    """Keep the number of rows and go back to the list."""
    choose_page_size(work(), parse_id(request.form.get("size", "")) or 0)
    return redirect(next_url())
