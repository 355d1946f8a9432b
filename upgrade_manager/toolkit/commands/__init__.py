"""One file per command: the table of its steps."""

__all__ = ["image_cleanup", "prepare", "version_guard"]
