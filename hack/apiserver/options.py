"""Validation errors of request options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.schema.field_error import not_supported
from hack.apiserver.status import invalid
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from hack.apiserver.schema.field_error import FieldError
    from hack.apiserver.status import StatusError


def invalid_options(kind: str, errors: list[FieldError]) -> StatusError:
    """Return the error for invalid options of a kind."""
    return invalid(Resource(group="meta.k8s.io", version="v1", plural="options", kind=kind), "", errors)


def dry_run_errors(given: list[str]) -> list[FieldError]:
    """Return errors of a dryRun parameter."""
    return [not_supported("dryRun", given, ("All",))] if any(value != "All" for value in given) else []
