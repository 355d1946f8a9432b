"""`python -m hack.rights`: write the rights of the manager's account for `upgrade-manager check`, from deploy/rbac.

`make manifests` runs it; the program is installed without deploy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from upgrade_manager.api.keys import MANAGER

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "upgrade_manager/cli/installation/manager_rights.json"


def text() -> str:
    """Return the file: a list of namespace, API group, resource, verb and name for each right."""
    rows = ",\n".join(json.dumps(one) for one in sorted({*_rights()}))
    return f"[\n{rows}\n]\n"


def _rights() -> Iterator[tuple[str, str, str, str, str]]:
    for path in sorted((ROOT / "deploy/rbac").glob("*.yaml")):
        for role in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if role["kind"] in {"ClusterRole", "Role"} and role["metadata"]["name"] == MANAGER:
                namespace = role["metadata"].get("namespace", "")
                for rule in role["rules"]:
                    yield from (
                        (namespace, group, resource, verb, name)
                        for group in rule["apiGroups"]
                        for resource in rule["resources"]
                        for verb in rule["verbs"]
                        for name in rule.get("resourceNames", [""])
                    )


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
