"""The UpgradePlan API: spec, status, conditions, names, keys and the CRD made from them. No I/O."""

__all__ = [
    "annotations",
    "attribution",
    "blockers",
    "checksums",
    "conditions",
    "crd",
    "image_name",
    "in_progress",
    "keys",
    "ledger",
    "names",
    "node_states",
    "phases",
    "progress",
    "spec",
    "status",
    "survey",
    "text",
    "timestamps",
    "toolkit_image",
]
