"""The upgrade of the nodes: pure decisions from observed objects, and their effects as data.

The pipeline reads the objects and applies the effects; this package sends no requests.
"""

__all__ = [
    "anomalies",
    "decided_nodes",
    "drain",
    "estimate",
    "expected_times",
    "gate",
    "milestones",
    "model",
    "next_node",
    "node_view",
    "pauses",
    "pending_hooks",
    "repeated_drain",
    "sequencing",
    "single_node",
]
