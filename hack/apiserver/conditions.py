"""The matchConditions of webhooks: CEL over the request and its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.expression import ExpressionError, evaluate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.apiserver.admission import Object


class Unjudged(Exception):  # it is no error of the server
    """No condition says no, and one of them has no value for this request."""


def all_hold(conditions: Sequence[Object], request: Object) -> bool:
    """Whether all conditions hold; one that does not outweighs others that have no value. Raises Unjudged."""
    variables: dict[str, Any] = {
        "request": request,
        "object": request["object"],
        "oldObject": request["oldObject"],
    }
    faults = []
    for condition in conditions:
        source = condition["expression"]
        try:
            if not evaluate(source, variables):
                return False
        except ExpressionError as error:
            faults.append(f"expression '{source}' resulted in error: {error}")
    if faults:
        raise Unjudged(", ".join(faults))
    return True
