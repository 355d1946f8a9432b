"""`python -m hack.chart`: write the generated templates of the Helm chart."""

from __future__ import annotations

from pathlib import Path

from hack.chart.catalogue import TEMPLATES

DEPLOY = Path(__file__).parents[2] / "deploy"


def main() -> None:
    """Write each template to its source's path in the chart."""
    for template in TEMPLATES:
        path = DEPLOY / "chart/templates" / template.source
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(template.text(DEPLOY), encoding="utf-8")


if __name__ == "__main__":
    main()
