"""The resource and the account of the controllers, and the records on standard output that the benchmark reads.

Only the standard library is imported: this runs in each controller's own environment.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

GROUP, VERSION, PLURAL, KIND = "example.com", "v1", "widgets", "Widget"
NAMESPACE = "default"
#: Reconciles at a time, where the library leaves that to its user.
WORKERS = 32
#: A service account's folder, as it is mounted into a Pod.
ACCOUNT = Path(os.environ.get("PEER_ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
#: The API server, as a Pod finds it.
HOST, PORT = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")


class Report:
    """Prints `started` when it is created, after the imports, and `synced` when each object was reconciled once."""

    def __init__(self) -> None:
        self._expected = int(os.environ.get("PEER_OBJECTS", "1"))
        self._names: set[str] = set()
        _record("started")

    def handled(self, name: str) -> None:
        """Count an object whose reconcile runs."""
        if self._expected:
            self._names.add(name)
            if len(self._names) == self._expected:
                self._expected = 0
                self._names.clear()
                _record("synced")


def _record(event: str) -> None:
    """Print the event with the clock that all processes of a machine share, and this process's processor time."""
    record = {"event": event, "at": time.monotonic(), "processor": time.process_time()}
    print(json.dumps(record), flush=True)
