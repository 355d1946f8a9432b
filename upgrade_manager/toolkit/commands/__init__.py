"""One file per command: the table of its steps."""

__all__ = ["cluster_upgrade", "image_cleanup", "post_drain", "prepare", "version_guard"]
