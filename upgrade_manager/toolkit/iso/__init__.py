"""The release's ISO, as the upgrade repository serves it or as it is mounted in the Pod.

repository_files  the ISO over HTTP; `iso_directory` is a mounted one, `repository_wait` waits for the former
release_files     the release's descriptions; `component_versions` are the versions of its charts
downloads         large files on the host; `partial_file` is one until it is complete
checksums         refuses a file that was changed on its way
"""

__all__ = [
    "checksums",
    "component_versions",
    "downloads",
    "iso_directory",
    "partial_file",
    "release_files",
    "repository_files",
    "repository_wait",
]
