from __future__ import annotations

import pytest

from tests.support.cluster.cluster_reader import MemoryReader
from tests.support.managers.toolkit_config import TOOLKIT
from upgrade_manager.api import keys
from webhook.check import CheckResult, Outcome, Subject
from webhook.checks.plan_annotations import CHECK
from webhook.runner import run_checks

DISK, DAYS = keys.ANNOTATION_SKIP_DISK_CHECK, keys.ANNOTATION_MIN_CERTS_DAYS


async def check(**annotations: str) -> CheckResult:
    plan = {"metadata": {"annotations": annotations}, "spec": {"version": "v1.8.0"}}
    [result] = await run_checks([CHECK], Subject.of(plan, cluster=MemoryReader({}), toolkit=TOOLKIT))
    return result


@pytest.mark.rule("admission: an invalid value of an annotation is denied, with the annotation as field")
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        pytest.param(DISK, "yes", 'is \'yes\'. Set it to "true" or "false"', id="disk"),
        pytest.param(DAYS, "0", "is '0'. Set it to a whole number of days greater than 0", id="days"),
        *(
            pytest.param(key, "True", 'is \'True\'. Set it to "true" or "false"', id=key.rpartition("/")[2])
            for key in (
                keys.ANNOTATION_SKIP_WEBHOOK,
                keys.ANNOTATION_SKIP_DETACHED_VOLUMES,
                keys.ANNOTATION_ALLOW_DELETION,
            )
        ),
    ],
)
async def test_invalid_value_is_denied(key: str, value: str, message: str) -> None:
    result = await check(**{key: value, "example.com/note": value})
    assert [(one.field, one.message) for one in result.findings] == [
        (f"metadata.annotations[{key}]", f"Annotation {key} {message}")
    ]


@pytest.mark.rule("admission: an unknown annotation is a warning that names the nearest known key")
async def test_unknown_key_is_a_warning() -> None:
    result = await check(**{f"{keys.PREFIX}/skip-webhok": "true"})
    assert (result.outcome, result.findings) == (Outcome.WARNING, ())
    [warning] = result.warnings
    assert warning == (
        f"Annotation {keys.PREFIX}/skip-webhok is unknown and ignored. The nearest known annotation is "
        f"{keys.ANNOTATION_SKIP_WEBHOOK}"
    )


async def test_valid_values_pass() -> None:
    result = await check(**{DISK: "True", DAYS: "30", keys.ANNOTATION_SKIP_WEBHOOK: "false"})
    assert (result.outcome, result.findings, result.warnings) == (Outcome.PASSED, (), ())
