from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.field_error import (
    Fault,
    FieldError,
    aggregate,
    duplicate,
    forbidden,
    go_value,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)


@pytest.mark.parametrize(
    ("error", "text", "reason"),
    [
        pytest.param(required("a"), "a: Required value", "FieldValueRequired", id="required"),
        pytest.param(required("a", "say so"), "a: Required value: say so", "FieldValueRequired", id="with a reason"),
        pytest.param(invalid("a", "x", "no"), 'a: Invalid value: "x": no', "FieldValueInvalid", id="invalid"),
        pytest.param(forbidden("a", "no"), "a: Forbidden: no", "FieldValueForbidden", id="forbidden"),
        pytest.param(duplicate("a[1]", 3), "a[1]: Duplicate value: 3", "FieldValueDuplicate", id="duplicate"),
        pytest.param(
            not_supported("a", "x", ["y", 1]),
            'a: Unsupported value: "x": supported values: "y", "1"',
            "FieldValueNotSupported",
            id="not supported",
        ),
        pytest.param(too_long("a", 3), "a: Too long: may not be more than 3 bytes", "FieldValueTooLong", id="too long"),
        pytest.param(
            too_many("a", 4, 3), "a: Too many: 4: must have at most 3 items", "FieldValueTooMany", id="too many"
        ),
        pytest.param(
            type_invalid("a", "string", "no"),
            'a: Invalid value: "string": no',
            "FieldValueTypeInvalid",
            id="wrong type",
        ),
        pytest.param(
            invalid("", None, "no"), "<nil>: Invalid value: null: no", "FieldValueInvalid", id="the whole object"
        ),
        pytest.param(
            FieldError(fault=Fault.NOT_FOUND, field="a", value="x"),
            'a: Not found: "x"',
            "FieldValueNotFound",
            id="not found",
        ),
    ],
)
def test_what_is_said_of_a_fault(error: FieldError, text: str, reason: str) -> None:
    assert str(error) == text
    assert error.cause() == {"reason": reason, "message": text.partition(": ")[2], "field": text.partition(": ")[0]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("é\n", '"é\\n"', id="a string"),
        pytest.param(True, "true", id="a boolean"),
        pytest.param(2.0, "2", id="a whole float"),
        pytest.param(0.5, "0.5", id="a fraction"),
        pytest.param({"a": [1]}, '{"a":[1]}', id="an object"),
    ],
)
def test_values_are_shown_as_go_does(value: Any, text: str) -> None:
    assert go_value(value) == text


def test_several_findings_become_one_text_and_each_is_told_once() -> None:
    assert aggregate([required("a")]) == "a: Required value"
    assert aggregate([required("a"), required("b"), required("a")]) == "[a: Required value, b: Required value]"
