"""Lines that only the terminal wraps, so that a line that is copied is one command.

tables.py makes them, screen.py prints them. Rich cuts or folds what is wider than the terminal: such a line is drawn in
parts as wide as the terminal, which are counted as its rows, and the line breaks between them are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import chop_cells
from rich.live import Live
from rich.live_render import LiveRender
from rich.segment import ControlType, Segment
from rich.style import Style

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

#: Marks a part that the next one continues.
_CONTINUED = "continued"
#: Rich neither cuts nor counts the text of a control segment.
_UNCUT = ((ControlType.CARRIAGE_RETURN,),)


class Unbroken:
    """One line, of any length."""

    def __init__(self, text: str, *, style: str = "") -> None:
        self._text = text
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts."""
        style = console.get_style(self._style)
        *parts, last = chop_cells(self._text, options.max_width) or [""]
        for part in parts:
            yield Segment(part, style + Style(meta={_CONTINUED: True}))
            yield Segment.line()
        yield Segment(last, style)
        yield Segment.line()


def _joined(segments: Iterable[Segment]) -> Iterator[tuple[Segment, bool]]:
    """Yield the segments without the line breaks between parts, and whether a segment continues a line."""
    is_continued = continues = False
    for segment in segments:
        if segment == Segment.line():
            continues = is_continued
            if not continues:
                yield segment, False
        else:
            yield segment, continues
        is_continued = segment.style is not None and bool(segment.style.meta.get(_CONTINUED))


class Joined:
    """A display that is printed once; it is printed without cropping."""

    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the segments."""
        for segment, _ in _joined(console.render(self._content, options)):
            yield segment


class _JoinedRender(LiveRender):
    """The display of a Live: its rows are counted before the parts are joined."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rendered = (one for one in super().__rich_console__(console, options) if isinstance(one, Segment))
        for segment, continues in _joined(rendered):
            yield Segment(segment.text, segment.style, _UNCUT) if continues else segment


class UnbrokenLive(Live):
    """A Live that shows such lines."""

    def __init__(self, *, console: Console) -> None:
        # "..." marks what even the shortest form has too much.
        super().__init__(console=console, refresh_per_second=8, vertical_overflow="ellipsis")
        self._live_render = _JoinedRender(self.get_renderable(), vertical_overflow=self.vertical_overflow)
