"""Our small definitions of other projects' kinds beside the projects' own: what we model must be as it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.cluster.foreign import foreign_crds
from hack.control_plane.crds import real_crds
from tests.support import tiers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.objects import Object

#: Facets that must be the same where we model a field. Texts, formats and limits that nothing of ours meets may differ.
FACETS = ("type", "enum", "nullable", "x-kubernetes-int-or-string", "x-kubernetes-list-type")
NAMES = [crd["metadata"]["name"] for crd in foreign_crds()]


def differences(ours: Any, real: Any, path: str = "") -> Iterator[str]:
    """What of ours is not so in the real schema, and what that requires and ours does not."""
    if real.get("x-kubernetes-preserve-unknown-fields") and "properties" not in real:
        return
    for facet in FACETS:
        if _set(ours.get(facet)) != _set(real.get(facet)) and not ours.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path or '.'}: {facet} {ours.get(facet)} is {real.get(facet)}"
    known = ours.get("properties") or {}
    if known or not ours.get("x-kubernetes-preserve-unknown-fields"):
        missing = set(real.get("required") or ()) - set(ours.get("required") or ())
        surplus = set(ours.get("required") or ()) - set(real.get("required") or ())
        yield from (f"{path}.{name}: required" for name in sorted(missing))
        yield from (f"{path}.{name}: not required" for name in sorted(surplus))
    for name, schema in known.items():
        if name not in (real.get("properties") or {}):
            yield f"{path}.{name}: unknown"
        else:
            yield from differences(schema, real["properties"][name], f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(ours.get(inner), dict) and isinstance(real.get(inner), dict):
            yield from differences(ours[inner], real[inner], f"{path}[]")


def _set(value: Any) -> Any:
    return frozenset(map(str, value)) if isinstance(value, list) else value or None


def _stored(crd: Object) -> Any:
    return next(version for version in crd["spec"]["versions"] if version["storage"])


@pytest.mark.assets
@pytest.mark.parametrize("name", NAMES)
def test_what_we_model_of_a_foreign_kind_is_so_in_its_project(name: str) -> None:
    ours = next(crd for crd in foreign_crds() if crd["metadata"]["name"] == name)
    real = next(crd for crd in real_crds(tiers.assets()) if crd["metadata"]["name"] == name)
    for part in ("group", "scope"):
        assert ours["spec"][part] == real["spec"][part]
    for part in ("plural", "singular", "kind"):
        assert ours["spec"]["names"].get(part) == real["spec"]["names"].get(part)
    versions = (_stored(ours), _stored(real))
    assert versions[0]["name"] == versions[1]["name"]
    assert set(versions[0].get("subresources") or {}) == set(versions[1].get("subresources") or {})
    schemas = [version["schema"]["openAPIV3Schema"] for version in versions]
    assert list(differences(*schemas)) == []
