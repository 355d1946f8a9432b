"""The verbs of the Kubernetes API on raw objects, for everything above the wire."""

from __future__ import annotations

import json
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.objects import key, metadata, name, namespace, resource_version
from upgrade_manager.kube.pager import Listing, Page, PageQuery, Selection, read_pages
from upgrade_manager.kube.retry import Rest
from upgrade_manager.kube.transport import Request, Response
from upgrade_manager.kube.watch import IDLE_TIMEOUT, Watch, deadline_of
from upgrade_manager.kube.watch_list import WatchLists

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.patch import Patch
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.transport import Transport

    Query: TypeAlias = tuple[tuple[str, str], ...]

_JSON = "application/json"
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_INITIAL_EVENTS = (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
#: Seconds for a list, which may be long.
_LIST_TIMEOUT = 60.0
_TIMEOUT = 30.0


class Client:
    """Reads and writes objects of any kind; raises kube.errors only, repeats what may be repeated (rest.py).

    Objects are the JSON that the server sent, as dictionaries of their own that the caller may keep and change.
    `field_validation` is Strict, Warn or Ignore; nothing leaves it to the server.
    """

    def __init__(self, transport: Transport, *, user_agent: str, random: Random, field_validation: str = "") -> None:
        self._rest = Rest(transport, random=random)
        self._user_agent = user_agent
        #: What is known of the server, for all reflectors that read from it.
        self.watch_lists = WatchLists()
        self._validation = (("fieldValidation", field_validation),) if field_validation else ()

    async def get(self, resource: Resource, name: str, *, namespace: str = "", metadata_only: bool = False) -> Object:
        """One object as it is now. Raises NotFound."""
        request = self._request(
            "GET", resource.path(name, namespace=namespace), accept=_PARTIAL if metadata_only else _JSON
        )
        obj = await self._object(request, about=_about("get", resource, name, namespace))
        return resource.metadata_of(obj) if metadata_only else obj

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        resource_version: str = "",
    ) -> Listing:
        """All objects of a selection, read in pages; by default their newest state."""
        selection = Selection(
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )
        return await read_pages(partial(self.list_page, resource, selection), resource_version=resource_version)

    async def list_page(self, resource: Resource, selection: Selection, query: PageQuery) -> Page:
        """One page of a list, for `read_pages` and whoever has rules of his own."""
        request = self._request(
            "GET",
            resource.path(namespace=selection.namespace),
            query=selection.query() + query.query(),
            accept=_PARTIAL_LIST if selection.metadata_only else _JSON,
            timeout=_LIST_TIMEOUT,
        )
        about = _about("list", resource, "", selection.namespace)
        answer = await self._object(request, about=about)
        items = answer.get("items")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise Transient(f"{about}: the answer, a {answer.get('kind')}, is no list of objects")
        complete = resource.metadata_of if selection.metadata_only else resource.with_type_meta
        return Page(
            items=[complete(item) for item in items],
            resource_version=resource_version(answer),
            continue_token=metadata(answer).get("continue") or "",
        )

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        selection: Selection,
        *,
        resource_version: str,
        timeout: int,  # noqa: ASYNC109  # asked of the server
        initial_events: bool = False,
    ) -> AsyncIterator[Watch]:
        """An open watch from that resourceVersion on, which the server ends after `timeout` seconds.

        With initial_events it first brings whatever exists, not older than that version (watchlist.py).
        Objects of a metadata_only watch are as the server sent them: pass them through `Resource.metadata_of`.
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
            resource.path(namespace=selection.namespace),
            query=selection.query() + options,
            accept=_PARTIAL if selection.metadata_only else _JSON,
        )
        about = _about("list" if initial_events else "watch", resource, "", selection.namespace)
        async with self._rest.open(request, about=about) as stream:
            watch = Watch(stream, idle_timeout=IDLE_TIMEOUT, deadline=deadline_of(timeout))
            async with aclosing(watch):
                yield watch

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        """The object as stored. Raises AlreadyExists."""
        place, called = key(obj)
        place = namespace or place
        request = self._write("POST", resource.path(namespace=place), query=self._validation, body=obj)
        return await self._object(request, about=_about("create", resource, called, place))

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
        """The object, or its metadata, after the patch.

        Raises NotFound, and Conflict when the patch names another resourceVersion.
        """
        request = self._request(
            "PATCH",
            resource.path(name, namespace=namespace, subresource=subresource),
            query=self._validation,
            accept=_PARTIAL if metadata_only else _JSON,
            content_type=patch.content_type,
            body=patch.encode(),
        )
        obj = await self._object(request, about=_about("patch", resource, name, namespace, subresource))
        return resource.metadata_of(obj) if metadata_only else obj

    async def update(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object by this one; its resourceVersion, where it has one, guards against lost updates."""
        called, place = name(obj), namespace(obj)
        path = resource.path(called, namespace=place, subresource=subresource)
        request = self._write("PUT", path, query=self._validation, body=obj)
        return await self._object(request, about=_about("update", resource, called, place, subresource))

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        propagation: str = "Background",
    ) -> None:
        """Ask for deletion; with a uid of that very object, else Conflict. Raises NotFound when it is gone."""
        options = _delete_options(propagation)
        if uid:
            options["preconditions"] = {"uid": uid}
        request = self._write("DELETE", resource.path(name, namespace=namespace), body=options)
        await self._rest.send(request, about=_about("delete", resource, name, namespace))

    async def delete_collection(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", propagation: str = "Background"
    ) -> None:
        """Ask for deletion of everything selected."""
        selection = Selection(namespace=namespace, label_selector=label_selector)
        request = self._write(
            "DELETE",
            resource.path(namespace=namespace),
            query=selection.query(),
            body=_delete_options(propagation),
        )
        await self._rest.send(request, about=_about("delete all", resource, "", namespace))

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Object | None = None,
        timeout: float = _TIMEOUT,  # noqa: ASYNC109  # of one attempt
    ) -> Response:
        """Send a request to any path, such as a node's proxy or an aggregated API; a body is sent as JSON."""
        about = f"{method.lower()} {path}"
        if body is None:
            return await self._rest.send(self._request(method, path, query=query, timeout=timeout), about=about)
        return await self._rest.send(self._write(method, path, query=query, body=body, timeout=timeout), about=about)

    async def read_path(
        self,
        path: str,
        *,
        limit: int,
        timeout: float = _TIMEOUT,  # noqa: ASYNC109  # until the answer begins
    ) -> bytes:
        """The first `limit` bytes of what any other path answers, for answers that may be of any length.

        The rest is read and dropped, which keeps the connection. The caller limits the time for all of it.
        """
        request = self._request("GET", path, timeout=timeout)
        about = f"get {path}"
        head = bytearray()
        async with self._rest.open(request, about=about) as stream:
            try:
                async for chunk in stream.chunks():
                    head += chunk[: limit - len(head)]
            except Transient as error:
                raise Transient(f"{about}: {error}", reason=error.reason) from error
        return bytes(head)

    def _write(self, method: str, path: str, *, body: Object, **options: Any) -> Request:
        encoded = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        return self._request(method, path, body=encoded, content_type=_JSON, **options)

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
        return Request(
            method=method,
            path=path,
            query=query,
            headers=headers,
            body=body,
            timeout=timeout,
            idle_timeout=IDLE_TIMEOUT,
        )

    async def _object(self, request: Request, *, about: str) -> Object:
        response = await self._rest.send(request, about=about)
        try:
            answer = json.loads(response.body)
        except (ValueError, RecursionError) as error:
            raise Transient(f"{about}: the answer of {len(response.body)} bytes is no JSON that can be read") from error
        if not isinstance(answer, dict):
            raise Transient(f"{about}: the answer is JSON, but no object")
        return answer


def _delete_options(propagation: str) -> Object:
    return {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}


def _about(verb: str, resource: Resource, called: str, place: str, subresource: str = "") -> str:
    what = f"{verb} {resource.name}{'/' + subresource if subresource else ''}"
    where = f"{place}/{called}" if place and called else place or called
    return f"{what} {where}" if where else what
