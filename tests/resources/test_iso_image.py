from __future__ import annotations

import pytest

from upgrade_manager.resources.iso_image import iso_image
from upgrade_manager.resources.owner import Owner

IMAGE = iso_image(Owner(name="up", uid="u-1"), version="v1.7.0", url="https://x/a.iso", checksum="ab")


@pytest.mark.rule(
    "pipeline: ISODownload creates the image from the Version once",
    "workloads: the image is named PLAN-iso",
    "workloads: the image has backend cdi, sourceType download, retry 3 and StorageClass longhorn-static",
    "workloads: the image's displayName is PLAN-VERSION",
    'api: the ISO\'s image has os-upgrade-image "True"',
    'workloads: the image\'s annotation os-upgrade-image is "True"',
)
def test_iso_image() -> None:
    assert IMAGE["metadata"]["name"] == "up-iso"
    assert IMAGE["metadata"]["annotations"] == {"harvesterhci.io/os-upgrade-image": "True"}
    assert IMAGE["spec"] == {
        "backend": "cdi",
        "sourceType": "download",
        "url": "https://x/a.iso",
        "checksum": "ab",
        "retry": 3,
        "targetStorageClassName": "longhorn-static",
        "displayName": "up-v1.7.0",
    }


def test_display_name_is_a_label_value() -> None:
    long = iso_image(Owner(name="p" * 60, uid="u"), version="v1.7.0-rc1", url="", checksum="")
    assert len(long["spec"]["displayName"]) == 63
