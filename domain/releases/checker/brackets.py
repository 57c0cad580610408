"""Tells whether a program is whole: whether its brackets and quotes are closed."""

from collections.abc import Sequence

from domain.releases.checker.findings import UnreadableContentError
from domain.releases.checker.tokens import SIGN, TEXT, Token

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset(_CLOSING.values())


def check_closed(tokens: Sequence[Token]) -> None:
    """Raise UnreadableContentError at the first bracket or quote that nothing closes.

    Texts with values that hold quotes of their own, `f"{a["b"]}"`, are more than the lexer knows:
    a program that has some is taken for whole.
    """
    if any(_holds_quotes(each) for each in tokens):
        return
    opened: list[Token] = []
    for token in tokens:
        if token.is_open:
            raise _error("a quote is not closed", token)
        if token.kind == SIGN:
            _take(token, opened)
    if opened:
        raise _error("a bracket is not closed", opened[-1])


def _take(sign: Token, opened: list[Token]) -> None:
    if sign.text in _CLOSING:
        opened.append(sign)
    elif sign.text in _ENDS and (not opened or _CLOSING[opened.pop().text] != sign.text):
        raise _error("a bracket is closed that is not open", sign)


def _holds_quotes(token: Token) -> bool:
    is_template = token.kind == TEXT and token.is_template and "\n" not in token.text
    return is_template and token.text.count("{") != token.text.count("}")


def _error(message: str, token: Token) -> UnreadableContentError:
    return UnreadableContentError(f"The content is not a whole program: {message}", line=token.line)
