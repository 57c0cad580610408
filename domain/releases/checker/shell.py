"""Reads shell commands: requests of curl, wget, HTTPie and glab, and variables.

`gitlab-runner register` with a registration token requests POST /runners. For a pipe to jq, such as
`curl … | jq '.assets.links[].external'`, the fields in the filter are read as well.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

from domain.releases.checker.findings import Found, paced
from domain.releases.checker.graphql import check_graphql_request
from domain.releases.checker.names import names_in_text
from domain.releases.checker.requests import METHODS, Request, api_path, concerns_of, judge
from domain.releases.schedule import BY_ID

#: Maximum number of URLs of one command, all of which get the same body.
_MOST_URLS = 20
#: Length of a one-letter option, whose value may follow without a space.
_LETTER = len("-X")


class Word(NamedTuple):
    """A word of a command without its quotes, and its line."""

    text: str
    line: int


class _Means(Enum):
    """Meaning of an option or its value for the request."""

    METHOD = auto()
    DATA = auto()
    HEADER = auto()
    URL = auto()
    #: The value is irrelevant for the request.
    NOTHING = auto()
    #: An option without a value that moves the data to the query.
    QUERY = auto()
    #: An option without a value that sets the method to HEAD.
    HEAD = auto()


Options = Mapping[str, _Means]


def _options(**names: str) -> Options:
    """Return the meanings of options, which are given as texts separated by spaces."""
    return {name: _Means[means] for means, listed in names.items() for name in listed.split()}


_CURL = _options(
    METHOD="-X --request",
    DATA=(
        "-d --data --data-raw --data-binary --data-ascii --data-urlencode --json -F --form "
        "--form-string --url-query"
    ),
    HEADER="-H --header",
    URL="--url",
    NOTHING=(
        "-o --output -u --user -A --user-agent -b --cookie -c --cookie-jar -e --referer -w "
        "--write-out -m --max-time --connect-timeout --retry --cacert --cert --key -x --proxy -T "
        "--upload-file --resolve --tls-max -K --config -D --dump-header --retry-delay -E "
        "--retry-max-time --oauth2-bearer --max-redirs --capath --ciphers"
    ),
    QUERY="-G --get",
    HEAD="-I --head",
)
_WGET = _options(
    METHOD="--method",
    DATA="--post-data --body-data",
    HEADER="--header",
    NOTHING="-O -o --output-document --output-file --user --password --timeout",
)
_GLAB = _options(
    METHOD="-X --method",
    DATA="-f -F --field --raw-field",
    HEADER="-H --header",
    NOTHING="--input --hostname --output",
)


class _Given:
    """The parts of requests that are given by the arguments of a command."""

    def __init__(self) -> None:
        self.method = ""
        self.urls: list[Word] = []
        self.data: list[str] = []
        self.headers: set[str] = set()
        self.is_query = False

    def take(self, means: _Means, word: Word) -> None:
        """Handle the value of an option."""
        if means is _Means.METHOD:
            self.method = word.text
        elif means is _Means.DATA:
            self.data.append(word.text)
        elif means is _Means.HEADER:
            self.headers.add(word.text.partition(":")[0].strip().lower())
        elif means is _Means.URL:
            self.urls.append(word)

    def flag(self, means: _Means) -> None:
        """Handle an option without a value."""
        if means is _Means.QUERY:
            self.is_query = True
        elif means is _Means.HEAD:
            self.method = "HEAD"

    def requests(self) -> Iterator[Request]:
        """Yield the requests of the command."""
        body = _body(self.data)
        in_query = self.is_query and bool(body)
        usual = "POST" if self.data and not self.is_query else "GET"
        for url in self.urls[:_MOST_URLS]:
            yield Request(
                method=(self.method or usual).upper(),
                url=_with(url.text, body) if in_query else url.text,
                line=url.line,
                body="" if in_query else body,
                # The body is in a file that is not available.
                has_body=not any(each.startswith("@") for each in self.data),
                headers=frozenset(self.headers),
            )


def _body(data: Sequence[str]) -> str:
    """Return the body: JSON unchanged, or a form."""
    return "&".join(each for each in data if not each.startswith("@"))


def _with(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


_FLAGS = frozenset({_Means.QUERY, _Means.HEAD})


def _read(words: Sequence[Word], options: Options) -> _Given:
    """Return the requests in the words of a command after its name."""
    given = _Given()
    rest = iter(words)
    for word in rest:
        if not word.text.startswith("-") or word.text == "-":
            given.urls.append(word)
            continue
        name, attached = _option(word, options)
        means = options.get(name)
        if means in _FLAGS:
            given.flag(means)
        elif means is not None:
            given.take(means, attached or next(rest, Word("", word.line)))
    return given


def _option(word: Word, options: Options) -> tuple[str, Word | None]:
    """Return the name of an option, and the value in the same word, if any."""
    text = word.text
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        return name, Word(value, word.line) if equals else None
    if len(text) > _LETTER and options.get(text[:_LETTER]) not in {None, *_FLAGS}:
        return text[:_LETTER], Word(text[_LETTER:].removeprefix("="), word.line)
    # Flags in one word, such as -sSX. The last one may take a value, and one may change the method.
    letters = [f"-{letter}" for letter in text[1:]]
    known = [each for each in letters if each in options]
    return (known[-1] if known else text), None


def _curl(words: Sequence[Word]) -> Iterator[Request]:
    yield from _read(words, _CURL).requests()


def _wget(words: Sequence[Word]) -> Iterator[Request]:
    yield from _read(words, _WGET).requests()


def _glab(words: Sequence[Word]) -> Iterator[Request]:
    """Yield the request of `glab api <path>`, whose paths are below /api/v4."""
    if not words or words[0].text != "api":
        return
    given = _read(words[1:], _GLAB)
    given.urls = [_of_glab(url) for url in given.urls[:1]]
    yield from given.requests()


def _of_glab(url: Word) -> Word:
    path = "/api/graphql" if url.text == "graphql" else f"/api/v4/{url.text.lstrip('/')}"
    return Word(path, url.line)


_PAIR = re.compile(r"([\w\[\]-]+)(==|:=|=|:)(.*)", re.DOTALL)


def _httpie(words: Sequence[Word]) -> Iterator[Request]:
    """Yield the request of `http POST <URL> name=value query==value Header:value`."""
    given = _Given()
    for word in words:
        if word.text in METHODS:
            given.method = word.text
        elif not word.text.startswith("-"):
            _httpie_word(word, given)
    yield from given.requests()


def _httpie_word(word: Word, given: _Given) -> None:
    pair = _PAIR.fullmatch(word.text)
    if not given.urls:
        given.urls.append(word)
    elif pair and pair[2] == "==":
        given.urls[0] = Word(_with(given.urls[0].text, f"{pair[1]}={pair[3]}"), given.urls[0].line)
    elif pair and pair[2] == ":":
        given.headers.add(pair[1].lower())
    elif pair:
        given.data.append(f"{pair[1]}={pair[3]}")


#: Readers by the name of the program. They take the words after the name.
READERS: Mapping[str, Callable[[Sequence[Word]], Iterator[Request]]] = {
    "curl": _curl,
    "wget": _wget,
    "http": _httpie,
    "https": _httpie,
    "glab": _glab,
}


#: Pattern of the program, or of its image after `docker run`.
_PROGRAM = re.compile(r"(?:.*/)?gitlab-(?:ci-multi-)?runner(?::[\w.-]+)?")
_OPTION = "--registration-token"
#: Pattern of the option's alternative forms, which have this meaning only after `register`.
_SHORT = re.compile(r"-r(?:=.*)?|REGISTRATION_TOKEN=.*", re.DOTALL)
_CHANGE = BY_ID["runner-registration"]


def is_registration_option(text: str) -> bool:
    """Return whether a word is the option for a registration token, with or without its value."""
    return text == _OPTION or text.startswith(f"{_OPTION}=")


def runner_registration(words: Sequence[Word]) -> Iterator[Found]:
    """Yield the change that affects a command that registers a runner."""
    registers = any(
        before.text and _PROGRAM.fullmatch(before.text[-200:]) and word.text == "register"
        for before, word in pairwise(words)
    )
    for word in words:
        if is_registration_option(word.text) or (registers and _SHORT.fullmatch(word.text)):
            yield Found(_CHANGE, word.line, f"gitlab-runner register with {_OPTION}")
            return


_PART = re.compile(
    r"""(?P<space>[ \t\r]++|\\\r?\n)
    |(?P<comment>(?<![^\s;|&(])\#[^\n]*+)
    |(?P<end>\n|;|\|\|?|&&?|[()`])
    |\$?'(?P<single>[^']*+)(?:'|\Z)
    |\$?"(?P<double>(?:[^"\\]|\\.|(?!))*+)(?:"|\\?\Z)
    |(?P<plain>(?:\\[^\n]|[^\s'"|&;()`\\]|(?!))++|\\)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
#: Words before the name of a command.
_BEFORE = frozenset({"sudo", "time", "$", "-", "exec", "command", "then", "do", "if", "!", "else"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Command(NamedTuple):
    """A command as a list of words."""

    words: Sequence[Word]
    #: True if the command reads the output of the previous command.
    is_behind_pipe: bool


def check_shell(text: str, line: int = 1, *, is_client: bool = True) -> Iterator[Found]:
    """Yield the changes that affect the commands of a text that starts at a line."""
    for command in commands(text, line):
        for word in command.words:
            yield from names_in_text(word.text, word.line, is_client=is_client)
        joined = " ".join(
            word.text for word in command.words if word.text.startswith(("--tls", "1."))
        )
        yield from names_in_text(joined, command.words[0].line, only="tls-versions")
        yield from runner_registration(command.words)
    yield from _requests(commands(text, line))


def commands(text: str, line: int) -> Iterator[Command]:
    """Yield the commands of a text."""
    command, is_behind_pipe = _Command(), False
    for found in paced(_PART.finditer(text)):
        kind = found.lastgroup or "plain"
        if kind in {"single", "double", "plain"}:
            command.add(_unquoted(kind, found[0] if found[kind] is None else found[kind]), line)
        else:
            command.end_word()
        if kind == "end" and command.words:
            yield Command(command.words, is_behind_pipe)
            command = _Command()
        if kind == "end":
            # A line may end after a pipe.
            is_behind_pipe = found[0] == "|" or (found[0] == "\n" and is_behind_pipe)
        line += found[0].count("\n")
    command.end_word()
    if command.words:
        yield Command(command.words, is_behind_pipe)


class _Command:
    """A command that is being read."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self._parts: list[str] = []
        self._line = 1

    def add(self, part: str, line: int) -> None:
        """Add a part of a word."""
        self._line = self._line if self._parts else line
        self._parts.append(part)

    def end_word(self) -> None:
        """End the word, if there is one."""
        if self._parts:
            self.words.append(Word("".join(self._parts), self._line))
            self._parts = []


def _unquoted(kind: str, text: str) -> str:
    if kind == "single" or "\\" not in text:
        return text
    if kind == "double":
        return re.sub(r'\\(["\\$`\n])', r"\1", text)
    return _ESCAPE.sub(r"\1", text)


def _requests(listed: Iterator[Command]) -> Iterator[Found]:
    """Yield the changes that affect requests, and response fields that a filter reads."""
    sent: list[Request] = []
    for command in listed:
        words = list(command.words)
        while words and (words[0].text in _BEFORE or _ASSIGNMENT.match(words[0].text)):
            del words[0]
        name = words[0].text.rpartition("/")[2] if words else ""
        reader = READERS.get(name)
        if command.is_behind_pipe and name in FILTERS:
            yield from fields_read(words[1:], sent)
        elif reader is not None:
            sent = list(reader(words[1:]))
            yield from _judged(sent)
        else:
            sent = sent if command.is_behind_pipe else []
            # A nested command as in `"$(curl …)"`, or a program that takes a command as an
            # argument.
            yield from _nested(command.words)


def _judged(sent: Sequence[Request]) -> Iterator[Found]:
    for request in sent:
        yield from judge(request)
        if "/graphql" in request.url and request.body:
            for found in check_graphql_request(request.body):
                yield found._replace(line=request.line)


def _nested(words: Sequence[Word]) -> Iterator[Found]:
    for word in words:
        for name in ("curl ", "glab api "):
            at = word.text.find(name)
            if at >= 0:
                inner = word.text[at:].rstrip(")`")
                line = word.line + word.text.count("\n", 0, at)
                yield from _requests(_of_readers(commands(inner, line)))


def _of_readers(listed: Iterator[Command]) -> Iterator[Command]:
    """Yield the commands that send requests or read responses.

    Other commands cannot be recognized reliably in a text.
    """
    return (each for each in listed if each.words[0].text in READERS.keys() | FILTERS)


FILTERS = frozenset({"jq", "gojq", "jaq"})
#: Pattern of `.name`, `."name"`, `["name"]` and `{name}`.
_READ = re.compile(r"""[.\[{,]\s*"?([A-Za-z_]\w*+)""")
#: Maximum number of characters that are read of a filter.
_LONGEST = 64 * 1024


def fields_read(words: Sequence[Word], sent: Sequence[Request]) -> Iterator[Found]:
    """Yield the affected response fields that a filter reads."""
    changing = {
        field.rpartition(".")[2]: concern.change
        for request in sent
        for concern in concerns_of(api_path(request.parts.path) or "")
        if not concern.call.methods or request.method in concern.call.methods
        for field in concern.call.fields
    }
    for word in words:
        for found in _READ.finditer(word.text[:_LONGEST]) if changing else ():
            change = changing.get(found[1])
            if change is not None:
                line = word.line + word.text.count("\n", 0, found.start())
                yield Found(change, line, f"The field {found[1]} of a response")
