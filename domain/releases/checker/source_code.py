"""Finds breaking usages in source code: URLs, attributes, fields and variables.

In every language, the checker searches for:

- strings that are URLs of the API, in calls that send requests
- calls to known clients
- fields in the results of such calls
- distinctive names
- strings that are GraphQL documents
"""

import re
from collections.abc import Iterator, Sequence

from domain.releases.call_matches import CallMatch
from domain.releases.changes import Change
from domain.releases.checker.client_libraries import find_client_request
from domain.releases.checker.distinctive_names import (
    DISTINCTIVE_NAMES,
    find_changes_by_name,
    find_names_in_text,
    is_service_client,
    to_snake_case,
)
from domain.releases.checker.findings import (
    DetectedChange,
    UnreadableContentError,
    iterate_within_limit,
)
from domain.releases.checker.graphql import check_graphql
from domain.releases.checker.requests import (
    API_PATH,
    HTTP_METHODS,
    UNKNOWN_PART,
    KnownParameters,
    find_api_path,
    find_match_reason,
    find_path_matches,
    is_legacy_page,
    list_constant_segments,
    resolve_base_url,
    split_path,
)
from domain.releases.checker.shell_commands import (
    ShellWord,
    find_runner_registration,
    is_registration_option,
)
from domain.releases.checker.tokens import NAME, SIGN, TEXT, CommentSyntax, Token, tokenize_source
from domain.releases.checker.variable_bindings import (
    ArgumentReader,
    ProgramCall,
    SourceProgram,
    VariableBindings,
    is_path_segment,
    join_segments,
    read_literal,
)
from domain.releases.schedule import CHANGES_BY_ID

#: Pattern for a placeholder in JavaScript, Python, Ruby, shell and printf templates.
_PLACEHOLDER_PATTERN = re.compile(
    r"\$\{(?:[^{}]|\{[^{}]*+\}|(?!))*+\}|#\{[^{}]*+\}|\{[^{}/\s]*+\}|%\(\w+\)[sd]|%[sdv]|<\w+>|\$[A-Za-z_]\w*+"
)
_COLON_PLACEHOLDER_PATTERN = re.compile(r"(?<=/):\w+")
_ORIGIN_PATTERN = re.compile(r"^https?://[^/]*+")
_ADDRESS_PATTERN = re.compile(r"[\w./%:?&=\x00~@+,;\[\]$-]++")
#: Pattern for the URL of a GitLab page, except on hosts such as docs.gitlab.com, where paths do not
#: stand for projects.
_PAGE_PATTERN = re.compile(
    r"https?://(?!docs\.|about\.|forum\.|handbook\.)[\w.-]*gitlab[\w.:-]*(/[^\s?#\"'<>]*)"
)
_MAX_TEXT_LENGTH = 2_000
#: Minimum number of constant segments for a path to be recognized as an API path in any position.
_MIN_DISTINCTIVE_SEGMENTS = 2


def is_legacy_page_url(text: str) -> bool:
    """Return whether a string is the URL of a project page without `/-/`."""
    if len(text) > _MAX_TEXT_LENGTH:
        return False
    found = _PAGE_PATTERN.fullmatch(_PLACEHOLDER_PATTERN.sub("1", text))
    return found is not None and is_legacy_page(found[1])


def find_request_path(text: str, *, is_client: bool, is_called: bool) -> tuple[str, str] | None:
    """Return the path and query of a request if a string is its URL, or None.

    A string without /api/v4 must be in a client of the service. In addition, the string must be
    passed to a function that sends requests (`is_called`), or must be recognizable by itself.
    """
    if len(text) > _MAX_TEXT_LENGTH or "\n" in text.strip():
        return None
    plain = _COLON_PLACEHOLDER_PATTERN.sub(
        UNKNOWN_PART, _PLACEHOLDER_PATTERN.sub(UNKNOWN_PART, resolve_base_url(text))
    ).strip()
    if not _ADDRESS_PATTERN.fullmatch(plain):
        return None
    path, _, query = plain.partition("?")
    api_path = find_api_path(path)
    if api_path is None and is_client:
        api_path = _find_relative_path(path, is_called=is_called)
    return None if api_path is None else (api_path.partition("#")[0], query)


