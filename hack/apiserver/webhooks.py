"""Admission webhooks: mutating ones after defaulting, validating ones after all other stages and before the store."""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.apiserver.expression import ExpressionError, evaluate
from hack.apiserver.matching import EXEMPT, matches
from hack.apiserver.patches import JSON_PATCH, patched
from hack.apiserver.posting import Target
from hack.apiserver.reviews import user_info
from hack.apiserver.status import StatusError, forbidden, internal, warning_header
from hack.apiserver.stored import encode
from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.posting import Poster
    from hack.apiserver.route import Route
    from hack.apiserver.storage import Storage

VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
DEFAULT_TIMEOUT = 10
_OK = 200
_BAD_REQUEST = 400
#: The beginning of the message, without a response and with an invalid one.
_CALL, _ANSWER = "failed to call webhook", "received invalid webhook response"
_REVIEW = ("AdmissionReview", "admission.k8s.io/v1")


class _CallFailedError(Exception):
    """The webhook returned no valid response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """Calls the webhooks of all configurations, sorted by name."""

    storage: Storage
    poster: Poster
    random: Random

    async def mutate(
        self,
        route: Route,
        *,
        new: Object,
        old: Object | None,
        operation: Operation,
        options: WriteOptions,
        default: Callable[[Object], Object],
    ) -> Object:
        """Return the object as the mutating webhooks patch it, one after the other. Raises StatusError."""
        for webhook in self._webhooks(MUTATING, route):
            if matches(webhook, route, operation=operation, new=new, old=old, storage=self.storage):
                request = self._request(route, new, old, operation, options)
                if _meets_conditions(webhook, request, route):
                    response = await self._call_webhook(webhook, request, options, mutating=True)
                    if response.get("patch"):
                        new = default(_patched(route, new, response["patch"]))
        return new

    async def admit(
        self, route: Route, *, new: Object | None, old: Object | None, operation: Operation, options: WriteOptions
    ) -> None:
        """Return when all validating webhooks allow the request. Raises StatusError."""
        for webhook in self._webhooks(VALIDATING, route):
            if matches(webhook, route, operation=operation, new=new, old=old, storage=self.storage):
                request = self._request(route, new, old, operation, options)
                if _meets_conditions(webhook, request, route):
                    await self._call_webhook(webhook, request, options)

    def _webhooks(self, kind: str, route: Route) -> Iterator[Object]:
        if route.row.resource.name not in EXEMPT:
            for configuration in self.storage.objects(kind):
                yield from configuration.get("webhooks") or ()

    def _request(
        self, route: Route, new: Object | None, old: Object | None, operation: Operation, options: WriteOptions
    ) -> Object:
        resource = route.row.resource
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        target = {"group": resource.group, "version": resource.version, "resource": resource.plural}
        subject = new or old or {}
        request: Object = {
            "uid": str(uuid.UUID(int=self.random.getrandbits(128), version=4)),
            "kind": kind,
            "resource": target,
            "requestKind": kind,
            "requestResource": target,
            # The mutating webhooks see a new object before its name is generated.
            "name": subject["metadata"].get("name") or route.name,
            "operation": operation,
            "userInfo": user_info(options.user),
            "object": new,
            "oldObject": old,
            "dryRun": options.dry_run,
            "options": {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"},
        }
        if options.dry_run:
            request["options"] |= {"dryRun": ["All"]}
        if route.namespace:
            request["namespace"] = route.namespace
        if route.subresource:
            request |= {"subResource": route.subresource, "requestSubResource": route.subresource}
        return request

    async def _call_webhook(
        self, webhook: Object, request: Object, options: WriteOptions, *, mutating: bool = False
    ) -> Object:
        """Return the response; an empty one for a failure that is ignored. Raises StatusError."""
        name = webhook["name"]
        try:
            response = await self._call(webhook, request, mutating=mutating)
        except _CallFailedError as error:
            if webhook.get("failurePolicy", "Fail") == "Ignore":
                return {}
            raise internal(f'failed calling webhook "{name}": {error}') from error
        options.warnings.extend(response.get("warnings") or ())
        if not response.get("allowed"):
            raise _denied(name, response.get("status") or {}, options.warnings)
        return response

    async def _call(self, webhook: Object, request: Object, *, mutating: bool) -> Object:
        timeout = webhook.get("timeoutSeconds", DEFAULT_TIMEOUT)
        target = _target(webhook["clientConfig"], timeout)
        review = {"kind": _REVIEW[0], "apiVersion": _REVIEW[1], "request": request}
        try:
            response = await self.poster.post(target, encode(review), timeout=float(timeout))
        except Transient as error:
            raise _CallFailedError(f'{_CALL}: Post "{target.shown}": {error}') from error
        if response.status != _OK:
            text = json.dumps(response.body.decode(errors="replace"))
            raise _CallFailedError(
                f"{_CALL}: an error on the server ({text}) has prevented the request from succeeding"
            )
        return _verdict(response.body, request["uid"], mutating=mutating)


def _meets_conditions(webhook: Object, request: Object, route: Route) -> bool:
    """Evaluate the matchConditions; an error counts only if no condition is false. Raises StatusError 403."""
    variables = {"object": request["object"], "oldObject": request["oldObject"], "request": request}
    failure: ExpressionError | None = None
    for condition in webhook.get("matchConditions") or ():
        try:
            if evaluate(condition["expression"], variables) is not True:
                return False
        except ExpressionError as error:
            failure = error
    if failure is None or webhook.get("failurePolicy", "Fail") == "Ignore":
        return failure is None
    raise forbidden(route.row.resource, request["name"], str(failure))


def _verdict(body: bytes, uid: str, *, mutating: bool) -> Object:
    """Return a review's response, with a JSON patch from a mutating webhook only. Raises _CallFailedError."""
    try:
        review = json.loads(body)
        response: Object = review["response"]
        fits = (review["kind"], review["apiVersion"], response["uid"]) == (*_REVIEW, uid)
        patch, kind = response.get("patch"), response.get("patchType")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _CallFailedError(f"{_ANSWER}: {error!r} in {body!r}") from error
    if not fits or (kind != "JSONPatch" if patch else kind) or (patch and not mutating):
        raise _CallFailedError(f"{_ANSWER}: {body!r}")
    return response


def _patched(route: Route, obj: Object, patch: str) -> Object:
    """Return the object after a webhook's patch. Raises StatusError 500."""
    try:
        return patched(route.row, obj, media_type=JSON_PATCH, body=base64.b64decode(patch))
    except StatusError as error:
        raise internal(error.message) from error


def _denied(name: str, status: Object, warnings: list[str]) -> StatusError:
    """Return the error for a denial by the webhook; its code is at least 400."""
    why = status.get("message") or status.get("reason")
    explanation = f": {why}" if why else " without explanation"
    return StatusError(
        code=max(int(status.get("code") or 0), _BAD_REQUEST),
        reason=status.get("reason", ""),
        message=f'admission webhook "{name}" denied the request{explanation}',
        details=status.get("details"),
        headers=warning_header(warnings),
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
