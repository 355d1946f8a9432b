"""The page's HTML."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.support.managers.displayed import NOW, plan, running_plan, without
from tests.support.managers.reported import HOSTILE_TEXT, failed, paused, running, steps, succeeded
from upgrade_manager import __version__
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.display import page as page_module
from upgrade_manager.display.leader import LeaseReading
from upgrade_manager.display.page import UNFOLDED_NODES, to_html
from upgrade_manager.display.report import Report, report
from upgrade_manager.runtime.lease import new_lease

VOID = {"br", "meta"}
STYLES = Path(page_module.__file__).with_name("report.css")
ERROR = {"type": "Degraded", "status": "True", "reason": "ReconcileError", "message": "it is refused"}
REPORTS = {
    "succeeded": succeeded(),
    "failed": failed(),
    "paused": paused(),
    "running": running(node_0="PreDraining"),
    "pending": report(plan(), [], [], [], now=NOW),
}


class Page(HTMLParser):
    """Collects elements, attributes and texts, and checks that elements are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self.open:
            self.cells[-1] += data.strip()

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_skipped_phase_is_marked_in_the_timeline() -> None:
    page = Page(to_html(report(without(PhaseName.IMAGE_PRELOAD), [], [], [], now=NOW)))
    labels = [attributes.get("aria-label") for attributes in page.named("svg")]
    assert "ImagePreload: skipped" in labels
    assert "ImageCleanup: no times" in labels
    assert page.text.count("skipped") == 1


@pytest.mark.parametrize("name", ["succeeded", "failed"])
def test_page_is_the_reviewed_one(name: str) -> None:
    """With GOLDEN=write it writes the pages, without their styles."""
    path = Path(__file__).with_name(f"report-{name}.golden")
    shown = to_html(REPORTS[name]).partition("</style>")[2].replace(__version__, "VERSION")
    body = "".join(f"{line.strip()}\n" for line in shown.splitlines() if line.strip())
    if os.environ.get("GOLDEN") == "write":
        path.write_text(body)
    assert body == path.read_text()


@pytest.mark.rule("report: the page is one file, without scripts and without anything from the network")
@pytest.mark.parametrize("of", REPORTS.values(), ids=REPORTS.keys())
def test_page_is_whole_and_needs_no_network(of: Report) -> None:
    html = to_html(of)
    page = Page(html)
    tags = {tag for tag, _ in page.elements}
    assert tags & {"script", "link", "img", "iframe", "object", "base", "form", "a"} == set()
    assert {name for _, attributes in page.elements for name in attributes if name.startswith("on")} == set()
    assert re.findall(r"(?:https?:)?//[a-z]|@import|url\((?!#)", html.partition("</style>")[0]) == []
    assert not {"src", "href"} & {name for _, attributes in page.elements for name in attributes}


@pytest.mark.rule("report: texts of other components are escaped")
def test_hostile_texts_are_shown_as_they_are() -> None:
    page = Page(to_html(failed()))
    assert page.text.count(HOSTILE_TEXT) >= 8
    assert page.named("img") == page.named("script") == []


@pytest.mark.rule("report: what the bars show is also in texts and in labels")
def test_bars_and_texts_have_the_same_data() -> None:
    of = succeeded()
    page = Page(to_html(of))
    labels = [one["aria-label"] or "" for one in page.named("svg") if one.get("class") == "bars"]
    assert len(labels) == len(of.view.phases) + len(of.nodes) + len(of.holdups)
    assert "ClusterUpgrade: Completed phase, 12:41:40 to 13:21:40, 40 min 0 s" in labels
    assert any("node-1: Rebooting, 14:13:20 to 14:20:50, 7 min 30 s" in label for label in labels)
    assert "40 min 0 s12:41:40 to 13:21:40" in page.text
    assert "Draining, Kubernetes 11 min 40 s · Operating system 11 min 40 s · Rebooting 7 min 30 s" in page.text


