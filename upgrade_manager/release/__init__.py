"""A release of Harvester: its version, its files on the ISO, and the clients of the repository that serves them.

The pipeline, the toolkit and the webhook read it; nothing in here knows an upgrade.
"""

__all__ = [
    "errors",
    "image_lists",
    "migrations",
    "release_file",
    "repository_client",
    "service_proxy",
    "unfinished",
    "upgrade_path",
    "version",
]
