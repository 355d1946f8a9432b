"""Validating admission webhooks, called after all other stages and before the store."""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.apiserver.matching import EXEMPT, wants
from hack.apiserver.posting import Target
from hack.apiserver.status import StatusError, bad_request, internal
from hack.apiserver.stored import encode
from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from random import Random

    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.posting import Poster
    from hack.apiserver.route import Route
    from hack.apiserver.storage import Storage

CONFIGURATIONS = "validatingwebhookconfigurations.admissionregistration.k8s.io"
DEFAULT_TIMEOUT = 10
_OK = 200
_BAD_REQUEST = 400


class _CallFailedError(Exception):
    """The webhook gave no usable answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """Asks the webhooks of all ValidatingWebhookConfigurations, by name and in their order."""

    storage: Storage
    poster: Poster
    random: Random

    async def admit(
        self, route: Route, *, new: Object | None, old: Object | None, operation: Operation, options: WriteOptions
    ) -> None:
        """Return when nobody objects. Raises StatusError."""
        if route.row.resource.name in EXEMPT:
            return
        for configuration in self.storage.objects(CONFIGURATIONS):
            for webhook in configuration.get("webhooks") or ():
                if wants(webhook, route, operation=operation, new=new, old=old, storage=self.storage):
                    request = self._request(route, new, old, operation, options)
                    await self._ask(webhook, request, options)

    def _request(
        self, route: Route, new: Object | None, old: Object | None, operation: Operation, options: WriteOptions
    ) -> Object:
        resource = route.row.resource
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        target = {"group": resource.group, "version": resource.version, "resource": resource.plural}
        subject = new or old or {}
        request = {
            "uid": str(uuid.UUID(int=self.random.getrandbits(128), version=4)),
            "kind": kind,
            "resource": target,
            "requestKind": kind,
            "requestResource": target,
            "name": subject["metadata"]["name"],
            "operation": operation,
            "userInfo": _user_info(options),
            "object": new,
            "oldObject": old,
            "dryRun": options.dry_run,
            "options": {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"},
        }
        if route.namespace:
            request["namespace"] = route.namespace
        if route.subresource:
            request |= {"subResource": route.subresource, "requestSubResource": route.subresource}
        return request

    async def _ask(self, webhook: Object, request: Object, options: WriteOptions) -> None:
        name = webhook["name"]
        if options.dry_run and webhook.get("sideEffects") not in {"None", "NoneOnDryRun"}:
            raise bad_request(f'admission webhook "{name}" does not support dry run')
        try:
            answer = await self._call(webhook, request)
        except _CallFailedError as error:
            if webhook.get("failurePolicy", "Fail") == "Ignore":
                return
            raise internal(f'failed calling webhook "{name}": failed to call webhook: {error}') from error
        options.warnings.extend(answer.get("warnings") or ())
        if not answer.get("allowed"):
            raise _denied(name, answer.get("status") or {})

    async def _call(self, webhook: Object, request: Object) -> Object:
        timeout = webhook.get("timeoutSeconds", DEFAULT_TIMEOUT)
        target = _target(webhook["clientConfig"], timeout)
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        try:
            response = await self.poster.post(target, encode(review), timeout=float(timeout))
        except Transient as error:
            raise _CallFailedError(f'Post "{target.url or target.service_name}": {error}') from error
        if response.status != _OK:
            raise _CallFailedError(f"the server answered {response.status}")
        return _verdict(response.body, request["uid"])


def _verdict(body: bytes, uid: str) -> Object:
    try:
        review = json.loads(body)
        answer = review["response"]
        known = review["kind"] == "AdmissionReview" and review["apiVersion"] == "admission.k8s.io/v1"
    except (ValueError, KeyError, TypeError) as error:
        raise _CallFailedError("the answer is no AdmissionReview with a response") from error
    if not known or not isinstance(answer, dict):
        raise _CallFailedError("the answer is no admission.k8s.io/v1 AdmissionReview")
    if answer.get("uid") != uid:
        raise _CallFailedError(f'expected response.uid="{uid}"')
    return answer


def _denied(name: str, status: Object) -> StatusError:
    """The refusal, from what the webhook said; never a status below 400."""
    why = status.get("message") or status.get("reason") or "without explanation"
    return StatusError(
        code=max(int(status.get("code") or 0), _BAD_REQUEST),
        reason=status.get("reason", ""),
        message=f'admission webhook "{name}" denied the request: {why}',
        details=status.get("details"),
    )


def _target(config: Object, timeout: int) -> Target:
    bundle = base64.b64decode(config.get("caBundle") or "")
    if config.get("url"):
        return Target(url=f"{config['url']}?timeout={timeout}s", ca_bundle=bundle)
    service = config.get("service") or {}
    return Target(
        service_namespace=service.get("namespace", ""),
        service_name=service.get("name", ""),
        service_path=f"{service.get('path', '/')}?timeout={timeout}s",
        service_port=service.get("port", 443),
        ca_bundle=bundle,
    )


def _user_info(options: WriteOptions) -> dict[str, Any]:
    user = options.user
    info: dict[str, Any] = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
