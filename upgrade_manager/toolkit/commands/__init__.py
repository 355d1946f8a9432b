"""One file per command: the table of its steps."""

__all__ = ["image_cleanup", "post_drain", "prepare", "version_guard"]
