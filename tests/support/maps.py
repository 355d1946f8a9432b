"""ConfigMaps, for rows of the conformance table about what any object has."""

from __future__ import annotations

MAPS = "/api/v1/namespaces/$ns/configmaps"


def config_map(**metadata: object) -> dict[str, object]:
    """One with that metadata, and nothing else."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
