"""The release's ISO, served by the upgrade repository or mounted in the Pod.

repository_files  the ISO over HTTP; `iso_directory` is a mounted ISO, `repository_wait` waits for the repository
release_files     the release's descriptions; `component_versions` are the versions of its charts
downloads         large files on the host; `partial_file` is a file until its download is complete
migration         the rows of release/migrations that belong to the upgrade
checksums         refuses a file that was changed during the transfer
"""

__all__ = [
    "checksums",
    "component_versions",
    "downloads",
    "iso_directory",
    "migration",
    "partial_file",
    "release_files",
    "repository_files",
    "repository_wait",
]
