"""The options of requests, whatever their kind: what is wrong with them, and how that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.schema.field_error import not_supported
from hack.apiserver.status import invalid
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from hack.apiserver.schema.field_error import FieldError
    from hack.apiserver.status import StatusError


def invalid_options(kind: str, faults: list[FieldError]) -> StatusError:
    """The options of a request, by their kind, make no sense."""
    return invalid(Resource(group="meta.k8s.io", version="v1", plural="options", kind=kind), "", faults)


def dry_run_faults(given: list[str]) -> list[FieldError]:
    """Findings about a dryRun parameter."""
    return [not_supported("dryRun", given, ("All",))] if any(value != "All" for value in given) else []
