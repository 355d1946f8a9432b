"""Write requests over HTTP: body, options and response."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hack.apiserver import reviews
from hack.apiserver.admission import WriteOptions
from hack.apiserver.bodies import media_type, object_body
from hack.apiserver.deletion import DeleteOptions, delete_options, dry_run_errors
from hack.apiserver.list_options import list_options
from hack.apiserver.metadata import decoded
from hack.apiserver.patches import check_media_type, patched
from hack.apiserver.reading import view
from hack.apiserver.resources import REVIEW_VERBS
from hack.apiserver.route import Route
from hack.apiserver.schema.field_error import forbidden, not_supported
from hack.apiserver.schema.stages import shape
from hack.apiserver.status import (
    JSON_HEADERS,
    StatusError,
    invalid_options,
    warning_header,
)
from hack.apiserver.stored import encode
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from hack.apiserver.admission import Object
    from hack.apiserver.authentication import Authenticator
    from hack.apiserver.identity import User
    from hack.apiserver.stored import Stored
    from hack.apiserver.writes import Writer
    from upgrade_manager.kube.transport import Request

_NOT_FOUND = 404
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
#: The kind of a verb's options in error messages.
_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Handler of write requests."""

    writer: Writer
    authenticator: Authenticator
    now: Callable[[], datetime]

    async def respond(self, route: Route, request: Request, user: User) -> Response:
        """Handle a create, update, patch, delete or deletecollection. Raises StatusError."""
        options = write_options(route, request, user)
        if route.verb == "delete":
            return await self._delete(route, request, options)
        if route.verb == "deletecollection":
            return await self._delete_collection(route, request, options)
        if route.row.verbs == REVIEW_VERBS:
            return self._review(route, request, options)
        stored, created = await self._stored(route, request, options)
        body = view(route, request, self.now).one(stored)
        return Response(status=201 if created else 200, headers=_headers(options), body=body)

    async def _stored(self, route: Route, request: Request, options: WriteOptions) -> tuple[Stored, bool]:
        """Write, and return the state with whether it is new."""
        if route.verb == "patch":
            check_media_type(route.row, media_type(request))

            def apply(obj: Object) -> object:
                return patched(route.row, obj, media_type=media_type(request), body=request.body)

            return await self.writer.update(route, apply, options, whole=False), False
        body = object_body(request, route.row)
        if route.verb == "create":
            return await self.writer.create(route, body, options), True
        return await self.writer.update(route, lambda _: body, options, whole=True), False

    def _review(self, route: Route, request: Request, options: WriteOptions) -> Response:
        review = shape(route.row, decoded(object_body(request, route.row), route), None, "CREATE", options)
        store, tokens = self.writer.storage, self.authenticator
        reviewed = reviews.reviewed(route.row, review, user=options.user, authenticator=tokens, store=store)
        head = {"kind": route.row.resource.kind, "apiVersion": route.row.resource.api_version}
        return Response(status=201, headers=_headers(options), body=encode(head | reviewed))

    async def _delete(self, route: Route, request: Request, options: WriteOptions) -> Response:
        delete = delete_options(request, route.row)
        if delete.dry_run:
            options = replace(options, dry_run=True)
        outcome = await self.writer.delete(route, delete, options)
        if not outcome.removed or route.row.graceful:
            body = view(route, request, self.now).one(outcome.stored)
            return Response(status=200, headers=_headers(options), body=body)
        resource = route.row.resource
        details = {"name": route.name, "group": resource.group, "kind": resource.plural}
        details["uid"] = outcome.stored.object["metadata"]["uid"]
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {key: value for key, value in details.items() if value},
        }
        return Response(status=200, headers=_headers(options), body=encode(status))

    async def _delete_collection(self, route: Route, request: Request, options: WriteOptions) -> Response:
        selector = list_options(request, route.row).selector
        delete = delete_options(request, route.row)
        if delete.dry_run:
            options = replace(options, dry_run=True)
        collection = self.writer.storage.collection(route.row.storage)
        chosen = [state for state in collection.states(route.namespace) if selector.matches(state.object)]
        limit = dict(request.query).get("limit", "")
        chosen = chosen[: int(limit)] if limit.isdigit() and int(limit) else chosen
        for state in chosen:
            await self._delete_member(route, state, delete, options)
        metadata = {"resourceVersion": str(self.writer.storage.revision)}
        body = view(route, request, self.now).listing(chosen, metadata)
        return Response(status=200, headers=_headers(options), body=body)

    async def _delete_member(self, route: Route, state: Stored, delete: DeleteOptions, options: WriteOptions) -> None:
        member = Route(row=route.row, verb="delete", namespace=state.namespace, name=state.name)
        try:
            await self.writer.delete(member, delete, options)
        except StatusError as error:
            if error.code != _NOT_FOUND:
                raise


def write_options(route: Route, request: Request, user: User) -> WriteOptions:
    """Parse the options of a write. Raises StatusError 422."""
    query = dict(request.query)
    dry_run = [value for key, value in request.query if key == "dryRun" and value]
    validation = query.get("fieldValidation", "") if route.verb in _OPTIONS else ""
    errors = list(dry_run_errors(dry_run))
    if route.verb == "patch" and query.get("force"):
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    if validation not in _VALIDATIONS:
        errors.append(not_supported("fieldValidation", validation, _VALIDATIONS))
    if errors:
        raise invalid_options(_OPTIONS.get(route.verb, "DeleteOptions"), errors)
    return WriteOptions(
        user=user,
        subresource=route.subresource,
        dry_run=bool(dry_run),
        field_validation=validation,
        patch=route.verb == "patch",
    )


def _headers(options: WriteOptions) -> dict[str, str]:
    return JSON_HEADERS | warning_header(options.warnings)
