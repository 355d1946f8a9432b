"""`python -m hack.chart`: write the generated files of the Helm chart."""

from __future__ import annotations

from pathlib import Path

from hack.chart.catalogue import COPIES, TEMPLATES

DEPLOY = Path(__file__).parents[2] / "deploy"


def main() -> None:
    """Write each template to its source's path in the chart, and the files that templates read."""
    texts = {f"templates/{template.source}": template.text(DEPLOY) for template in TEMPLATES}
    texts |= {name: (DEPLOY / source).read_text(encoding="utf-8") for name, source in COPIES.items()}
    for name, text in texts.items():
        path = DEPLOY / "chart" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
