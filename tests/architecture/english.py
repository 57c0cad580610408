"""Finds habits of a private dialect in documents, docstrings, and comments of all languages.

`python -m tests.architecture.english FILES` lists them. CONTRIBUTING.md has the rules.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

#: Maximum number of words in a sentence of a document.
LONGEST_SENTENCE = 30
LONG_SENTENCE = f"at most {LONGEST_SENTENCE} words"
REPEATED_NOUN = "repeat the noun"
SUBJECT_FIRST = "name the subject, then use a verb"
_CODE = re.compile(
    r"``.*?``|`[^`\n]*`|https?://\S+|\S+@\S+|[\w./-]+\.(?:py|md|toml|html|js|sql)\b|\w+(?:\.\w+)+"
)
_QUOTED = re.compile(r"“[^”]*”|\"[^\"\n]*\"|\*[^*\n]+\*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*“\"(])|\n\s*\n|\n(?=\s*[-*|] )|(?<=:)\n")


class Rule(NamedTuple):
    """A habit, and a hint how to replace it."""

    pattern: re.Pattern[str]
    remedy: str


def _words(pattern: str, remedy: str) -> Rule:
    return Rule(re.compile(rf"(?i)\b(?:{pattern})\b"), remedy)


#: Words that are forbidden in all texts.
_EVERYWHERE = (
    _words("whom|whoever|whomever", "name the subject"),
    _words("(?:of|for|by|with|to|from|on|at|about|under|beyond|than) what(?! if)", REPEATED_NOUN),
    _words("at once", "immediately, or: at the same time"),
    _words("anew|afresh", "again"),
    _words("beside", "next to, in addition to"),
    _words("so (?:long|many|much)(?! as| that)", "as long as, or the number"),
    _words("that of|those of|those that|those who|the one that|the ones", REPEATED_NOUN),
    _words("time-outs?|timed-out", "timeout"),
    _words("hand-overs?|handovers?|hand-offs?", "handoff"),
    _words("e-mails?|e-mailed", "email"),
    _words("telephones?", "phone"),
    _words(
        "neighbours?|neighbouring|behaviours?|colours?|favours?|honours?|labelled|"
        "cancell(?:ed|ing)|organis\\w+|recognis\\w+|authoris\\w+|normalis\\w+|synchronis\\w+|initialis\\w+",
        "American spelling",
    ),
    _words(
        "(?:are|is|was|were|be|been|gets?|got) refused|refuses?|refusals?", "reject, deny, fail"
    ),
    _words("tells? of|told of|says so|say so|hears? of|heard of", "show, report, notify"),
)
#: Words that are also forbidden in docstrings and comments, since software does not speak.
_IN_CODE = (
    _words(
        "says|tells|told|hears|heard|asks(?! for| the)|wants|wanted",
        "show, return, log, request, check",
    ),
    _words("alone", "only"),
    _words("somebody|anybody|everybody", "a user, anyone, everyone"),
)
_CLAUSE_FIRST = re.compile(r"^(?:Who|What|Whatever|Whose|Whether|Which)\b(?!.*\?$)", re.DOTALL)
_FRAGMENT_FIRST = re.compile(r"^(?:Of|By|For|As|So|With|From)\b(?! example)")
#: Comments of scripts, style sheets and templates. Several lines with `//` are one comment.
_OTHER_COMMENTS = {
    ".js": re.compile(r"(?:^[ ]*//.*\n)+|(?<=[;{] )//.*|/\*.*?\*/", re.MULTILINE),
    ".css": re.compile(r"/\*.*?\*/", re.DOTALL),
    ".html": re.compile(r"\{#.*?#\}", re.DOTALL),
}
_DIRECTIVE = re.compile(r"#\s*(?:noqa|type:|pragma|fmt:|!)")
_RAISES = re.compile(r"\braises? \w+(?:Error|Exception)\b")


class Finding(NamedTuple):
    """A habit in a text."""

    where: str
    text: str
    remedy: str


def findings(file: Path, root: Path) -> Iterator[Finding]:
    """Yield the habits in a document or a module."""
    name = file.relative_to(root).as_posix()
    content = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        yield from _of_document(name, content)
    elif file.suffix == ".py":
        yield from _of_module(name, content)
    elif file.suffix in _OTHER_COMMENTS:
        for comment in _OTHER_COMMENTS[file.suffix].finditer(content):
            line = content.count("\n", 0, comment.start()) + 1
            text = re.sub(r"(?m)^ *//|/\*|\*/|\{#-?|-?#\}", "", comment[0])
            for sentence in _sentences(text):
                yield from _common(f"{name}:{line}", sentence, (*_EVERYWHERE, *_IN_CODE))


def _of_document(name: str, content: str) -> Iterator[Finding]:
    text = re.sub(r"(?ms)^( *)```.*?^\1```$", "", content)
    for sentence in _sentences(text):
        yield from _common(name, sentence, _EVERYWHERE)
        if not sentence.startswith("|") and len(sentence.split()) > LONGEST_SENTENCE:
            yield Finding(name, sentence, LONG_SENTENCE)


def _of_module(name: str, content: str) -> Iterator[Finding]:
    for line, text, kind in _texts(content):
        where = f"{name}:{line}"
        for sentence in _sentences(text):
            # A clause that starts with Whether is allowed: it describes a flag.
            described = f"Value: {sentence}" if sentence.startswith("Whether ") else sentence
            yield from _common(where, described, (*_EVERYWHERE, *_IN_CODE))
        first = text.strip().partition("\n\n")[0]
        if kind == "attribute" and _FRAGMENT_FIRST.match(first):
            yield Finding(where, first, "a noun phrase that contains its noun")
        if kind == "function" and _RAISES.search(_plain(first)):
            yield Finding(where, first, "exceptions go into the body of the docstring")


def _texts(content: str) -> Iterator[tuple[int, str, str]]:
    """Yield docstrings and comments, each with its line and kind."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "function" if isinstance(node, ast.FunctionDef) else "docstring"
            if docstring := ast.get_docstring(node):
                yield getattr(node, "lineno", 1), docstring, kind
    block: list[tuple[int, str]] = []
    for line, text in _comments(content):
        if block and line != block[-1][0] + 1:
            yield _joined(block)
            block = []
        block.append((line, text))
    if block:
        yield _joined(block)


