"""Container images on a node: imported before the upgrade, removed after it.

image_import   the release's images into containerd, archive by archive
image_archive  an archive as a stream; `zstd_frames` and `tar_entries` check its two formats
kept_archives  archives that RKE2 reads at its next start; `image_record` is the record for a repeated run
containerd     the images in the host's containerd
node_images    the images as the kubelet sees them, and their removal
"""

__all__ = ["image_import", "image_record", "kept_archives", "node_images"]
