"""Aligns the cells of Markdown tables with CSS classes."""

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore

#: CSS classes for table cells, by the parser's inline style. Left-aligned cells need no class.
CELL_CLASSES = {"text-align:right": "number", "text-align:center": "centered"}


def align_cells_by_class(parser: MarkdownIt) -> None:
    """Extend a parser to align table cells with CSS classes, since pages forbid inline styles."""
    parser.core.ruler.push("aligned_by_class", _align_cells)


def _align_cells(state: StateCore) -> None:
    for token in state.tokens:
        style = token.attrs.pop("style", None)
        if style in CELL_CLASSES:
            token.attrSet("class", CELL_CLASSES[style])
