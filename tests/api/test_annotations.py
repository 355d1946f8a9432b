from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api import keys
from upgrade_manager.api.annotations import BadAnnotation, Flag, PlanAnnotations

EXACT = [
    pytest.param("skip_webhook", keys.ANNOTATION_SKIP_WEBHOOK, id="skip-webhook"),
    pytest.param(
        "skip_single_replica_detached",
        keys.ANNOTATION_SKIP_SINGLE_REPLICA_DETACHED,
        id="skip-single-replica-detached-vol",
    ),
    pytest.param("allow_deletion", keys.ANNOTATION_ALLOW_DELETION, id="allow-deletion"),
]


@pytest.mark.parametrize(("field", "key"), EXACT)
@pytest.mark.parametrize(
    ("value", "flag"),
    [
        ("true", Flag.TRUE),
        ("false", Flag.FALSE),
        ("True", Flag.BAD),
        ("1", Flag.BAD),
        ("", Flag.BAD),
        (" true", Flag.BAD),
    ],
)
def test_what_takes_safety_away_is_spelt_as_documented(field: str, key: str, value: str, flag: Flag) -> None:
    assert getattr(PlanAnnotations({key: value}), field) is flag


@pytest.mark.parametrize("field", ["skip_webhook", "skip_single_replica_detached", "allow_deletion", "skip_disk_check"])
def test_a_flag_may_be_absent(field: str) -> None:
    assert getattr(PlanAnnotations({}), field) is Flag.ABSENT


def test_only_true_switches_on() -> None:
    assert [flag for flag in Flag if flag] == [Flag.TRUE]


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        *[(text, Flag.TRUE) for text in ("1", "t", "T", "true", "TRUE", "True")],
        *[(text, Flag.FALSE) for text in ("0", "f", "F", "false", "FALSE", "False")],
        *[(text, Flag.BAD) for text in ("", "yes", "tRUE", "2", "true ")],
    ],
)
def test_the_disk_check_is_skipped_by_any_boolean_of_go(value: str, flag: Flag) -> None:
    assert PlanAnnotations({keys.ANNOTATION_SKIP_DISK_CHECK: value}).skip_disk_check is flag


def test_a_bad_flag_is_explained() -> None:
    annotations = PlanAnnotations({keys.ANNOTATION_SKIP_DISK_CHECK: "maybe"})
    assert str(annotations.bad_flag(keys.ANNOTATION_SKIP_DISK_CHECK)) == (
        "Annotation management.harvesterhci.io/skip-garbage-collection-threshold-check is 'maybe'; "
        'must be "true" or "false"'
    )


def test_a_long_value_is_not_repeated_as_a_whole() -> None:
    assert len(str(BadAnnotation(key="k", value="x" * 100_000, expected="short"))) < 200


@pytest.mark.rule("api: min-certs-expiration-in-day is the required validity in days, an integer above 0")
@pytest.mark.parametrize(
    ("value", "days"),
    [("1", 1), ("7", 7), ("+30", 30), ("007", 7), ("999999999999999999", 999_999_999_999_999_999)],
)
def test_days_are_read(value: str, days: int) -> None:
    assert PlanAnnotations({keys.ANNOTATION_MIN_CERTS_DAYS: value}).min_certs_days == days


@pytest.mark.rule("api: the default of min-certs-expiration-in-day is 7")
def test_seven_days_where_nothing_is_said() -> None:
    assert PlanAnnotations({}).min_certs_days == 7


@pytest.mark.rule("api: min-certs-expiration-in-day is the required validity in days, an integer above 0")
@pytest.mark.parametrize(
    "value", ["", "0", "000", "-1", "7.5", "7d", " 7", "1_0", "\u0667", "9" * 5000, "0x7"], ids=lambda text: text[:10]
)
def test_days_that_are_no_positive_number_are_bad(value: str) -> None:
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
def test_the_toolkits_image_may_be_another(value: str | None, image: str) -> None:
    raw = {} if value is None else {keys.ANNOTATION_TOOLKIT_IMAGE: value}
    assert PlanAnnotations(raw).toolkit_image == image


@pytest.mark.parametrize(
    "value",
    ["", ":v2", "/toolkit", "me//toolkit", "me/Tool kit", "me/TOOLKIT", "me/toolkit/", "$(id)", "a" * 300],
    ids=lambda text: text[:12] or "empty",
)
def test_what_is_no_image_is_bad(value: str) -> None:
    image = PlanAnnotations({keys.ANNOTATION_TOOLKIT_IMAGE: value}).toolkit_image
    assert isinstance(image, BadAnnotation)
    assert "container image" in str(image)


def test_what_the_manager_kept_is_read_back() -> None:
    assert PlanAnnotations({}).replenishment_interval is None
    assert PlanAnnotations({keys.ANNOTATION_REPLENISHMENT_INTERVAL: "600"}).replenishment_interval == "600"
    assert not PlanAnnotations({}).descheduler_was_enabled
    assert PlanAnnotations({keys.ANNOTATION_DESCHEDULER_WAS_ENABLED: "true"}).descheduler_was_enabled


@given(st.text())
def test_no_value_makes_reading_fail(value: str) -> None:
    annotations = PlanAnnotations(
        dict.fromkeys(
            (keys.ANNOTATION_SKIP_WEBHOOK, keys.ANNOTATION_MIN_CERTS_DAYS, keys.ANNOTATION_TOOLKIT_IMAGE), value
        )
    )
    assert isinstance(annotations.skip_webhook, Flag)
    assert isinstance(annotations.min_certs_days, int | BadAnnotation)
    assert isinstance(annotations.toolkit_image, str | BadAnnotation)
