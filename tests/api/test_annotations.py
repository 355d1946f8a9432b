from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api import keys
from upgrade_manager.api.annotations import USER_ANNOTATIONS, BadAnnotation, Flag, PlanAnnotations
from upgrade_manager.api.image_name import ImageName


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


DIGEST = "sha256:" + "0a" * 32


@pytest.mark.rule("api: upgrade-toolkit-image is REPOSITORY or REPOSITORY@sha256:DIGEST")
@pytest.mark.parametrize(
    ("value", "image"),
    [
        pytest.param(None, None, id="the configured one by default"),
        pytest.param("me/toolkit", ImageName(repository="me/toolkit"), id="repository and name"),
        pytest.param(
            "registry.local:5000/me/toolkit", ImageName(repository="registry.local:5000/me/toolkit"), id="with a port"
        ),
        pytest.param(f"me/toolkit@{DIGEST}", ImageName(repository="me/toolkit", digest=DIGEST), id="a digest is kept"),
        pytest.param(" me/toolkit ", ImageName(repository="me/toolkit"), id="spaces around it"),
    ],
)
def test_toolkit_image_keeps_the_digest(value: str | None, image: ImageName | None) -> None:
    raw = {} if value is None else {keys.ANNOTATION_TOOLKIT_IMAGE: value}
    assert PlanAnnotations(raw).toolkit_image == image


@pytest.mark.rule("api: a tag in upgrade-toolkit-image is refused: it belongs in spec.upgrade")
@pytest.mark.parametrize(
    "value",
    [
        "",
        ":v2",
        "/toolkit",
        "me//toolkit",
        "me/Tool kit",
        "me/TOOLKIT",
        "me/toolkit/",
        "$(id)",
        "a" * 300,
        "me/toolkit:v2",
        f"me/toolkit:v2@{DIGEST}",
        "localhost:5000/toolkit:v2",
        "me/toolkit@sha256:abc",
        f"me/toolkit@{DIGEST.upper()}",
        "me/toolkit@",
        f"@{DIGEST}",
        f"me/toolkit@{DIGEST}@{DIGEST}",
        f"me/toolkit@{DIGEST}0",
    ],
    ids=lambda text: text[:24] or "empty",
)
def test_tag_and_invalid_toolkit_image_are_rejected(value: str) -> None:
    image = PlanAnnotations({keys.ANNOTATION_TOOLKIT_IMAGE: value}).toolkit_image
    assert isinstance(image, BadAnnotation)
    assert "a tag belongs in spec.upgrade" in str(image)


@pytest.mark.rule("api: upgrade-toolkit-kind is own or harvester")
@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, None), ("own", keys.ToolkitKind.OWN), ("harvester", keys.ToolkitKind.HARVESTER)],
    ids=["the configured one", "own", "harvester"],
)
def test_toolkit_kind_is_own_or_harvester(value: str | None, kind: keys.ToolkitKind | None) -> None:
    raw = {} if value is None else {keys.ANNOTATION_TOOLKIT_KIND: value}
    assert PlanAnnotations(raw).toolkit_kind is kind


@pytest.mark.parametrize("value", ["", "Own", "rancher", " own"], ids=lambda text: text or "empty")
def test_other_toolkit_kind_is_rejected(value: str) -> None:
    kind = PlanAnnotations({keys.ANNOTATION_TOOLKIT_KIND: value}).toolkit_kind
    assert str(kind) == f"Annotation {keys.ANNOTATION_TOOLKIT_KIND} is {value!r}. Set it to own or harvester"


@pytest.mark.parametrize(
    ("value", "repository"),
    [
        pytest.param(None, "rancher/harvester-upgrade-toolkit", id="the published one by default"),
        pytest.param("me/toolkit:v2", "me/toolkit", id="a tag is dropped"),
        pytest.param("localhost:5000/toolkit:v2", "localhost:5000/toolkit", id="a port stays, a tag is dropped"),
        pytest.param(f"me/toolkit:v2@{DIGEST}", "me/toolkit", id="tag and digest are dropped"),
        pytest.param("$(id)", None, id="an invalid one"),
    ],
)
def test_earlier_version_reads_the_repository_only(value: str | None, repository: str | None) -> None:
    raw = {} if value is None else {keys.ANNOTATION_TOOLKIT_IMAGE: value}
    found = PlanAnnotations(raw).toolkit_repository
    assert found == repository if repository else isinstance(found, BadAnnotation)


def test_creator_is_the_annotation_or_empty() -> None:
    assert PlanAnnotations({keys.ANNOTATION_CREATED_BY: "alice"}).created_by == "alice"
    assert PlanAnnotations({}).created_by == ""


@pytest.mark.rule("api: an unknown annotation is a Warning event that names the nearest known key")
@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("min-cert-expiration-in-days", keys.ANNOTATION_MIN_CERTS_DAYS),
        ("Skip-Garbage-Collection-Check", keys.ANNOTATION_SKIP_DISK_CHECK),
        ("allow-delete", f"{keys.PREFIX}/allow-deletion"),
        ("x", f"{keys.PREFIX}/continue"),
    ],
)
def test_unknown_key_has_a_nearest_known_one(key: str, nearest: str) -> None:
    known = dict.fromkeys(
        [*USER_ANNOTATIONS, *keys.ADMISSION_ANNOTATIONS, *keys.MANAGER_ANNOTATIONS, "example.org/allow-delete"], "true"
    )
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
    assert isinstance(annotations.toolkit_image, ImageName | BadAnnotation)
    assert isinstance(annotations.toolkit_repository, str | BadAnnotation)


@pytest.mark.parametrize(
    ("annotations", "invalid"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({keys.ANNOTATION_MIN_CERTS_DAYS: "30", keys.ANNOTATION_SKIP_DISK_CHECK: "true"}, [], id="valid"),
        pytest.param({keys.ANNOTATION_MIN_CERTS_DAYS: "0"}, [keys.ANNOTATION_MIN_CERTS_DAYS], id="days"),
        pytest.param(
            {keys.ANNOTATION_MIN_CERTS_DAYS: "x", keys.ANNOTATION_SKIP_DISK_CHECK: "yes"},
            [keys.ANNOTATION_SKIP_DISK_CHECK, keys.ANNOTATION_MIN_CERTS_DAYS],
            id="both",
        ),
    ],
)
def test_invalid_values_fail_the_plan(annotations: dict[str, str], invalid: list[str]) -> None:
    assert [one.key for one in PlanAnnotations(annotations).invalid] == invalid
