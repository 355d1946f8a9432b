from __future__ import annotations

import pytest

from upgrade_manager.api.checksums import MAX_BYTES, read_checksums, write_checksums

DIGEST = "0123456789abcdef" * 4


def test_text_is_compact_and_read_again() -> None:
    files = {"/rootfs.squashfs": DIGEST, "/bundle/ä.tar.zst": DIGEST}
    text = write_checksums(files)
    assert text == f'{{"/bundle/ä.tar.zst":"{DIGEST}","/rootfs.squashfs":"{DIGEST}"}}'
    assert read_checksums(text) == files


def test_files_of_a_real_release_fit_into_a_termination_message() -> None:
    """The archives and lists of Harvester v1.7, and two more, with names of that length."""
    names = [
        *(
            "harvester-images",
            "rancher-images",
            "longhorn-images",
            "harvester-repo-images",
            "harvester-additional-images",
        ),
        *("rke2-images.linux-amd64", "rke2-images-multus.linux-amd64", "rancherd-bootstrap-images"),
    ]
    paths = ["/harvester-release.yaml", "/bundle/metadata.yaml", "/rootfs.squashfs"]
    for name in names:
        paths.append(f"/bundle/harvester/images/{name}-v1.33.5-rke2r1.tar.zst")
        paths.append(f"/bundle/harvester/images-lists/{name}-v1.33.5-rke2r1.txt")
    assert len(write_checksums(dict.fromkeys(paths, DIGEST)).encode()) < MAX_BYTES * 0.8


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "Expecting value", id="empty"),
        pytest.param("checksums: failed", "Expecting value", id="a failure's line"),
        pytest.param("[]", "not an object of checksums", id="list"),
        pytest.param("[" * 100_000, "too deeply nested|Expecting|recursion", id="nested"),
        pytest.param('{"/a":1}', "the digest of /a is not SHA-256", id="number"),
        pytest.param(f'{{"/a":"{DIGEST[:-1]}"}}', "the digest of /a is not SHA-256", id="cut off"),
        pytest.param(f'{{"/a":"{DIGEST.upper()}"}}', "the digest of /a is not SHA-256", id="upper case"),
        pytest.param(f'{{"/a":"{DIGEST}x"}}', "the digest of /a is not SHA-256", id="longer"),
        pytest.param(f'{{"a":"{DIGEST}"}}', "'a' is not a path", id="relative"),
        pytest.param(f'{{"/../a":"{DIGEST}"}}', "is not a path", id="out of the ISO"),
        pytest.param(f'{{"/a\\n":"{DIGEST}"}}', "is not a path", id="newline"),
        pytest.param(f'{{"/{"a" * MAX_BYTES}":"{DIGEST}"}}', "not an object of checksums", id="too long"),
    ],
)
def test_other_texts_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_checksums(text)
