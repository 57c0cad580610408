"""Reads the arguments of programs that send requests: curl, wget, HTTPie and glab.

`gitlab-runner register` with a registration token requests POST /runners.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

from domain.releases.checker.findings import Found
from domain.releases.checker.requests import METHODS, Request
from domain.releases.schedule import BY_ID

#: Of one command, each of which is sent the same body.
_MOST_URLS = 20
#: Options of one letter whose value may follow without a space.
_LETTER = len("-X")


class Word(NamedTuple):
    """A word of a command without its quotes, and its line."""

    text: str
    line: int


class _Means(Enum):
    """What an option or its value says about the request."""

    METHOD = auto()
    DATA = auto()
    HEADER = auto()
    URL = auto()
    #: The value says nothing about the request.
    NOTHING = auto()
    #: An option without a value: data go into the query.
    QUERY = auto()
    #: An option without a value: the method is HEAD.
    HEAD = auto()


Options = Mapping[str, _Means]


def _options(**names: str) -> Options:
    """Return the meanings of options, which are separated by spaces."""
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
    """What the arguments of a command say about its requests."""

    def __init__(self) -> None:
        self.method = ""
        self.urls: list[Word] = []
        self.data: list[str] = []
        self.headers: set[str] = set()
        self.is_query = False

    def take(self, means: _Means, word: Word) -> None:
        """Take the value of an option."""
        if means is _Means.METHOD:
            self.method = word.text
        elif means is _Means.DATA:
            self.data.append(word.text)
        elif means is _Means.HEADER:
            self.headers.add(word.text.partition(":")[0].strip().lower())
        elif means is _Means.URL:
            self.urls.append(word)

    def flag(self, means: _Means) -> None:
        """Take an option without a value."""
        if means is _Means.QUERY:
            self.is_query = True
        elif means is _Means.HEAD:
            self.method = "HEAD"

    def requests(self) -> Iterator[Request]:
        """Yield the requests."""
        body = _body(self.data)
        in_query = self.is_query and bool(body)
        usual = "POST" if self.data and not self.is_query else "GET"
        for url in self.urls[:_MOST_URLS]:
            yield Request(
                method=(self.method or usual).upper(),
                url=_with(url.text, body) if in_query else url.text,
                line=url.line,
                body="" if in_query else body,
                # A file that is not at hand.
                has_body=not any(each.startswith("@") for each in self.data),
                headers=frozenset(self.headers),
            )


def _body(data: Sequence[str]) -> str:
    """Return the body: JSON as it is, else a form."""
    return "&".join(each for each in data if not each.startswith("@"))


def _with(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


_FLAGS = frozenset({_Means.QUERY, _Means.HEAD})


def _read(words: Sequence[Word], options: Options) -> _Given:
    """Return what the words of a command say, its own name left out."""
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
    """Return the name of an option, and the value that is in the same word."""
    text = word.text
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        return name, Word(value, word.line) if equals else None
    if len(text) > _LETTER and options.get(text[:_LETTER]) not in {None, *_FLAGS}:
        return text[:_LETTER], Word(text[_LETTER:].removeprefix("="), word.line)
    # Flags in one word, such as -sSX: the last one may take a value, and one may change the method.
    letters = [f"-{letter}" for letter in text[1:]]
    known = [each for each in letters if each in options]
    return (known[-1] if known else text), None


def _curl(words: Sequence[Word]) -> Iterator[Request]:
    yield from _read(words, _CURL).requests()


def _wget(words: Sequence[Word]) -> Iterator[Request]:
    yield from _read(words, _WGET).requests()


def _glab(words: Sequence[Word]) -> Iterator[Request]:
    """Read `glab api <path>`, whose paths are below /api/v4."""
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
    """Read `http POST <URL> name=value query==value Header:value`."""
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


#: By the name of the program; takes the words behind it.
READERS: Mapping[str, Callable[[Sequence[Word]], Iterator[Request]]] = {
    "curl": _curl,
    "wget": _wget,
    "http": _httpie,
    "https": _httpie,
    "glab": _glab,
}


#: The program, or its image behind `docker run`.
_PROGRAM = re.compile(r"(?:.*/)?gitlab-(?:ci-multi-)?runner(?::[\w.-]+)?")
_OPTION = "--registration-token"
#: Means the same behind `register` alone.
_SHORT = re.compile(r"-r(?:=.*)?|REGISTRATION_TOKEN=.*", re.DOTALL)
_CHANGE = BY_ID["runner-registration"]


def is_registration_option(text: str) -> bool:
    """Return whether a word is the option of a registration token, with or without its value."""
    return text == _OPTION or text.startswith(f"{_OPTION}=")


def runner_registration(words: Sequence[Word]) -> Iterator[Found]:
    """Yield what changes for a command that registers a runner."""
    registers = any(
        before.text and _PROGRAM.fullmatch(before.text[-200:]) and word.text == "register"
        for before, word in pairwise(words)
    )
    for word in words:
        if is_registration_option(word.text) or (registers and _SHORT.fullmatch(word.text)):
            yield Found(_CHANGE, word.line, f"gitlab-runner register with {_OPTION}")
            return
