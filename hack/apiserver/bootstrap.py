"""The initial objects of a cluster: its namespaces."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from hack.apiserver.namespaces import CONTENTS, NAME_LABEL
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.resources import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from hack.apiserver.storage import Storage

FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def bootstrap(storage: Storage, *, now: Callable[[], datetime], random: Random) -> None:
    """Write the initial namespaces."""
    for name in FIRST_NAMESPACES:
        metadata = {
            "name": name,
            "uid": str(uuid.UUID(int=random.getrandbits(128), version=4)),
            "creationTimestamp": format_time(now()),
            "labels": {NAME_LABEL: name},
        }
        namespace = {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": metadata,
            "spec": {"finalizers": [CONTENTS]},
            "status": {"phase": "Active"},
        }
        storage.write(NAMESPACES.name, ("", name), namespace)
