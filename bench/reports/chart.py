"""A chart of the figures as SVG, for light and dark backgrounds."""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from bench.rounds import Outcome
from bench.targets import Outcomes
from bench.workloads import RequestKind

_WIDTH, _LEFT, _RIGHT = 760, 190, 110
_BAR, _GAP, _HEAD, _SPACE = 18, 4, 26, 18
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600 }
  .rate { font-variant-numeric: tabular-nums }
  .theirs { fill: #8c959f } .ours { fill: #0969da } .floor { fill: #d0d7de }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .theirs { fill: #6e7681 } .ours { fill: #4493f8 } .floor { fill: #3d444d }
  }
"""


def draw_chart(outcomes: Outcomes, works: Sequence[RequestKind]) -> str:
    """Draw a bar for each contender and kind of request; the longest bar has the full width."""
    parts: list[str] = []
    top = 10
    for work in works:
        shown = [each for each in outcomes.values() if each.work is work and each.samples]
        if shown:
            parts += _draw_panel(work, shown, top)
            top += _HEAD + len(shown) * (_BAR + _GAP) + _SPACE
    size = f'width="{_WIDTH}" height="{top}" viewBox="0 0 {_WIDTH} {top}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n'
        "<title>Requests per second, by kind of request</title>\n"
        f"<style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _draw_panel(work: RequestKind, shown: Sequence[Outcome], top: int) -> Iterator[str]:
    title = f"{work.label}, requests per second"
    yield f'<text class="title" x="0" y="{top + 13}">{escape(title)}</text>'
    most = max(each.rate for each in shown) or 1.0
    for number, each in enumerate(shown):
        y = top + _HEAD + number * (_BAR + _GAP)
        width = max(1.0, (_WIDTH - _LEFT - _RIGHT) * each.rate / most)
        base = y + _BAR - 5
        yield f'<text x="{_LEFT - 8}" y="{base}" text-anchor="end">{escape(each.name)}</text>'
        yield (
            f'<rect class="{_get_bar_class(each.name)}" x="{_LEFT}" y="{y}" width="{width:.1f}"'
            f' height="{_BAR}" rx="2"/>'
        )
        rate = f"{each.rate:,.0f}" if each.rate >= 10 else f"{each.rate:.2f}"  # noqa: PLR2004 - one digit
        yield f'<text class="rate" x="{_LEFT + width + 6:.1f}" y="{base}">{rate}</text>'


def _get_bar_class(name: str) -> str:
    if name.startswith("Gatebell"):
        return "ours"
    return "floor" if name in {"empty Flask view", "pgbench"} else "theirs"
