"""What a Pod, or the template for one, must have before a kubelet could run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.field_error import Fault, FieldError, duplicate, forbidden, invalid, not_supported, required
from hack.apiserver.schema.names import dns_label
from hack.apiserver.schema.networking import port_number
from hack.apiserver.schema.object_meta import validate_annotations, validate_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]

_RESTART = ("Always", "OnFailure", "Never")
_PULL = ("Always", "IfNotPresent", "Never")
_OPERATORS = ("Equal", "Exists")
_CHANGEABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "containers", "initContainers")
_FIXED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Pod; of its spec hardly anything changes."""
    spec = new.get("spec") or {}
    if old is None:
        yield from pod_spec(spec, "spec")
        return
    before = old.get("spec") or {}
    if spec is before or spec == before:
        return
    if _count(spec) != _count(before):
        yield forbidden("spec.containers", "pod updates may not add or remove containers")
    elif _fixed(spec) != _fixed(before):
        yield forbidden("spec", _FIXED)


def _count(spec: Object) -> int:
    return len(spec.get("containers") or ())


def _fixed(spec: Object) -> Object:
    """The part of a Pod's spec that stays."""
    kept = {key: value for key, value in spec.items() if key not in _CHANGEABLE}
    for kind in ("containers", "initContainers"):
        containers = spec.get(kind) or ()
        kept[kind] = [{key: value for key, value in one.items() if key != "image"} for one in containers]
    return kept


def template(given: Object, field: str) -> Iterator[FieldError]:
    """Findings about a Pod template."""
    metadata = given.get("metadata") or {}
    yield from validate_labels(metadata.get("labels") or {}, f"{field}.labels")
    yield from validate_annotations(metadata.get("annotations") or {}, f"{field}.annotations")
    yield from pod_spec(given.get("spec") or {}, f"{field}.spec")


def pod_spec(spec: Object, field: str) -> Iterator[FieldError]:
    """Findings about containers and volumes: names, images, mounts that lead nowhere."""
    volumes = spec.get("volumes") or []
    yield from _volumes(volumes, f"{field}.volumes")
    if not spec.get("containers"):
        yield required(f"{field}.containers")
    names: list[str] = []
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            where = f"{field}.{kind}[{index}]"
            yield from _container(container, where, [str(volume.get("name", "")) for volume in volumes])
            if container.get("name") in names:
                yield duplicate(f"{where}.name", container["name"])
            names.append(container.get("name", ""))
    if spec.get("restartPolicy") not in _RESTART:
        yield not_supported(f"{field}.restartPolicy", spec.get("restartPolicy", ""), _RESTART)
    yield from validate_labels(spec.get("nodeSelector") or {}, f"{field}.nodeSelector")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(toleration, f"{field}.tolerations[{index}].operator")


def _toleration(toleration: Object, where: str) -> Iterator[FieldError]:
    operator = toleration.get("operator", "")
    if not toleration.get("key") and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(where, operator, detail)
    if operator and operator not in _OPERATORS:
        yield not_supported(where, operator, _OPERATORS)


def _volumes(volumes: list[Object], field: str) -> Iterator[FieldError]:
    names: list[str] = []
    for index, volume in enumerate(volumes):
        name = str(volume.get("name", ""))
        if not name:
            yield required(f"{field}[{index}].name")
        for fault in dns_label(name) if name else ():
            yield invalid(f"{field}[{index}].name", name, fault)
        if name in names:
            yield duplicate(f"{field}[{index}].name", name)
        names.append(name)
        sources = [key for key in volume if key != "name"]
        # The real server looks at emptyDir and hostPath first.
        for source in sorted(sources, key=lambda key: (key != "emptyDir", key != "hostPath", key))[1:]:
            yield forbidden(f"{field}[{index}].{source}", "may not specify more than 1 volume type")


def _container(container: Object, field: str, volumes: list[str]) -> Iterator[FieldError]:
    name = container.get("name")
    if not name:
        yield required(f"{field}.name")
    for fault in dns_label(name) if name else ():
        yield invalid(f"{field}.name", name, fault)
    if not container.get("image"):
        yield required(f"{field}.image")
    yield from _mounts(container, field, volumes)
    yield from _variables(container, field)
    if container.get("image") and container.get("imagePullPolicy") not in _PULL:
        yield not_supported(f"{field}.imagePullPolicy", container.get("imagePullPolicy"), _PULL)
    for index, port in enumerate(container.get("ports") or ()):
        where = f"{field}.ports[{index}].containerPort"
        yield from port_number(port["containerPort"], where) if port.get("containerPort") else (required(where),)


def _mounts(container: Object, field: str, volumes: list[str]) -> Iterator[FieldError]:
    paths: list[str] = []
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where = f"{field}.volumeMounts[{index}]"
        if not mount.get("name"):
            yield required(f"{where}.name")
        if not mount.get("mountPath"):
            yield required(f"{where}.mountPath")
        if mount.get("name") not in volumes:
            yield FieldError(fault=Fault.NOT_FOUND, field=f"{where}.name", value=mount.get("name"))
        if mount.get("mountPath") in paths:
            yield invalid(f"{where}.mountPath", mount["mountPath"], "must be unique")
        paths.append(mount.get("mountPath", ""))


def _variables(container: Object, field: str) -> Iterator[FieldError]:
    for index, variable in enumerate(container.get("env") or ()):
        if not variable.get("name"):
            yield required(f"{field}.env[{index}].name")
        if variable.get("value") and variable.get("valueFrom"):
            detail = "may not be specified when `value` is not empty"
            yield invalid(f"{field}.env[{index}].valueFrom", "", detail)