def _find_relative_path(path: str, *, is_called: bool) -> str | None:
    segments = split_path(_ORIGIN_PATTERN.sub("", path))
    if segments and not segments[0].strip(UNKNOWN_PART):
        del segments[0]
    if not segments:
        return None
    found = f"{API_PATH}/{'/'.join(segments)}"
    return found if is_called or _has_distinctive_match(find_path_matches(found)) else None


def _has_distinctive_match(concerns: Sequence[CallMatch]) -> bool:
    return any(
        len(list_constant_segments(each.call)) >= _MIN_DISTINCTIVE_SEGMENTS for each in concerns
    )


_BRACKET_PAIRS = {"(": ")", "[": "]", "{": "}"}
_CLOSING_BRACKETS = frozenset(_BRACKET_PAIRS.values())


def check_brackets_closed(tokens: Sequence[Token]) -> None:
    """Check that all brackets and quotes are closed.

    The lexer cannot read strings with nested quotes such as `f"{a["b"]}"`, so a program with such
    strings is assumed to be complete. Raise UnreadableContentError if a bracket or quote is not
    closed.
    """
    if any(_may_contain_quotes(each) for each in iterate_within_limit(tokens)):
        return
    opened: list[Token] = []
    for token in iterate_within_limit(tokens):
        if token.is_open:
            raise _build_error("a quote is not closed", token)
        if token.kind == SIGN:
            _match_bracket(token, opened)
    if opened:
        raise _build_error("a bracket is not closed", opened[-1])


def _match_bracket(token: Token, tokens: list[Token]) -> None:
    if token.text in _BRACKET_PAIRS:
        tokens.append(token)
    elif token.text in _CLOSING_BRACKETS and (
        not tokens or _BRACKET_PAIRS[tokens.pop().text] != token.text
    ):
        raise _build_error("a closing bracket has no opening bracket", token)


def _may_contain_quotes(token: Token) -> bool:
    is_template = token.kind == TEXT and token.is_template and "\n" not in token.text
    return is_template and token.text.count("{") != token.text.count("}")


def _build_error(message: str, token: Token) -> UnreadableContentError:
    problem = f"The content is not a complete program: {message}"
    return UnreadableContentError(problem, line=token.line)


