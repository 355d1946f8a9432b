"""The verbs of the Kubernetes API on raw objects."""

from __future__ import annotations

import asyncio
import copy
import json
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from upgrade_manager.kube.decoder import Undecodable
from upgrade_manager.kube.errors import TIMED_OUT, Conflict, KubeError, NotFound, Terminal, Transient, WrittenObject
from upgrade_manager.kube.list_decoder import ListDecoder
from upgrade_manager.kube.objects import key, labels, metadata, resource_version
from upgrade_manager.kube.pager import ListOptions, ObjectList, Selection, list_all_pages
from upgrade_manager.kube.patch import encode
from upgrade_manager.kube.retry import RestClient
from upgrade_manager.kube.transport import Request, Response
from upgrade_manager.kube.watch import StreamWatcher
from upgrade_manager.kube.watch_list import WatchListSupport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
    from random import Random

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import Query
    from upgrade_manager.kube.patch import Patch
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.transport import Transport

_JSON = "application/json"
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_INITIAL_EVENTS = (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
#: Seconds for one attempt.
_TIMEOUT = 30.0
_LIST_TIMEOUT = 60.0
#: Bytes of a list that are decoded at once, in about a millisecond.
_PIECE = 1 << 16


def _same(obj: Object) -> Object:
    return obj


class Client:
    """Reads and writes objects of any resource; raises only errors of `kube.errors`, and retries as `retry` defines.

    Objects are the JSON that the server sent; the caller may keep and modify them. `field_validation` is Strict, Warn,
    Ignore, or "" for the server's default.
    """

    def __init__(self, transport: Transport, *, user_agent: str, random: Random, field_validation: str = "") -> None:
        self._rest = RestClient(transport, random=random)
        self._user_agent = user_agent
        #: Shared by all reflectors that use this client.
        self.watch_list_support = WatchListSupport()
        self._validation = (("fieldValidation", field_validation),) if field_validation else ()

    def without_retries(self) -> Self:
        """Return this client, but each request is sent once: for a write whose decision does not outlast a delay."""
        once = copy.copy(self)
        once._rest = self._rest.without_retries()  # noqa: SLF001  # of the copy
        return once

    async def get(self, resource: Resource, name: str, *, namespace: str = "", metadata_only: bool = False) -> Object:
        """Return one object. Raises NotFound."""
        accept = _PARTIAL if metadata_only else _JSON
        request = self._request("GET", resource.path(name, namespace=namespace), accept=accept)
        obj = await self._object(request, about=_about("get", resource, name, namespace))
        return resource.metadata_of(obj) if metadata_only else obj

    async def find(
        self, resource: Resource, name: str, *, namespace: str = "", metadata_only: bool = False
    ) -> Object | None:
        """Return one object; None if it, its kind or its namespace does not exist."""
        try:
            return await self.get(resource, name, namespace=namespace, metadata_only=metadata_only)
        except NotFound:
            return None

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        resource_version: str = "",
    ) -> ObjectList:
        """Return all selected objects, by default in their latest state."""
        selection = Selection(
            resource=resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )
        return await list_all_pages(partial(self.list_page, selection), resource_version=resource_version)

    async def list_page(
        self, selection: Selection, options: ListOptions, *, transform: Callable[[Object], Object] = _same
    ) -> ObjectList:
        """Return one page of a list; its objects are decoded and transformed as they arrive."""
        resource = selection.resource
        request = self._request(
            "GET",
            selection.path,
            query=selection.query() + options.query(),
            accept=_PARTIAL_LIST if selection.metadata_only else _JSON,
            timeout=_LIST_TIMEOUT,
        )
        about = _about("list", resource, "", selection.namespace)
        complete = resource.metadata_of if selection.metadata_only else resource.with_type_meta
        decoder = ListDecoder()
        items: list[Object] = []
        try:
            async with aclosing(self._pieces(request, about=about)) as pieces:
                async for piece in pieces:
                    items += [transform(complete(item)) for item in decoder.feed(piece)]
            page = decoder.finish()
        except Undecodable as error:
            raise Transient(f"{about}: {error}") from error
        return ObjectList(
            items=items,
            resource_version=resource_version(page),
            continue_token=metadata(page).get("continue") or "",
        )

    @asynccontextmanager
    async def watch(
        self,
        selection: Selection,
        *,
        resource_version: str,
        timeout: int,  # noqa: ASYNC109  # a parameter of the request
        initial_events: bool = False,
    ) -> AsyncIterator[StreamWatcher]:
        """Open a watch from that resourceVersion, which the server ends after `timeout` seconds.

        With initial_events it starts with all existing objects, not older than that version (watch_list.py).
        """
        options = (
            ("watch", "1"),
            *(_INITIAL_EVENTS if initial_events else ()),
            ("allowWatchBookmarks", "true"),
            *((("resourceVersion", resource_version),) if resource_version else ()),
            ("timeoutSeconds", str(timeout)),
        )
        request = self._request(
            "GET",
            selection.path,
            query=selection.query() + options,
            accept=_PARTIAL if selection.metadata_only else _JSON,
        )
        about = _about("list" if initial_events else "watch", selection.resource, "", selection.namespace)
        async with (
            self._rest.open(request, about=about) as stream,
            aclosing(StreamWatcher(stream, timeout=timeout)) as watcher,
        ):
            yield watcher

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        """Create an object; return it as stored. Raises AlreadyExists; Terminal for another 409, a webhook's."""
        own_namespace, name = key(obj)
        namespace = namespace or own_namespace
        request = self._write("POST", resource.path(namespace=namespace), query=self._validation, body=obj)
        with _writing("create", resource, name, namespace, labels=labels(obj)):
            try:
                return await self._object(request, about=_about("create", resource, name, namespace))
            except Conflict as error:
                # A creation has no precondition that could fail.
                raise Terminal(str(error), status=error.status, reason=error.reason, details=error.details) from error

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        metadata_only: bool = False,
    ) -> Object:
        """Patch an object; return it, or its metadata. Raises NotFound, and Conflict for another resourceVersion."""
        request = self._request(
            "PATCH",
            resource.path(name, namespace=namespace, subresource=subresource),
            query=self._validation,
            accept=_PARTIAL if metadata_only else _JSON,
            content_type=patch.content_type,
            body=patch.encode(),
        )
        with _writing("patch", resource, name, namespace):
            obj = await self._object(request, about=_about("patch", resource, name, namespace, subresource))
        return resource.metadata_of(obj) if metadata_only else obj

    async def update(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Replace an object. Raises Conflict if its resourceVersion differs from the given one."""
        namespace, name = key(obj)
        path = resource.path(name, namespace=namespace, subresource=subresource)
        request = self._write("PUT", path, query=self._validation, body=obj)
        with _writing("update", resource, name, namespace):
            return await self._object(request, about=_about("update", resource, name, namespace, subresource))

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str = "", propagation: str = "Background"
    ) -> None:
        """Delete an object. Raises NotFound, and Conflict if its uid differs from the given one."""
        options = _delete_options(propagation)
        if uid:
            options["preconditions"] = {"uid": uid}
        request = self._write("DELETE", resource.path(name, namespace=namespace), body=options)
        with _writing("delete", resource, name, namespace):
            await self._rest.send(request, about=_about("delete", resource, name, namespace))

    async def delete_collection(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", propagation: str = "Background"
    ) -> None:
        """Delete all selected objects."""
        selection = Selection(resource=resource, namespace=namespace, label_selector=label_selector)
        request = self._write("DELETE", selection.path, query=selection.query(), body=_delete_options(propagation))
        with _writing("delete", resource, "", namespace):
            await self._rest.send(request, about=_about("delete all", resource, "", namespace))

    async def served(self, group: str, version: str) -> frozenset[str]:
        """Return the plurals of the resources that the server serves in that version of the group; none without it."""
        path = f"/apis/{group}/{version}"
        try:
            found = await self._object(self._request("GET", path), about=f"get {path}")
        except NotFound:
            return frozenset()
        return frozenset(resource.get("name", "") for resource in found.get("resources") or [])

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Object | None = None,
        accept: str = _JSON,
        timeout: float = _TIMEOUT,  # noqa: ASYNC109  # of one attempt
    ) -> Response:
        """Send a request to any path, such as a node's proxy or an aggregated API; a body is sent as JSON."""
        about = f"{method.lower()} {path}"
        if body is None:
            request = self._request(method, path, query=query, accept=accept, timeout=timeout)
            return await self._rest.send(request, about=about)
        return await self._rest.send(self._write(method, path, query=query, body=body, timeout=timeout), about=about)

    async def read_path(
        self,
        path: str,
        *,
        limit: int,
        timeout: float = _TIMEOUT,  # noqa: ASYNC109  # until the response begins
    ) -> bytes:
        """Return the first `limit` bytes of a response; the caller limits the time for the whole response.

        The rest is read and discarded, so that the connection can be reused.
        """
        about = f"get {path}"
        head = bytearray()
        async with self._rest.open(self._request("GET", path, timeout=timeout), about=about) as stream:
            try:
                async for chunk in stream.chunks():
                    head += chunk[: limit - len(head)]
            except Transient as error:
                raise Transient(f"{about}: {error}", reason=error.reason) from error
        return bytes(head)

    def _write(self, method: str, path: str, *, body: Object, **options: Any) -> Request:
        return self._request(method, path, body=encode(body), content_type=_JSON, **options)

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        accept: str = _JSON,
        content_type: str = "",
        body: bytes = b"",
        timeout: float = _TIMEOUT,
    ) -> Request:
        headers = {"accept": accept, "user-agent": self._user_agent}
        if content_type:
            headers["content-type"] = content_type
        return Request(method=method, path=path, query=query, headers=headers, body=body, timeout=timeout)

    async def _pieces(self, request: Request, *, about: str) -> AsyncGenerator[bytes]:
        """Yield the body in pieces of limited size; the loop runs others in between."""
        async with self._rest.open(request, about=about) as stream:
            try:
                async with asyncio.timeout(request.timeout):
                    async for chunk in stream.chunks():
                        for start in range(0, len(chunk), _PIECE):
                            yield chunk[start : start + _PIECE]
                            await asyncio.sleep(0)
            except TimeoutError as error:
                message = f"{about}: the response did not end within {request.timeout:g} s"
                raise Transient(message, reason=TIMED_OUT) from error
            except Transient as error:
                raise Transient(f"{about}: {error}", reason=error.reason) from error

    async def _object(self, request: Request, *, about: str) -> Object:
        response = await self._rest.send(request, about=about)
        try:
            obj = json.loads(response.body)
        except (ValueError, RecursionError) as error:
            raise Transient(f"{about}: the response of {len(response.body)} bytes is not valid JSON") from error
        if not isinstance(obj, dict):
            raise Transient(f"{about}: the response is JSON, but not an object")
        return obj


@contextmanager
def _writing(
    verb: str, resource: Resource, name: str, namespace: str, *, labels: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Name the object in the errors of a write."""
    try:
        yield
    except KubeError as error:
        error.written = WrittenObject(
            kind=resource.kind, namespace=namespace, name=name, verb=verb, labels=labels or {}
        )
        raise


def _delete_options(propagation: str) -> Object:
    return {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}


def _about(verb: str, resource: Resource, name: str, namespace: str, subresource: str = "") -> str:
    path = "/".join(filter(None, (namespace, name)))
    return " ".join(filter(None, (verb, "/".join(filter(None, (resource.name, subresource))), path)))
