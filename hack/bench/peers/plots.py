"""Draws a plot of docs/performance.md from the data of a benchmark: `python -m hack.bench.peers.plots NAME DATA SVG`.

It runs in a separate environment with matplotlib; `drawing` has the data's fields. The same data gives the same file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

#: One for each controller, in the order of the tables; distinct without colour vision, too (Okabe and Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#999999")
#: Of a cell by what became of the controller.
OUTCOMES = {"recovered": "#b7e1cd", "ended": "#fce8b2", "unaware": "#f4c7c3"}
COLUMNS = 3
#: Without these, a file has random identifiers, the glyphs of this machine's fonts, and the time.
mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "peers", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
METADATA = {"Date": None, "Creator": None}


def speed(data: dict[str, Any], path: Path) -> None:
    """Draw a panel for each row, with a bar for each controller."""
    rows, peers = data["rows"], data["peers"]
    lines = -(-len(rows) // COLUMNS)
    figure, panels = plt.subplots(lines, COLUMNS, figsize=(11, 1.5 * lines), layout="constrained", sharey=True)
    for panel, row in zip(panels.flat, rows, strict=False):
        bars = panel.barh(list(peers), row["values"], color=COLOURS)
        panel.bar_label(bars, labels=row["labels"], padding=2, fontsize=8)
        panel.set_title(row["name"], fontsize=9, loc="left")
        panel.set_xlim(0, 1.3 * max(row["values"]))
        panel.set_xticks([])
        panel.spines[["top", "right", "bottom"]].set_visible(False)
    # All panels share it.
    panels.flat[0].invert_yaxis()
    for panel in panels.flat[len(rows) :]:
        panel.set_visible(False)
    figure.savefig(path, metadata=METADATA)


def faults(data: dict[str, Any], path: Path) -> None:
    """Draw a table whose cells are coloured by the outcome."""
    rows, peers = data["rows"], data["peers"]
    figure, panel = plt.subplots(figsize=(11, 0.6 + 0.42 * len(rows)), layout="constrained")
    panel.set_axis_off()
    table = panel.table(
        cellText=[[cell["text"].replace(", ", "\n") for cell in row["cells"]] for row in rows],
        cellColours=[[OUTCOMES[cell["outcome"]] for cell in row["cells"]] for row in rows],
        rowLabels=[row["name"] for row in rows],
        colLabels=[peer.replace(" ", "\n", 1) for peer in peers],
        cellLoc="center",
        bbox=(0, 0, 1, 1),
    )
    table.auto_set_font_size(value=False)
    table.set_fontsize(8)
    figure.savefig(path, metadata=METADATA)


if __name__ == "__main__":
    name, data_path, svg_path = sys.argv[1:]
    {"speed": speed, "faults": faults}[name](json.loads(Path(data_path).read_text()), Path(svg_path))
