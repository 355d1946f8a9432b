from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api import keys
from upgrade_manager.api.annotations import USER_ANNOTATIONS, BadAnnotation, Flag, PlanAnnotations


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        *[(text, Flag.TRUE) for text in ("1", "t", "T", "true", "TRUE", "True")],
        *[(text, Flag.FALSE) for text in ("0", "f", "F", "false", "FALSE", "False")],
        *[(text, Flag.BAD) for text in ("", "yes", "tRUE", "2", "true ")],
        (None, Flag.ABSENT),
    ],
)
def test_skip_disk_check_accepts_go_booleans(value: str | None, flag: Flag) -> None:
    raw = {} if value is None else {keys.ANNOTATION_SKIP_DISK_CHECK: value}
    assert PlanAnnotations(raw).skip_disk_check is flag
    assert bool(flag) is (flag is Flag.TRUE)


def test_message_of_an_invalid_flag() -> None:
    annotations = PlanAnnotations({keys.ANNOTATION_SKIP_DISK_CHECK: "maybe"})
    assert str(annotations.bad_flag(keys.ANNOTATION_SKIP_DISK_CHECK)) == (
        "Annotation management.harvesterhci.io/skip-garbage-collection-threshold-check is 'maybe'. "
        'Set it to "true" or "false"'
    )
    assert len(str(BadAnnotation(key="k", value="x" * 100_000, expected="short"))) < 200


@pytest.mark.rule(
    "api: min-certs-expiration-in-day is the required validity in days, an integer above 0",
    "api: the default of min-certs-expiration-in-day is 7",
)
@pytest.mark.parametrize(("value", "days"), [("1", 1), ("7", 7), ("+30", 30), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_days_are_positive_integers_and_seven_by_default(value: str, days: int) -> None:
    assert PlanAnnotations({keys.ANNOTATION_MIN_CERTS_DAYS: value}).min_certs_days == days
    assert PlanAnnotations({}).min_certs_days == 7


@pytest.mark.rule("api: min-certs-expiration-in-day is the required validity in days, an integer above 0")
@pytest.mark.parametrize(
    "value", ["", "0", "000", "-1", "7.5", "7d", " 7", "1_0", "\u0667", "9" * 5000, "0x7"], ids=lambda text: text[:10]
)
def test_invalid_days_are_rejected(value: str) -> None:
    days = PlanAnnotations({keys.ANNOTATION_MIN_CERTS_DAYS: value}).min_certs_days
    assert isinstance(days, BadAnnotation)
    assert keys.ANNOTATION_MIN_CERTS_DAYS in str(days)


@pytest.mark.rule("api: upgrade-toolkit-image replaces rancher/harvester-upgrade-toolkit")
@pytest.mark.parametrize(
    ("value", "image"),
    [
        pytest.param(None, "rancher/harvester-upgrade-toolkit", id="the published one by default"),
        pytest.param("me/toolkit", "me/toolkit", id="repository and name"),
        pytest.param("registry.local:5000/me/toolkit", "registry.local:5000/me/toolkit", id="a registry with a port"),
        pytest.param("me/toolkit:v2", "me/toolkit", id="a tag is dropped"),
        pytest.param("localhost:5000/toolkit:v2", "localhost:5000/toolkit", id="a port stays, a tag is dropped"),
        pytest.param("me/toolkit@sha256:" + "0" * 64, "me/toolkit", id="a digest is dropped"),
        pytest.param("me/toolkit:v2@sha256:" + "0" * 64, "me/toolkit", id="both are dropped"),
        pytest.param(" me/toolkit ", "me/toolkit", id="spaces around it"),
    ],
)
def test_toolkit_image_drops_tag_and_digest(value: str | None, image: str) -> None:
    raw = {} if value is None else {keys.ANNOTATION_TOOLKIT_IMAGE: value}
    assert PlanAnnotations(raw).toolkit_image == image


@pytest.mark.parametrize(
    "value",
    ["", ":v2", "/toolkit", "me//toolkit", "me/Tool kit", "me/TOOLKIT", "me/toolkit/", "$(id)", "a" * 300],
    ids=lambda text: text[:12] or "empty",
)
def test_invalid_toolkit_image_is_rejected(value: str) -> None:
    image = PlanAnnotations({keys.ANNOTATION_TOOLKIT_IMAGE: value}).toolkit_image
    assert isinstance(image, BadAnnotation)
    assert "container image" in str(image)


@pytest.mark.rule("api: an unknown annotation is a Warning event that names the nearest known key")
@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("min-cert-expiration-in-days", keys.ANNOTATION_MIN_CERTS_DAYS),
        ("Skip-Garbage-Collection-Check", keys.ANNOTATION_SKIP_DISK_CHECK),
        ("allow-delete", f"{keys.PREFIX}/allow-deletion"),
        ("x", f"{keys.PREFIX}/skip-webhook"),
    ],
)
def test_unknown_key_has_a_nearest_known_one(key: str, nearest: str) -> None:
    known = dict.fromkeys([*USER_ANNOTATIONS, *keys.MANAGER_ANNOTATIONS, "example.org/allow-delete"], "true")
    assert PlanAnnotations(known | {f"{keys.PREFIX}/{key}": "1"}).unknown == {f"{keys.PREFIX}/{key}": nearest}


@pytest.mark.parametrize(("value", "has_effect"), [("true", True), ("false", True), ("True", False), ("", False)])
def test_flags_of_the_webhook_are_true_or_false(value: str, *, has_effect: bool) -> None:
    bad = PlanAnnotations({keys.ANNOTATION_SKIP_WEBHOOK: value}).without_effect
    assert [one.key for one in bad] == ([] if has_effect else [keys.ANNOTATION_SKIP_WEBHOOK])


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("True", False), ("", False), (None, False)])
def test_skip_detached_volumes(value: str | None, *, expected: bool) -> None:
    raw = {} if value is None else {keys.ANNOTATION_SKIP_DETACHED_VOLUMES: value}
    assert PlanAnnotations(raw).skip_detached_volumes is expected


@given(st.text())
def test_reading_never_fails(value: str) -> None:
    used = (keys.ANNOTATION_SKIP_DISK_CHECK, keys.ANNOTATION_MIN_CERTS_DAYS, keys.ANNOTATION_TOOLKIT_IMAGE)
    annotations = PlanAnnotations(dict.fromkeys(used, value))
    assert isinstance(annotations.skip_disk_check, Flag)
    assert isinstance(annotations.min_certs_days, int | BadAnnotation)
    assert isinstance(annotations.toolkit_image, str | BadAnnotation)
