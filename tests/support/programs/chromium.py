"""Debian's Chromium without a window: its console, screenshots, and measurements of pages."""

from __future__ import annotations

import html
import json
import re
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    # Containers have little of it.
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--v=0",
)
#: Writes into the outer page what a frame of each width shows; the report itself forbids scripts.
_MEASURE = """\
<!DOCTYPE html><meta charset="utf-8"><body>{frames}<pre id="out"></pre><script>
addEventListener("load", () => {{
  const measured = [...document.querySelectorAll("iframe")].map(frame => {{
    const page = frame.contentDocument.documentElement;
    const outside = [...page.querySelectorAll("body *")].filter(one => {{
      const box = one.getBoundingClientRect();
      return box.width > 1 && (box.right > page.clientWidth + 1 || box.left < -1);
    }}).map(one => one.outerHTML.slice(0, 120));
    const marks = [...page.querySelectorAll(".axis span")].map(one => one.getBoundingClientRect())
      .filter(box => box.width).sort((one, other) => one.left - other.left);
    const overlapping = marks.filter((box, index) => index && box.left < marks[index - 1].right).length;
    return {{
      width: page.clientWidth, content: page.scrollWidth, outside, marks: marks.length, overlapping,
      title: frame.contentDocument.title,
      smallest: Math.min(...[...page.querySelectorAll("body *")].filter(one => one.textContent.trim())
        .map(one => parseFloat(frame.contentWindow.getComputedStyle(one).fontSize))),
    }};
  }});
  document.getElementById("out").textContent = JSON.stringify(measured);
}});
</script>"""


class Chromium:
    """Starts a browser for each page, with its files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def console(self, page: Path) -> list[str]:
        """Open a page from disk and return the lines of its console."""
        return self._run(page, "--dump-dom")[1]

    def screenshot(self, page: Path, image: Path, *, width: int, height: int, dark: bool = False) -> list[str]:
        """Write an image of a page and return the lines of its console."""
        scheme = ("--blink-settings=preferredColorScheme=0",) if dark else ()
        return self._run(page, f"--screenshot={image}", f"--window-size={width},{height}", *scheme)[1]

    def pages(self, page: Path, document: Path) -> int:
        """Print a page into a PDF document and return its number of pages."""
        self._run(page, f"--print-to-pdf={document}", "--no-pdf-header-footer")
        return max(int(count) for count in re.findall(rb"/Count (\d+)", document.read_bytes()))

    def measure(self, page: Path, *widths: int) -> list[dict[str, Any]]:
        """Return for each width of a window what a reader would see."""
        source = html.escape(page.read_text())
        frames = "".join(f'<iframe width="{width}" height="900" srcdoc="{source}"></iframe>' for width in widths)
        outer = self._folder / f"{page.stem}-measured.html"
        outer.write_text(_MEASURE.format(frames=frames))
        dom, _ = self._run(outer, "--dump-dom")
        found = html.unescape(dom.partition('<pre id="out">')[2].partition("</pre>")[0])
        measured: list[dict[str, Any]] = json.loads(found)
        return measured

    def _run(self, page: Path, *flags: str) -> tuple[str, list[str]]:
        """Return what the browser prints, and the lines of the page's console."""
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as profile:
            done = subprocess.run(  # noqa: S603  # Debian's browser on our own page
                ["chromium", *_FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()],  # noqa: S607  # found on the PATH
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
        return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
