"""The page in a real browser. Screenshots stay in the folder of the tests: build/display."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.managers.reported import failed, paused, running, succeeded
from tests.support.programs.chromium import Chromium
from upgrade_manager.display.page import to_html

if TYPE_CHECKING:
    from pathlib import Path

    from upgrade_manager.display.report import Report

pytestmark = [pytest.mark.display]
#: The width of a phone, of the smallest window with the wide form, and of a screen.
NARROW, MIDDLE, WIDE = 400, 901, 1600
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
    narrow, wide = browser.measure(file, NARROW, WIDE)
    assert (narrow["width"], wide["width"]) == (NARROW, WIDE)
    for shown in (narrow, wide):
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
