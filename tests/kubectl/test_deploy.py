"""The manifests of deploy, as the API server validates them."""

from __future__ import annotations

import pytest

from tests.support.cluster.kubectl import Cluster
from tests.support.programs.kustomize import DEFAULT, files

pytestmark = [pytest.mark.real_loop, pytest.mark.servers, pytest.mark.full]

FILES = [str(path) for path in files(DEFAULT) if path.parent.name != "crds"]
#: Ends the warning about a policy of an earlier test, which kubectl did not create.
PATCHED = "The missing annotation will be patched automatically."
NAMESPACES = ("cattle-system", "fleet-local", "harvester-system", "longhorn-system")


async def test_manifests_are_valid(cluster: Cluster) -> None:
    for name in NAMESPACES:
        await cluster.wire.post("/api/v1/namespaces", {"metadata": {"name": name}})
    arguments = [argument for file in FILES for argument in ("-f", file)]
    outcome = await cluster.succeed("apply", "--dry-run=server", "--validate=strict", *arguments)
    # Policies of an earlier test are kept (tests/support/server/cluster_reset.py).
    done = {line.partition(" ")[2] for line in outcome.lines}
    assert done <= {f"{verb} (server dry run)" for verb in ("created", "configured", "unchanged")}
    warnings = [line for line in outcome.err.splitlines() if not line.endswith(PATCHED)]
    assert warnings == []
