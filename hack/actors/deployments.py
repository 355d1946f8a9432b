"""The deployment controller: creates the Pods of a Deployment, without a ReplicaSet, and reports the available ones."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from hack.actors.caches import BY_OWNER
from hack.actors.conditions import TRANSITION, with_condition
from hack.actors.controller import NamespacedController
from hack.actors.kinds import controller_reference
from hack.actors.pod_status import is_over, is_ready
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch, merge_diff
from upgrade_manager.kube.resources import DEPLOYMENTS, PODS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller import Key
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

_HASH_LABEL = "pod-template-hash"


class DeploymentController(NamespacedController):
    """Reconciles all namespaces; not started where a real kube-controller-manager runs."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, DEPLOYMENTS, user_agent="deployment-controller", loop="deployments")
        self._pods = context.caches.of(PODS)
        self._pods.subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        for owner in objects.metadata(change.obj).get("ownerReferences") or ():
            if owner.get("kind") == "Deployment":
                self._loop.add((objects.namespace(change.obj), owner["name"]))

    async def _reconcile(self, key: Key) -> RequeueAfter:
        deployment = self._cached(key)
        if deployment is None or objects.is_deleting(deployment):
            return None
        pods = self._pods.by_index(BY_OWNER, objects.uid(deployment))
        alive = [pod for pod in pods if not objects.is_deleting(pod) and not is_over(pod)]
        wanted = int(objects.spec(deployment).get("replicas", 1))
        digest = _template_hash(deployment)
        current = [pod for pod in alive if objects.labels(pod).get(_HASH_LABEL) == digest]
        for pod in [pod for pod in alive if pod not in current] + current[wanted:]:
            await self._client.delete(PODS, objects.name(pod), namespace=objects.namespace(pod))
        for _ in range(wanted - len(current)):
            pod = await self._client.create(PODS, _pod_of(deployment, digest))
            await self._pods.seen(pod)
        await self._report(deployment, current[:wanted], wanted)
        return None

    async def _report(self, deployment: Object, pods: list[Object], wanted: int) -> None:
        status = self._status(deployment, pods, wanted)
        difference = merge_diff(objects.status(deployment), status)
        if not difference:
            return
        patch = MergePatch({"status": difference}).at(objects.resource_version(deployment))
        await self._cache.patch(self._client, deployment, patch)

    def _status(self, deployment: Object, pods: list[Object], wanted: int) -> Object:
        up, at = sum(1 for pod in pods if is_ready(pod)), self._context.timestamp()
        numbers = {
            "replicas": len(pods),
            "updatedReplicas": len(pods),
            "readyReplicas": up,
            "availableReplicas": up,
            "unavailableReplicas": wanted - up,
        }
        conditions = objects.status(deployment).get("conditions") or []
        enough = up >= max(1, wanted - max(1, wanted // 4)) if wanted else True
        state = ("True", "MinimumReplicasAvailable") if enough else ("False", "MinimumReplicasUnavailable")
        conditions = with_condition(conditions, "Available", state[0], reason=state[1], at=at, time=TRANSITION)
        progress = "NewReplicaSetAvailable" if up >= wanted else "ReplicaSetUpdated"
        conditions = with_condition(conditions, "Progressing", "True", reason=progress, at=at, time=TRANSITION)
        return {
            "observedGeneration": objects.metadata(deployment).get("generation") or 1,
            "conditions": conditions,
            **{key: value for key, value in numbers.items() if value},
        }


def _template_hash(deployment: Object) -> str:
    template = json.dumps(objects.spec(deployment).get("template"), sort_keys=True)
    return hashlib.sha256(template.encode()).hexdigest()[:10]


def _pod_of(deployment: Object, digest: str) -> Object:
    template = objects.spec(deployment).get("template") or {}
    owner = controller_reference(DEPLOYMENTS, deployment)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{objects.name(deployment)[:46]}-{digest}-",
            "namespace": objects.namespace(deployment),
            "labels": {**objects.labels(template), _HASH_LABEL: digest},
            "annotations": objects.annotations_of(template),
            "ownerReferences": [owner],
        },
        "spec": {"restartPolicy": "Always", **objects.spec(template)},
        "status": {"phase": "Pending"},
    }
