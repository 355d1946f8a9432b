"""The objects that the manager creates, as an API server takes them."""

from __future__ import annotations

from tests.pipeline.conftest import cluster

__all__ = ["cluster"]
