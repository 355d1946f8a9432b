"""The page in a real browser. Screenshots stay in the folder of the tests: build/display."""

from __future__ import annotations

import html
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.managers.reported import failed, paused, running, succeeded
from upgrade_manager.display.page import to_html
from upgrade_manager.display.report import Report

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


pytestmark = [pytest.mark.display]
#: The width of a phone, of the smallest window with the wide form, and of a screen.
NARROW, MIDDLE, WIDE = 400, 901, 1600
WIDTHS = (NARROW, MIDDLE, 1000, 1280, WIDE)
PNG = b"\x89PNG"


def page(folder: Path, name: str, of: Report) -> Path:
    file = folder / f"{name}.html"
    file.write_text(to_html(of))
    return file


@pytest.mark.rule("report: the page opens from disk without errors, and fits windows of 400 and 1,600 pixels")
@pytest.mark.parametrize(
    ("name", "of"),
    [("succeeded", succeeded()), ("failed", failed()), ("paused", paused())],
    ids=["succeeded", "failed", "paused"],
)
def test_page_opens_from_disk_and_fits_the_window(tmp_path: Path, name: str, of: Report) -> None:
    browser, file = Chromium(tmp_path), page(tmp_path, name, of)
    for width, dark in ((NARROW, False), (WIDE, name == "failed")):
        image = tmp_path / f"{name}-{width}.png"
        assert browser.screenshot(file, image, width=width, height=2600, dark=dark) == []
        assert image.read_bytes().startswith(PNG)
    measured = browser.measure(file, *WIDTHS)
    assert [shown["width"] for shown in measured] == [*WIDTHS]
    for shown in measured:
        assert shown["content"] <= shown["width"]
        assert shown["outside"] == []
        assert shown["smallest"] >= 11
        assert shown["title"].startswith(f"demo: {of.view.state}")


@pytest.mark.rule("report: the page opens from disk without errors, and fits windows of 400 and 1,600 pixels")
def test_labels_of_the_axis_do_not_overlap(tmp_path: Path) -> None:
    # Each with labels of another form.
    for seconds in (36, 7 * 3600, 3 * 86400):
        file = page(tmp_path, f"axis-{seconds}", running(seconds, node_0="PreDraining"))
        shown = Chromium(tmp_path).measure(file, NARROW, MIDDLE, WIDE)
        assert [one["overlapping"] for one in shown] == [0, 0, 0]
        assert [one["marks"] for one in shown] == ([4, 7, 7] if seconds > 86400 else [4, 8, 8])


def test_print_has_the_wide_form_on_few_pages(tmp_path: Path) -> None:
    file = page(tmp_path, "succeeded", succeeded())
    assert Chromium(tmp_path).pages(file, tmp_path / "succeeded.pdf") <= 3


def test_errors_and_overflow_are_noticed(tmp_path: Path) -> None:
    browser, file = Chromium(tmp_path), page(tmp_path, "broken", succeeded())
    broken = "<script>1</script><p style='width: 500px'>wide</p></body>"
    file.write_text(file.read_text().replace("</body>", broken))
    (line,) = browser.console(file)
    assert "Content Security Policy" in line
    (narrow,) = browser.measure(file, NARROW)
    assert narrow["content"] > narrow["width"]
    assert any("wide" in element for element in narrow["outside"])