def _comments(content: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string):
            yield token.start[0], token.string


def _joined(block: Sequence[tuple[int, str]]) -> tuple[int, str, str]:
    kind = "attribute" if block[0][1].startswith("#:") else "comment"
    return block[0][0], "\n".join(text.lstrip("#:").strip() for _, text in block), kind


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        stripped = sentence.strip(" -*#\n")
        if stripped:
            yield " ".join(stripped.split())


def _plain(text: str) -> str:
    return _QUOTED.sub("“”", _CODE.sub("`code`", text))


def _common(where: str, sentence: str, rules: Sequence[Rule]) -> Iterator[Finding]:
    plain = _plain(sentence)
    for rule in rules:
        if rule.pattern.search(plain):
            yield Finding(where, sentence, rule.remedy)
    if _CLAUSE_FIRST.match(plain):
        yield Finding(where, sentence, SUBJECT_FIRST)


def main() -> None:
    """Print the findings in the files and folders that the command line names."""
    root = Path.cwd()
    count = 0
    for name in sys.argv[1:]:
        path = root / name
        suffixes = (".py", ".md", *_OTHER_COMMENTS)
        found = sorted(each for each in path.rglob("*") if each.suffix in suffixes)
        files = [path] if path.is_file() else found
        for file in files:
            for each in findings(file, root):
                count += 1
                sys.stdout.write(f"{each.where}: {each.text[:160]}  [{each.remedy}]\n")
    sys.stdout.write(f"{count} findings\n")


if __name__ == "__main__":
    main()
