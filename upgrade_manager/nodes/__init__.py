"""The upgrade of the nodes: pure decisions from observed objects, and the effects that carry them out.

The pipeline reads the objects and applies the effects; nothing here sends a request.
"""

__all__ = [
    "anomalies",
    "drain",
    "job_state",
    "machine_plan",
    "model",
    "node_view",
    "pending_hooks",
    "sequencing",
    "single_node",
]
