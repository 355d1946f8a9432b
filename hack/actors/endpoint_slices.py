"""The endpoint slice controller: each Service with a selector gets one EndpointSlice of its Pods."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from hack.actors.controller import NamespacedController
from hack.actors.kinds import controller_reference
from hack.actors.pod_status import is_over, is_ready
from upgrade_manager.api.keys import LABEL_SERVICE_NAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import ENDPOINT_SLICES, PODS, SERVICES

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLER = "endpointslice-controller.k8s.io"


class EndpointSliceController(NamespacedController):
    """Reconciles all namespaces; not started where a real kube-controller-manager runs."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, SERVICES, user_agent="endpointslice-controller", loop="endpoint slices")
        self._pods = context.caches.of(PODS)
        self._slices = context.caches.of(ENDPOINT_SLICES)
        self._pods.subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        for service in self._cache.store.list():
            if objects.namespace(service) == objects.namespace(change.obj) and _selects(service, change.obj):
                self._loop.add(objects.key(service))

    async def _reconcile(self, key: Key) -> RequeueAfter:
        service = self._cached(key)
        if service is None or objects.is_deleting(service) or not objects.spec(service).get("selector"):
            return None
        wanted = self._slice_of(service)
        existing = self._slices.store.get(objects.name(wanted), key[0])
        if existing is None:
            written = await self._client.create(ENDPOINT_SLICES, wanted)
        elif (changed := _changed(existing, wanted)) != existing:
            try:
                written = await self._client.update(ENDPOINT_SLICES, changed)
            except NotFound:
                return 0.0
        else:
            return None
        await self._slices.seen(written)
        return None

    def _slice_of(self, service: Object) -> Object:
        name, namespace = objects.name(service), objects.namespace(service)
        suffix = hashlib.sha256(objects.uid(service).encode()).hexdigest()[:5]
        owner = controller_reference(SERVICES, service)
        behind = [pod for pod in self._pods.store.list() if objects.namespace(pod) == namespace]
        behind = [pod for pod in behind if _selects(service, pod) and _has_address(pod)]
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{name}-{suffix}",
                "namespace": namespace,
                "labels": {**objects.labels(service), LABEL_SERVICE_NAME: name, _MANAGED_BY: _CONTROLLER},
                "ownerReferences": [owner],
            },
            "addressType": "IPv4",
            "endpoints": [_endpoint_of(pod) for pod in behind],
            "ports": [_port(port) for port in objects.spec(service).get("ports") or ()],
        }


def _changed(existing: Object, wanted: Object) -> Object:
    metadata = {**objects.metadata(existing), "labels": objects.labels(wanted)}
    return {**existing, "metadata": metadata, "endpoints": wanted["endpoints"], "ports": wanted["ports"]}


def _selects(service: Object, pod: Object) -> bool:
    selector = objects.spec(service).get("selector") or {}
    labels = objects.labels(pod)
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def _has_address(pod: Object) -> bool:
    return bool(objects.status(pod).get("podIP")) and not is_over(pod)


def _endpoint_of(pod: Object) -> Object:
    leaving = objects.is_deleting(pod)
    return {
        "addresses": [objects.status(pod)["podIP"]],
        "conditions": {"ready": is_ready(pod) and not leaving, "serving": is_ready(pod), "terminating": leaving},
        "nodeName": objects.spec(pod).get("nodeName") or "",
        "targetRef": {
            "kind": "Pod",
            "namespace": objects.namespace(pod),
            "name": objects.name(pod),
            "uid": objects.uid(pod),
        },
    }


def _port(port: Object) -> Object:
    target = port.get("targetPort", port.get("port"))
    return {
        "name": port.get("name") or "",
        "port": target if isinstance(target, int) else port.get("port"),
        "protocol": port.get("protocol") or "TCP",
    }