@pytest.mark.rule("report: what held the upgrade up is shown with its times, also after its events have expired")
def test_what_held_the_upgrade_up_is_in_the_timeline() -> None:
    page = Page(to_html(succeeded()))
    labels = [one["aria-label"] for one in page.named("svg") if one.get("class") == "bars"]
    assert "DrainFailing: Held up, 13:51:40 to 14:00:50, 9 min 10 s" in labels
    assert "NodeUpgrade of node-1 waited. PodDisruptionBudget default/shop: Pod default/shop-0 cannot be" in page.text
    assert "Held up25 min 0 sby 3 blockers" in page.text


@pytest.mark.rule("report: a repeated event has its first and last time and its count")
def test_repeated_event_has_first_and_last_time() -> None:
    assert "2030-01-01 13:58:20to 2030-01-01 14:03:203 times" in Page(to_html(succeeded())).cells


@pytest.mark.rule("report: the steps after a failure are shown, each command alone")
def test_next_steps_stand_before_the_timeline() -> None:
    page = Page(to_html(failed()))
    assert page.text.index("Create a new plan") < page.text.index("Timeline")
    assert "kubectl get nodes" in page.text
    assert len(page.named("code")) == 1


#: By seconds from the start, at noon: the axis.
AXES = {
    7500: ["12:00", "12:30", "13:00", "13:30", "14:00"],
    8 * 3600: ["12:00", "14:00", "16:00", "18:00", "20:00"],
    16 * 3600: ["12:00 Jan 1", "15:00 Jan 1", "18:00 Jan 1", "21:00 Jan 1", "00:00 Jan 2", "03:00 Jan 2"],
    3 * 86400: [f"{12 * ((one + 1) % 2):02}:00 Jan {1 + (one + 1) // 2}" for one in range(7)],
    6 * 86400: [f"Jan {day}" for day in range(2, 8)],
}


@pytest.mark.rule("report: times have their date where the upgrade lasted past midnight")
@pytest.mark.parametrize(("seconds", "marks"), AXES.items(), ids=[f"{one // 3600} h" for one in AXES])
def test_axis_has_dates_past_midnight(seconds: int, marks: list[str]) -> None:
    html = to_html(running(seconds, node_0="PreDraining"))
    axis = html.partition('<div class="axis')[2].partition("</div>")[0]
    assert [one.replace("<br>", " ") for one in re.findall(r"<span [^>]*>(.*?)</span>", axis)] == marks


@pytest.mark.rule("report: times have their date where the upgrade lasted past midnight")
def test_times_of_nodes_have_dates_past_midnight() -> None:
    events = steps("node-0", begin=39600, NodePaused=0, NodeResumed=50, NodeDraining=86400)
    page = Page(to_html(running(3 * 86400, events=events, node_0="PreDraining")))
    (*_, label) = [one["aria-label"] or "" for one in page.named("svg") if one.get("class") == "bars"]
    assert "node-0: Paused, 2030-01-01 23:00:00 to 2030-01-01 23:00:50, 50 s; " in label
    assert label.endswith("node-0: Draining, Kubernetes, 2030-01-02 23:00:00 to now, 37 h 0 min")
    assert "2030-01-01 23:00:00 to now" in page.text


def test_page_is_accessible() -> None:
    page = Page(to_html(succeeded()))
    assert page.named("html") == [{"lang": "en"}]
    assert len(page.named("title")) >= 1
    images = [one for one in page.named("svg") if one.get("role") == "img"]
    assert all(one.get("aria-label") for one in images)
    headings = {one["id"] for one in page.named("h2")}
    assert {one["aria-labelledby"] for one in page.named("section")} == headings
    assert len(page.named("caption")) == len(page.named("table"))
    assert all(one.get("data-label") for one in page.named("td"))


def test_shortest_bar_is_drawn_and_the_axis_has_one_format() -> None:
    page = Page(to_html(running(41, node_0="ImagePreloading")))
    widths = [float((one["width"] or "").rstrip("%")) for one in page.named("rect") if "y" in one]
    assert min(widths) > 0
    marks = re.findall(r"\d\d:\d\d(?::\d\d)?(?=</span>)", to_html(running(41, node_0="ImagePreloading")))
    assert len({len(mark) for mark in marks}) == 1


