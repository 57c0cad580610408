"""Keeps a sample of the refused requests of each application for its owner."""

from contextlib import suppress

from sqlalchemy.exc import DBAPIError

from domain.oauth.context import OAuthContext, RefusedRequest
from domain.oauth.setting_up.refusals import flush, store_refusal
from web.services import services

#: Of each application and reason, in each process: the others are counted.
_ROWS_PER_MINUTE = 5


def record_refusal(refused: RefusedRequest, context: OAuthContext) -> None:
    """Store a refused request, or count it; the client gets its answer in any case."""
    if context.has_begun():  # what is stored there is part of the answer
        _record(refused, context)
        return
    with suppress(DBAPIError):
        _record(refused, context)


def _record(refused: RefusedRequest, context: OAuthContext) -> None:
    sampler = services().token_refusals
    kind = (refused.application_id, refused.reason.name)
    if sampler.gets_row(kind, now=context.now, per_minute=_ROWS_PER_MINUTE):
        row_id = store_refusal(refused, context=context)
        flush(sampler.use_row(kind, row_id), context=context)
    flush(sampler.due(now=context.now), context=context)
