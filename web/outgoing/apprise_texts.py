"""What of a message a service gets: what it has room for, and no call to everybody."""

import re

#: Text messages, and push messages of which a telephone shows the beginning.
_FEW_CHARACTERS = 1_024
#: What services take as a call to everybody, which no sender of an alert may make.
_MENTIONS = re.compile(r"@(?=everyone|here|channel|room|all)|(?<=<)(?=[@!#])", re.IGNORECASE)


def fitting(body: str, short: str, *, room: int) -> str:
    """Return the text that a service has room for, in characters.

    The short one says what there is to do, so it ends a long one that is cut.
    """
    if room <= _FEW_CHARACTERS:
        return short
    if len(body) <= room:
        return body
    return f"{body[: max(room - len(short) - 3, 0)].rstrip()}…\n\n{short}"


def without_mentions(text: str) -> str:
    """Return a text in which nothing calls everybody."""
    return _MENTIONS.sub(lambda found: f"{found[0]}\u200b", text)
