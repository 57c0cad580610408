"""Finds usages in source code that break: addresses, attributes, fields and variables.

In every language, it searches for

- texts that are API addresses, in calls that send requests
- calls of known clients
- fields of the results of such calls
- distinctive names
- GraphQL documents in texts
"""

import re
from collections.abc import Iterator, Sequence

from domain.releases.changes import Change
from domain.releases.checker.bindings import (
    Arguments,
    Bindings,
    Call,
    Program,
    is_segment,
    joined_segments,
    literal,
)
from domain.releases.checker.clients import request_of
from domain.releases.checker.findings import Found, UnreadableContentError, paced
from domain.releases.checker.graphql import check_graphql
from domain.releases.checker.names import (
    DISTINCT,
    changes_named,
    names_in_text,
    snake,
    speaks_to_service,
)
from domain.releases.checker.requests import (
    API,
    METHODS,
    UNKNOWN,
    Known,
    api_path,
    concerns_of,
    is_legacy_page,
    named_segments,
    reason_of,
    resolved,
    segments_of,
)
from domain.releases.checker.shell import Word, is_registration_option, runner_registration
from domain.releases.checker.tokens import NAME, SIGN, TEXT, Comments, Token, tokens
from domain.releases.matching import Concern
from domain.releases.schedule import BY_ID

#: Pattern of a placeholder in templates of JavaScript, Python, Ruby, shells and printf.
_VALUE = re.compile(
    r"\$\{(?:[^{}]|\{[^{}]*+\}|(?!))*+\}|#\{[^{}]*+\}|\{[^{}/\s]*+\}|%\(\w+\)[sd]|%[sdv]|<\w+>|\$[A-Za-z_]\w*+"
)
_COLON_VALUE = re.compile(r"(?<=/):\w+")
_SCHEME = re.compile(r"^https?://[^/]*+")
_PLAIN = re.compile(r"[\w./%:?&=\x00~@+,;\[\]$-]++")
#: Pattern of a GitLab page, except on hosts of GitLab's own documentation, where paths are not
#: projects.
_PAGE = re.compile(
    r"https?://(?!docs\.|about\.|forum\.|handbook\.)[\w.-]*gitlab[\w.:-]*(/[^\s?#\"'<>]*)"
)
_LONGEST = 2_000
#: Minimum number of constant segments that identify a path as one of the API everywhere.
_TELLING = 2


def legacy_page_in(text: str) -> bool:
    """Return whether a text is the URL of a page without `/-/`."""
    if len(text) > _LONGEST:
        return False
    found = _PAGE.fullmatch(_VALUE.sub("1", text))
    return found is not None and is_legacy_page(found[1])


def path_in(text: str, *, is_client: bool, is_called: bool) -> tuple[str, str] | None:
    """Return the path and query of the request with this address, or None.

    Without /api/v4, the text must be in a client of the service. In addition, it must be passed to
    a function that sends requests (`is_called`), or be recognizable by itself.
    """
    if len(text) > _LONGEST or "\n" in text.strip():
        return None
    plain = _COLON_VALUE.sub(UNKNOWN, _VALUE.sub(UNKNOWN, resolved(text))).strip()
    if not _PLAIN.fullmatch(plain):
        return None
    path, _, query = plain.partition("?")
    of_api = api_path(path)
    if of_api is None and is_client:
        of_api = _relative(path, is_called=is_called)
    return None if of_api is None else (of_api.partition("#")[0], query)


def _relative(path: str, *, is_called: bool) -> str | None:
    segments = segments_of(_SCHEME.sub("", path))
    if segments and not segments[0].strip(UNKNOWN):
        del segments[0]
    if not segments:
        return None
    found = f"{API}/{'/'.join(segments)}"
    return found if is_called or _is_telling(concerns_of(found)) else None


def _is_telling(concerns: Sequence[Concern]) -> bool:
    return any(len(named_segments(each.call)) >= _TELLING for each in concerns)


_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset(_CLOSING.values())