#: HTTP methods by the last word of a function name.
_METHODS_BY_VERB = {
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
#: Functions that take the HTTP method as an argument. The default is GET.
_SEND_FUNCTIONS = frozenset(
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
#: Words in the names of functions that build a URL from their arguments.
_JOIN_WORDS = frozenset({"join", "urljoin", "url", "uri", "resolve", "concat", "format", "sprintf"})
_GRAPHQL_DOCUMENT_PATTERN = re.compile(
    r"\s*(?:(?:query|mutation|subscription|fragment)\b[^{}]{0,2000}\{|\{\s*\w+\s*[({\n])"
)
_INTERPOLATION_PATTERN = re.compile(r"\$\{[^{}]*+\}")
#: Minimum number of words in the last segment of a path that is recognized without its call.
_MIN_DISTINCTIVE_WORDS = 3
_LOOP_KEYWORDS, _DECLARATION_KEYWORDS = frozenset({"in", "of"}), frozenset({"let", "var", "const"})
#: Minimum length of a distinctive name in characters.
_MIN_NAME_LENGTH = min(map(len, DISTINCTIVE_NAMES))
_ASSIGNMENT_SIGNS = frozenset({"=", ":="})
_KEY_SIGNS = frozenset({":", "=", "=>"})


def check_source(text: str, comments: CommentSyntax) -> Iterator[DetectedChange]:
    """Yield the changes that affect a whole or partial program.

    Unreadable parts are skipped.
    """
    yield from _check_tokens(list(tokenize_source(text, comments)), text)


def check_python(text: str) -> Iterator[DetectedChange]:
    """Yield the changes that affect a complete Python program.

    Only Python is checked for completeness. In other languages, the lexer could mistake characters
    in a regular expression for brackets or quotes. Raise UnreadableContentError if the program is
    not complete.
    """
    found = list(tokenize_source(text, CommentSyntax.HASH))
    check_brackets_closed(found)
    yield from _check_tokens(found, text)


_RUNNER_BLOCK_PATTERN = re.compile(
    r'\bresource\s+"gitlab_runner"\s+"[^"\n]*"\s*\{(?P<block>(?:[^{}]|\{[^{}]*+\}|(?!))*+)'
)
_RUNNER_TOKEN_PATTERN = re.compile(r"^\s*registration_token\s*=", re.MULTILINE)


def check_terraform(text: str) -> Iterator[DetectedChange]:
    """Yield the changes that affect a Terraform configuration."""
    yield from check_source(text, CommentSyntax.BOTH)
    for runner in iterate_within_limit(_RUNNER_BLOCK_PATTERN.finditer(text)):
        if given := _RUNNER_TOKEN_PATTERN.search(runner["block"]):
            line = 1 + text.count("\n", 0, runner.start("block") + given.end())
            yield DetectedChange(
                CHANGES_BY_ID["runner-registration"], line, "gitlab_runner: registration_token"
            )


def _check_tokens(lexed: Sequence[Token], text: str) -> Iterator[DetectedChange]:
    yield from _SourceChecker(
        SourceProgram(lexed), is_client=is_service_client(text)
    ).iterate_changes()


class _SourceChecker:
    """A reader that processes a program from the first token to the last."""

    def __init__(self, program: SourceProgram, *, is_client: bool) -> None:
        self._program = program
        self._is_client = is_client
        self._arguments = ArgumentReader(program)
        self._bindings = VariableBindings(program)

    def iterate_changes(self) -> Iterator[DetectedChange]:
        """Yield the changes that affect the program."""
        consumed = -1
        for at, token in enumerate(iterate_within_limit(self._program.tokens)):
            if token.kind == TEXT:
                if at > consumed:
                    whole, consumed = read_literal(self._program, at)
                    yield from self._check_string(at, token, whole)
            elif token.kind == NAME:
                yield from self._check_name(at, token)
            elif token.kind == SIGN:
                yield from self._check_sign(at, token)

    def _check_name(self, position: int, token: Token) -> Iterator[DetectedChange]:
        yield from self._check_distinctive_name(token)
        if "TLS" in token.text:
            before = self._program.get_text(position - 2) + self._program.get_text(position - 3)
            yield from find_names_in_text(f"{before} {token.text}", token.line, only="tls-versions")
        if token.text in _LOOP_KEYWORDS:
            yield from self._bindings.record_loop_variable(position)
        elif token.text in _DECLARATION_KEYWORDS:
            self._bindings.discard_redeclared_value(position)
        if self._bindings.has_response_variables:
            yield from self._bindings.find_accessed_fields(position)

    def _check_distinctive_name(self, token: Token) -> Iterator[DetectedChange]:
        if len(token.text) >= _MIN_NAME_LENGTH:
            for change in find_changes_by_name(token.text, is_client=self._is_client):
                reason = f"The name {to_snake_case(token.text)}"
                yield DetectedChange(change, token.line, reason, is_certain=False)

    def _check_sign(self, position: int, token: Token) -> Iterator[DetectedChange]:
        if token.text in _ASSIGNMENT_SIGNS:
            is_keyword = self._program.get_text(self._program.around[position]) == "("
            if self._program.get_token_kind(position - 1) == NAME and not is_keyword:
                self._arguments.record_assigned_object(position)
                self._bindings.record_assigned_value(position)
        elif token.text == "(":
            call = self._program.get_call_at(position)
            if call.chain:
                yield from self._check_call(call, token.line)

    def _check_call(self, call: ProgramCall, line: int) -> Iterator[DetectedChange]:
        self._bindings.record_callback_parameter(call)
        chain = self._bindings.expand_chain(call.chain)
        sent = find_client_request(chain) if self._is_client else None
        if sent is not None:
            method, path = sent
            known = KnownParameters()
            self._arguments.add_arguments(known, call.opening, call.closing)
            yield from self._check_matches(find_path_matches(path), method, known, line)
            yield from self._bind_result_fields(find_path_matches(path), method, call)
        for text in self._bindings.find_argument_texts(call):
            yield from self._check_request_url(text, [call], line, is_used=True)

    def _check_string(
        self, position: int, token: Token, program_text: str
    ) -> Iterator[DetectedChange]:
        if self._is_docstring(position, token):
            return
        yield from self._check_string_content(position, token, program_text)
        text, calls = token.text, list(self._program.iterate_enclosing_calls(position))
        path = self._find_request_url(position, program_text, calls)
        if path is not None:
            yield from self._check_request_url(path, calls, token.line, is_used=False)
        if to_snake_case(text) == "deploy_token" and self._mentions_graphql(calls):
            reason = "A GraphQL request with the Deploy-Token header"
            yield DetectedChange(CHANGES_BY_ID["graphql-token-types"], token.line, reason)

    def _check_string_content(
        self, position: int, token: Token, program_text: str
    ) -> Iterator[DetectedChange]:
        """Yield the changes that affect the content of a string, wherever it is in the program.

        The content can be a name, a command-line option, a GraphQL document or the URL of a legacy
        page.
        """
        text, line = token.text, token.line
        yield from find_names_in_text(text, line, is_client=self._is_client)
        if is_legacy_page_url(program_text) and not self._is_response_value(position):
            reason = "A URL of a project page without /-/"
            yield DetectedChange(CHANGES_BY_ID["legacy-page-urls"], line, reason, is_certain=False)
        if is_registration_option(text):
            yield from find_runner_registration([ShellWord(text, line)])
        if _GRAPHQL_DOCUMENT_PATTERN.match(text):
            yield from _check_graphql_text(text, line)

    def _find_request_url(
        self, position: int, program_text: str, calls: Sequence[ProgramCall]
    ) -> str | None:
        """Return the request URL in a string, or None if the string is only part of a URL."""
        if not calls or API_PATH in program_text:
            return program_text
        inner = calls[0]
        if not _is_send_call(inner):
            return None if self._is_appended_to_url(position, calls) else program_text
        joined = join_segments(self._program, inner) if is_path_segment(program_text) else None
        if joined is None or not joined.first < position <= joined.last:
            return joined.path if joined else program_text
        return None

    def _is_appended_to_url(self, position: int, calls: Sequence[ProgramCall]) -> bool:
        """Return whether a string is only appended to the URL of an enclosing request."""
        inner, *outer = calls
        is_first = position == inner.opening + 1
        joins = not _JOIN_WORDS.isdisjoint(inner.chain[-1].split("_"))
        return not is_first and not joins and any(map(_is_send_call, outer))

    def _is_response_value(self, position: int) -> bool:
        """Return whether a string is the value of a key that only API responses have."""
        is_keyed = position > 1 and self._program.get_text(position - 1) in _KEY_SIGNS
        return is_keyed and to_snake_case(self._program.tokens[position - 2].text) == "web_url"

    def _is_docstring(self, position: int, token: Token) -> bool:
        """Return whether a multi-line string is a statement of its own."""
        if "\n" not in token.text or self._program.around[position] >= 0:
            return False
        return self._program.get_text(position - 1) in {
            "",
            ":",
            ")",
        } and not _GRAPHQL_DOCUMENT_PATTERN.match(token.text)

    def _mentions_graphql(self, calls: Sequence[ProgramCall]) -> bool:
        within = (
            self._program.tokens[at]
            for call in calls
            for at in range(call.opening, min(call.closing, call.opening + 100))
        )
        return any(each.kind == TEXT and "graphql" in each.text for each in within)

    def _check_request_url(
        self, text: str, calls: Sequence[ProgramCall], line: int, *, is_used: bool
    ) -> Iterator[DetectedChange]:
        """Yield the changes that affect a string that may be the URL of a request."""
        if "/" not in text and not calls:
            return
        method, call, known = self._find_sending_call(calls)
        found = find_request_path(text, is_client=self._is_client, is_called=call is not None)
        if found is None:
            return
        path, query = found
        known.add_query(query)
        concerns = find_path_matches(path)
        if method is None and call is None:
            known.is_open = True
        if is_used and method is None:
            return
        yield from self._check_matches(concerns, method, known, line)
        if call is not None:
            yield from self._bind_result_fields(concerns, method, call)

    def _find_sending_call(
        self, calls: Sequence[ProgramCall]
    ) -> tuple[str | None, ProgramCall | None, KnownParameters]:
        """Return the first call that sends a request, with its HTTP method and its parameters.

        The method is None if it is unknown. If no call sends a request, the method and the call are
        None.
        """
        for call in calls:
            known = KnownParameters()
            if not _is_send_call(call):
                continue
            verb = _find_http_method(call.chain)
            self._arguments.add_arguments(known, call.opening, call.closing)
            segments = join_segments(self._program, call)
            # Arguments before the segments may contain the parameters of the call.
            has_earlier_arguments = segments is not None and segments.first > call.opening + 1
            known.is_open = known.is_open or has_earlier_arguments
            return verb or self._find_method_in_call(call, known), call, known
        return None, None, KnownParameters()

    def _find_method_in_call(self, call: ProgramCall, parameters: KnownParameters) -> str | None:
        for at in range(call.opening + 1, min(call.closing, call.opening + 12)):
            token = self._program.tokens[at]
            is_constant = token.kind == NAME and token.text.startswith("Method")
            word = token.text.removeprefix("Method").upper()
            if (token.kind == TEXT or is_constant) and word in HTTP_METHODS:
                return word  # Go's http.MethodPost is also recognized.
        given = parameters.values.get("method", parameters.values.get("type", "GET"))
        if given is None or ("method" not in parameters.values and parameters.is_open):
            return None
        return given.upper()

    def _check_matches(
        self,
        concerns: Sequence[CallMatch],
        method: str | None,
        parameters: KnownParameters,
        line: int,
    ) -> Iterator[DetectedChange]:
        for concern in concerns:
            if method is None and not _is_distinctive_path(concern):
                continue
            asked = method or next(iter(concern.call.methods), "GET")
            if reason := find_match_reason(concern, asked, parameters):
                yield DetectedChange(concern.change, line, reason.text, reason.is_certain)

    def _bind_result_fields(
        self, concerns: Sequence[CallMatch], method: str | None, call: ProgramCall
    ) -> Iterator[DetectedChange]:
        fields: dict[str, Change] = {
            each.rpartition(".")[2]: concern.change
            for concern in concerns
            if method is None or not concern.call.methods or method in concern.call.methods
            for each in concern.call.fields
        }
        yield from self._bindings.record_call_result(call, fields)


def _is_send_call(call: ProgramCall) -> bool:
    return call.chain[-1] in _SEND_FUNCTIONS or _find_http_method(call.chain) is not None


def _find_http_method(chain: Sequence[str]) -> str | None:
    for word in reversed(chain[-2:]):
        last = word.rpartition("_")[2]
        if last in _METHODS_BY_VERB and word not in _SEND_FUNCTIONS:
            return _METHODS_BY_VERB[last]
    return None


def _is_distinctive_path(call_match: CallMatch) -> bool:
    """Return whether a path is recognized without the HTTP method of its call."""
    last = split_path(call_match.call.path)[-1]
    return last.count("_") >= _MIN_DISTINCTIVE_WORDS - 1 or not call_match.call.methods


def _check_graphql_text(text: str, line: int) -> Iterator[DetectedChange]:
    try:
        yield from check_graphql(_INTERPOLATION_PATTERN.sub(" ", text), line=line)
    except UnreadableContentError:
        return