def test_every_style_is_used() -> None:
    refused = report(plan(currentPhase="Initializing", conditions=[ERROR]), [], [], [], now=NOW)
    pages = [Page(to_html(of)) for of in (*REPORTS.values(), refused, succeeded(UNFOLDED_NODES + 1))]
    elements = [element for page in pages for element in page.elements]
    classes = {f".{name}" for _, attributes in elements for name in (attributes.get("class") or "").split()}
    selectors = re.findall(r"[^{}]+(?=\{[^{}]*\})", STYLES.read_text())
    # Without pseudo-classes and ids.
    named = {name for one in selectors for name in re.findall(r"\.[A-Za-z][\w-]*|(?<![\w.:#(-])[a-z]\w*", one)}
    assert named - classes - {tag for tag, _ in elements} == set()


def test_reason_of_a_failure_and_what_is_missing_are_shown() -> None:
    text = Page(to_html(failed())).text
    assert "Why it failed" in text
    assert text.rindex(HOSTILE_TEXT) > text.index("The API server keeps events")


def test_warnings_stand_before_all_events() -> None:
    headings = [one["id"] for one in Page(to_html(succeeded())).named("h2")]
    assert headings[-2:] == ["warnings", "events"]
    assert "warnings" not in [one["id"] for one in Page(to_html(running(node_0="PreDraining"))).named("h2")]


@pytest.mark.parametrize(("count", "folded"), [(UNFOLDED_NODES, False), (UNFOLDED_NODES + 1, True)])
def test_many_nodes_are_folded(count: int, folded: bool) -> None:  # noqa: FBT001  # a value of the table
    assert bool(Page(to_html(succeeded(count))).named("details")) is folded


@pytest.mark.rule("status: the toolkit image and the plan's creator are shown where they are recorded")
def test_toolkit_image_and_creator_are_in_the_page() -> None:
    page = Page(to_html(report(running_plan(), [], [], [], now=NOW)))
    assert "created by alice" in page.text
    assert "registry/toolkit:v1.8.0 (kind own)" in page.text


@pytest.mark.rule("report: what is over is past tense, and the managers' Lease is read while the upgrade runs")
@pytest.mark.parametrize(
    ("status", "heading"),
    [
        pytest.param({"currentPhase": "NodeUpgrading"}, "What holds the upgrade up", id="running"),
        pytest.param({"currentPhase": "Failed"}, "What held the upgrade up", id="failed"),
        pytest.param({"currentPhase": "Succeeded"}, "What held the upgrade up", id="succeeded"),
        pytest.param({"currentPhase": "Failed", "cleanupPending": True}, "What holds the clean-up up", id="clean-up"),
    ],
)
def test_heading_of_blockers_has_the_tense_of_the_plan(status: dict[str, Any], heading: str) -> None:
    blockers = [{"reason": "CleanupRefused", "kind": "Job", "name": "x", "message": "m", "remedy": "r"}]
    found = plan(**status, blockers=blockers)
    assert heading in Page(to_html(report(found, [], [], [], now=NOW))).text


@pytest.mark.rule("report: what is over is past tense, and the managers' Lease is read while the upgrade runs")
@pytest.mark.parametrize(
    ("phase", "renewed", "said"),
    [
        pytest.param("NodeUpgrading", 2, "pod-a leads.", id="leads"),
        pytest.param("NodeUpgrading", 552, "No manager leads, so the upgrade stands still: pod-a last ", id="none"),
        pytest.param("Failed", 552, "", id="ended"),
    ],
)
def test_manager_is_named_while_the_upgrade_runs(phase: str, renewed: float, said: str) -> None:
    lease = new_lease("x", namespace="harvester-system", identity="pod-a_1", now=NOW - timedelta(seconds=renewed))
    reading = LeaseReading(lease=lease, error="", at=NOW)
    text = Page(to_html(report(plan(currentPhase=phase), [], [], [], now=NOW, lease=reading))).text
    assert said in text
    assert ("pod-a" in text) is bool(said)
    assert ("upgrade-manager check" in text) is (renewed > 60 and bool(said))
