"""What a Pod, or the template for one, must have before a kubelet could run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.fielderror import Fault, FieldError, duplicate, invalid, required
from hack.apiserver.schema.names import dns_label
from hack.apiserver.schema.objectmeta import validate_annotations, validate_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]


def pod(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Pod; its spec hardly changes, so updates are not judged."""
    if old is None:
        yield from pod_spec(new.get("spec") or {}, "spec")


def template(given: Object, field: str) -> Iterator[FieldError]:
    """Findings about a Pod template."""
    metadata = given.get("metadata") or {}
    yield from validate_labels(metadata.get("labels") or {}, f"{field}.labels")
    yield from validate_annotations(metadata.get("annotations") or {}, f"{field}.annotations")
    yield from pod_spec(given.get("spec") or {}, f"{field}.spec")


def pod_spec(spec: Object, field: str) -> Iterator[FieldError]:
    """Findings about containers and volumes: names, images, mounts that lead nowhere."""
    volumes = [str(volume.get("name", "")) for volume in spec.get("volumes") or ()]
    yield from _names(volumes, f"{field}.volumes")
    if not spec.get("containers"):
        yield required(f"{field}.containers")
    names: list[str] = []
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            where = f"{field}.{kind}[{index}]"
            yield from _container(container, where, volumes)
            if container.get("name") in names:
                yield duplicate(f"{where}.name", container["name"])
            names.append(container.get("name", ""))


def _names(names: list[str], field: str) -> Iterator[FieldError]:
    for index, name in enumerate(names):
        for fault in dns_label(name) if name else ():
            yield invalid(f"{field}[{index}].name", name, fault)
        if name in names[:index]:
            yield duplicate(f"{field}[{index}].name", name)


def _container(container: Object, field: str, volumes: list[str]) -> Iterator[FieldError]:
    name = container.get("name")
    if not name:
        yield required(f"{field}.name")
    for fault in dns_label(name) if name else ():
        yield invalid(f"{field}.name", name, fault)
    if not container.get("image"):
        yield required(f"{field}.image")
    paths: list[str] = []
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where = f"{field}.volumeMounts[{index}]"
        if mount.get("name") not in volumes:
            yield FieldError(fault=Fault.NOT_FOUND, field=f"{where}.name", value=mount.get("name"))
        if mount.get("mountPath") in paths:
            yield invalid(f"{where}.mountPath", mount["mountPath"], "must be unique")
        paths.append(mount.get("mountPath", ""))
    for index, variable in enumerate(container.get("env") or ()):
        if variable.get("value") and variable.get("valueFrom"):
            detail = "may not be specified when `value` is not empty"
            yield invalid(f"{field}.env[{index}].valueFrom", "", detail)
