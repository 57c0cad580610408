"""What all Markdown that is shown on pages has in common."""

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore

#: Classes of cells by the style that the parser gives them; to the left is how cells are anyway.
CELL_CLASSES = {"text-align:right": "number", "text-align:center": "centered"}


def aligned_by_class(parser: MarkdownIt) -> None:
    """Extend a parser: cells of tables are aligned by classes, because pages refuse styles."""
    parser.core.ruler.push("aligned_by_class", _align)


def _align(state: StateCore) -> None:
    for token in state.tokens:
        style = token.attrs.pop("style", None)
        if style in CELL_CLASSES:
            token.attrSet("class", CELL_CLASSES[style])
