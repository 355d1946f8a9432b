"""The HTTP half of writes: which body, which options, which answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.apiserver import protobuf, reviews
from hack.apiserver.admission import WriteOptions
from hack.apiserver.deletion import DeleteOptions, delete_options
from hack.apiserver.listoptions import list_options
from hack.apiserver.patches import parsed, patched
from hack.apiserver.reading import view
from hack.apiserver.resources import REVIEW_VERBS
from hack.apiserver.route import Route
from hack.apiserver.status import JSON_HEADERS, StatusError, bad_request, unsupported_media_type
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

JSON = "application/json"
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Answers writing requests."""

    writer: Writer
    authenticator: Authenticator
    now: Callable[[], datetime]

    async def respond(self, route: Route, request: Request, user: User) -> Response:
        """Answer a create, update, patch, delete or deletecollection. Raises StatusError."""
        options = write_options(route, request, user)
        if route.verb == "delete":
            return await self._delete(route, request, options)
        if route.verb == "deletecollection":
            return await self._delete_collection(route, request, options)
        if route.row.verbs == REVIEW_VERBS:
            return self._review(route, request, user)
        stored = await self._stored(route, request, options)
        body = view(route, request, self.now).one(stored)
        status = 201 if route.verb == "create" else 200
        return Response(status=status, headers=_headers(options), body=body)

    async def _stored(self, route: Route, request: Request, options: WriteOptions) -> Stored:
        if route.verb == "patch":

            def apply(obj: Object) -> object:
                return patched(route.row, obj, media_type=_media_type(request), body=request.body)

            return await self.writer.update(route, apply, options, whole=False)
        body = json_body(request)
        if route.verb == "create":
            return await self.writer.create(route, body, options)
        return await self.writer.update(route, lambda _: body, options, whole=True)

    def _review(self, route: Route, request: Request, user: User) -> Response:
        review = json_body(request)
        try:
            answer = reviews.answer(
                route.row,
                review,
                namespace=route.namespace,
                user=user,
                authenticator=self.authenticator,
                store=self.writer.storage,
            )
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            # A review is judged without a decoder that checks the types of its fields first.
            kind = route.row.resource.kind
            raise bad_request(f"{kind} cannot be handled as a {kind}: json: cannot unmarshal: {error}") from error
        head = {"kind": route.row.resource.kind, "apiVersion": route.row.resource.api_version}
        return Response(status=201, headers=JSON_HEADERS, body=encode(head | answer))

    async def _delete(self, route: Route, request: Request, options: WriteOptions) -> Response:
        outcome = await self.writer.delete(route, delete_options(request), options)
        if not outcome.gone:
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
        wanted = delete_options(request)
        collection = self.writer.storage.collection(route.row.storage)
        chosen = [state for state in collection.states(route.namespace) if selector.matches(state.object)]
        for state in chosen:
            await self._delete_member(route, state, wanted, options)
        metadata = {"resourceVersion": str(self.writer.storage.revision)}
        body = view(route, request, self.now).listing(chosen, metadata)
        return Response(status=200, headers=_headers(options), body=body)

    async def _delete_member(self, route: Route, state: Stored, wanted: DeleteOptions, options: WriteOptions) -> None:
        member = Route(row=route.row, verb="delete", namespace=state.namespace, name=state.name)
        try:
            await self.writer.delete(member, wanted, options)
        except StatusError as error:
            if error.code != _NOT_FOUND:
                raise


def write_options(route: Route, request: Request, user: User) -> WriteOptions:
    """The options of a write. Raises StatusError 400."""
    dry_run = [value for key, value in request.query if key == "dryRun" and value]
    if any(value != "All" for value in dry_run):
        raise bad_request(f'Invalid value: "{dry_run[0]}": dryRun: Unsupported value: supported values: "All"')
    validation = dict(request.query).get("fieldValidation", "")
    if validation not in {"", "Ignore", "Warn", "Strict"}:
        raise bad_request(
            f'fieldValidation: Unsupported value: "{validation}": supported values: "Ignore", "Strict", "Warn"'
        )
    return WriteOptions(
        user=user,
        subresource=route.subresource,
        dry_run=bool(dry_run),
        field_validation=validation,
        patch=route.verb == "patch",
    )


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", JSON).partition(";")[0].strip()


def json_body(request: Request) -> Object:
    """The object in a body, in JSON or in what kubectl sends of protobuf. Raises StatusError 400 or 415."""
    media_type = _media_type(request)
    if media_type == protobuf.MEDIA_TYPE:
        return protobuf.decode(request.body)
    if media_type != JSON:
        raise unsupported_media_type(media_type, (JSON,))
    body = parsed(request.body)
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    return body


def _headers(options: WriteOptions) -> dict[str, str]:
    if not options.warnings:
        return JSON_HEADERS
    texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in options.warnings]
    return JSON_HEADERS | {"warning": ", ".join(f'299 - "{text}"' for text in texts)}