def check_closed(tokens: Sequence[Token]) -> None:
    """Check that all brackets and quotes are closed.

    The lexer cannot read texts with nested quotes, `f"{a["b"]}"`, so a program with such texts is
    assumed to be complete. Raise UnreadableContentError at the first bracket or quote that is not
    closed.
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
        raise _error("a closing bracket has no opening bracket", sign)


def _holds_quotes(token: Token) -> bool:
    is_template = token.kind == TEXT and token.is_template and "\n" not in token.text
    return is_template and token.text.count("{") != token.text.count("}")


def _error(message: str, token: Token) -> UnreadableContentError:
    problem = f"The content is not a complete program: {message}"
    return UnreadableContentError(problem, line=token.line)


#: HTTP methods by the last words in the names of functions.
_VERBS = {
    "get": "GET",
    "list": "GET",
    "paginate": "GET",
    "urlopen": "GET",
    "head": "HEAD",
    "post": "POST",
    "put": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "del": "DELETE",
}
#: Functions that take the method as an argument, with GET as the default.
_SENDERS = frozenset(
    [
        "fetch",
        "request",
        "axios",
        "got",
        "ajax",
        "open",
        "new_request",
        "new_request_with_context",
        "api_fetch",
    ]
)
#: Words in the names of functions that build an address from their arguments.
_JOINING = frozenset({"join", "urljoin", "url", "uri", "resolve", "concat", "format", "sprintf"})
_DOCUMENT = re.compile(
    r"\s*(?:(?:query|mutation|subscription|fragment)\b[^{}]{0,2000}\{|\{\s*\w+\s*[({\n])"
)
_INTERPOLATION = re.compile(r"\$\{[^{}]*+\}")
#: Minimum number of words of a last segment that identifies a path by itself.
_TELLING_WORDS = 3
_LOOPS, _DECLARATIONS = frozenset({"in", "of"}), frozenset({"let", "var", "const"})
#: Minimum length of a distinctive name in characters.
_SHORTEST = min(map(len, DISTINCT))
_ASSIGNED = frozenset({"=", ":="})
_KEYED = frozenset({":", "=", "=>"})


def check_source(text: str, comments: Comments) -> Iterator[Found]:
    """Yield the changes that affect a program or a part of one; unreadable parts are skipped."""
    yield from _found(list(tokens(text, comments)), text)


def check_python(text: str) -> Iterator[Found]:
    """Yield the changes that affect a complete Python program.

    Only Python is checked for completeness. In other languages, a regular expression may contain
    characters that the lexer takes for brackets or quotes. Raise UnreadableContentError if the
    program is not complete.
    """
    found = list(tokens(text, Comments.HASH))
    check_closed(found)
    yield from _found(found, text)


_RUNNER = re.compile(
    r'\bresource\s+"gitlab_runner"\s+"[^"\n]*"\s*\{(?P<block>(?:[^{}]|\{[^{}]*+\}|(?!))*+)'
)
_TOKEN_OF_RUNNER = re.compile(r"^\s*registration_token\s*=", re.MULTILINE)


def check_terraform(text: str) -> Iterator[Found]:
    """Yield the changes that affect a Terraform configuration."""
    yield from check_source(text, Comments.BOTH)
    for runner in paced(_RUNNER.finditer(text)):
        if given := _TOKEN_OF_RUNNER.search(runner["block"]):
            line = 1 + text.count("\n", 0, runner.start("block") + given.end())
            yield Found(BY_ID["runner-registration"], line, "gitlab_runner: registration_token")


def _found(lexed: Sequence[Token], text: str) -> Iterator[Found]:
    yield from _Source(Program(lexed), is_client=speaks_to_service(text)).read()


class _Source:
    """A reader that processes a program from its first token to its last."""

    def __init__(self, program: Program, *, is_client: bool) -> None:
        self._program = program
        self._is_client = is_client
        self._arguments = Arguments(program)
        self._bindings = Bindings(program)

    def read(self) -> Iterator[Found]:
        """Yield the changes that affect the program."""
        consumed = -1
        for at, token in enumerate(paced(self._program.tokens)):
            if token.kind == TEXT:
                if at > consumed:
                    whole, consumed = literal(self._program, at)
                    yield from self._text(at, token, whole)
            elif token.kind == NAME:
                yield from self._name(at, token)
            elif token.kind == SIGN:
                yield from self._sign(at, token)

    def _name(self, at: int, token: Token) -> Iterator[Found]:
        yield from self._named(token)
        if "TLS" in token.text:
            before = self._program.text(at - 2) + self._program.text(at - 3)
            yield from names_in_text(f"{before} {token.text}", token.line, only="tls-versions")
        if token.text in _LOOPS:
            yield from self._bindings.loop(at)
        elif token.text in _DECLARATIONS:
            self._bindings.declare(at)
        if self._bindings.has_fields:
            yield from self._bindings.fields_after(at)

    def _named(self, token: Token) -> Iterator[Found]:
        if len(token.text) >= _SHORTEST:
            for change in changes_named(token.text, is_client=self._is_client):
                reason = f"The name {snake(token.text)}"
                yield Found(change, token.line, reason, is_certain=False)

    def _sign(self, at: int, token: Token) -> Iterator[Found]:
        if token.text in _ASSIGNED:
            is_keyword = self._program.text(self._program.around[at]) == "("
            if self._program.kind(at - 1) == NAME and not is_keyword:
                self._arguments.note(at)
                self._bindings.assign(at)
        elif token.text == "(":
            call = self._program.call_at(at)
            if call.chain:
                yield from self._call(call, token.line)

    def _call(self, call: Call, line: int) -> Iterator[Found]:
        self._bindings.callback(call)
        chain = self._bindings.expanded(call.chain)
        sent = request_of(chain) if self._is_client else None
        if sent is not None:
            method, path = sent
            known = Known()
            self._arguments.add(known, call.opening, call.closing)
            yield from self._concerned(concerns_of(path), method, known, line)
            yield from self._bind(concerns_of(path), method, call)
        for text in self._bindings.texts_in(call):
            yield from self._request(text, [call], line, is_used=True)

    def _text(self, at: int, token: Token, whole: str) -> Iterator[Found]:
        if self._is_docstring(at, token):
            return
        yield from self._telling(at, token, whole)
        text, calls = token.text, list(self._program.calls_around(at))
        path = self._path(at, whole, calls)
        if path is not None:
            yield from self._request(path, calls, token.line, is_used=False)
        if snake(text) == "deploy_token" and self._mentions_graphql(calls):
            reason = "A GraphQL request with the header Deploy-Token"
            yield Found(BY_ID["graphql-token-types"], token.line, reason)

    def _telling(self, at: int, token: Token, whole: str) -> Iterator[Found]:
        """Yield the changes that a text indicates regardless of its position."""
        text, line = token.text, token.line
        yield from names_in_text(text, line, is_client=self._is_client)
        if legacy_page_in(whole) and not self._is_of_response(at):
            reason = "A URL of a project page without /-/"
            yield Found(BY_ID["legacy-page-urls"], line, reason, is_certain=False)
        if is_registration_option(text):
            yield from runner_registration([Word(text, line)])
        if _DOCUMENT.match(text):
            yield from _document(text, line)

    def _path(self, at: int, whole: str, calls: Sequence[Call]) -> str | None:
        """Return the address of a request that a text contains, or None for a part of one."""
        if not calls or API in whole:
            return whole
        inner = calls[0]
        if not _sends(inner):
            return None if self._is_handed_on(at, calls) else whole
        joined = joined_segments(self._program, inner) if is_segment(whole) else None
        if joined is None or not joined.first < at <= joined.last:
            return joined.path if joined else whole
        return None

    def _is_handed_on(self, at: int, calls: Sequence[Call]) -> bool:
        """Return whether a text is only appended to the address of an enclosing request."""
        inner, *outer = calls
        is_first = at == inner.opening + 1
        joins = not _JOINING.isdisjoint(inner.chain[-1].split("_"))
        return not is_first and not joins and any(map(_sends, outer))

    def _is_of_response(self, at: int) -> bool:
        """Return whether a text is the value of a key that API responses have."""
        is_keyed = at > 1 and self._program.text(at - 1) in _KEYED
        return is_keyed and snake(self._program.tokens[at - 2].text) == "web_url"

    def _is_docstring(self, at: int, token: Token) -> bool:
        """Return whether a multi-line text is a statement of its own."""
        if "\n" not in token.text or self._program.around[at] >= 0:
            return False
        return self._program.text(at - 1) in {"", ":", ")"} and not _DOCUMENT.match(token.text)

    def _mentions_graphql(self, calls: Sequence[Call]) -> bool:
        within = (
            self._program.tokens[at]
            for call in calls
            for at in range(call.opening, min(call.closing, call.opening + 100))
        )
        return any(each.kind == TEXT and "graphql" in each.text for each in within)

    def _request(
        self, text: str, calls: Sequence[Call], line: int, *, is_used: bool
    ) -> Iterator[Found]:
        """Yield the changes that affect a text that may be the address of a request."""
        if "/" not in text and not calls:
            return
        method, call, known = self._sent(calls)
        found = path_in(text, is_client=self._is_client, is_called=call is not None)
        if found is None:
            return
        path, query = found
        known.add_query(query)
        concerns = concerns_of(path)
        if method is None and call is None:
            known.is_open = True
        if is_used and method is None:
            return
        yield from self._concerned(concerns, method, known, line)
        if call is not None:
            yield from self._bind(concerns, method, call)

    def _sent(self, calls: Sequence[Call]) -> tuple[str | None, Call | None, Known]:
        """Return the method, the call and its parameters if one of the calls sends a request."""
        for call in calls:
            known = Known()
            if not _sends(call):
                continue
            verb = _verb(call.chain)
            self._arguments.add(known, call.opening, call.closing)
            segments = joined_segments(self._program, call)
            # Arguments before the segments may contain the parameters of the call.
            is_told_before = segments is not None and segments.first > call.opening + 1
            known.is_open = known.is_open or is_told_before
            return verb or self._method_in(call, known), call, known
        return None, None, Known()

    def _method_in(self, call: Call, known: Known) -> str | None:
        for at in range(call.opening + 1, min(call.closing, call.opening + 12)):
            token = self._program.tokens[at]
            is_constant = token.kind == NAME and token.text.startswith("Method")
            word = token.text.removeprefix("Method").upper()
            if (token.kind == TEXT or is_constant) and word in METHODS:
                return word  # Go's http.MethodPost is a method as well.
        given = known.values.get("method", known.values.get("type", "GET"))
        if given is None or ("method" not in known.values and known.is_open):
            return None
        return given.upper()

    def _concerned(
        self, concerns: Sequence[Concern], method: str | None, known: Known, line: int
    ) -> Iterator[Found]:
        for concern in concerns:
            if method is None and not _says_it_itself(concern):
                continue
            asked = method or next(iter(concern.call.methods), "GET")
            if reason := reason_of(concern, asked, known):
                yield Found(concern.change, line, reason.text, reason.is_certain)

    def _bind(self, concerns: Sequence[Concern], method: str | None, call: Call) -> Iterator[Found]:
        fields: dict[str, Change] = {
            each.rpartition(".")[2]: concern.change
            for concern in concerns
            if method is None or not concern.call.methods or method in concern.call.methods
            for each in concern.call.fields
        }
        yield from self._bindings.bind(call, fields)


def _sends(call: Call) -> bool:
    return call.chain[-1] in _SENDERS or _verb(call.chain) is not None


def _verb(chain: Sequence[str]) -> str | None:
    for word in reversed(chain[-2:]):
        last = word.rpartition("_")[2]
        if last in _VERBS and word not in _SENDERS:
            return _VERBS[last]
    return None


def _says_it_itself(concern: Concern) -> bool:
    """Return whether a path indicates a change regardless of its use."""
    last = segments_of(concern.call.path)[-1]
    return last.count("_") >= _TELLING_WORDS - 1 or not concern.call.methods


def _document(text: str, line: int) -> Iterator[Found]:
    try:
        yield from check_graphql(_INTERPOLATION.sub(" ", text), line=line)
    except UnreadableContentError:
        return
