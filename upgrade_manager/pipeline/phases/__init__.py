"""The phases of an upgrade, one module each; `base` has their interface."""

__all__ = [
    "base",
    "cluster_upgrade",
    "image_cleanup",
    "image_preload",
    "initialize",
    "iso_download",
    "metadata_populate",
    "node_upgrade",
    "repo_create",
    "repository",
]
