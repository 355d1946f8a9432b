"""The permissions in deploy/rbac, and what a request needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import yaml

from hack.apiserver.call import Call, call_of
from upgrade_manager.kube.transport import Request

RBAC = Path(__file__).parents[3] / "deploy/rbac"


class Permission(NamedTuple):
    """One verb on one resource, such as `jobs.batch`."""

    #: Empty for all.
    namespace: str
    resource: str
    verb: str
    #: Empty for all.
    name: str

    def permits(self, call: Call) -> bool:
        """Return whether a call needs this permission."""
        # Of what lies behind a proxy only the proxy counts.
        subresource = call.subresource.partition("/")[0]
        requested = f"{call.resource}/{subresource}" if subresource else call.resource
        return (
            self.namespace in {"", call.namespace}
            and (self.resource, self.verb) == (requested, call.verb)
            and self.name in {"", call.name}
        )


def granted(role_name: str) -> Iterator[Permission]:
    """Yield the permissions of the roles of that name."""
    for path in sorted(RBAC.glob("*.yaml")):
        for role in yaml.safe_load_all(path.read_text()):
            if role["kind"].endswith("Role") and role["metadata"]["name"] == role_name:
                for rule in role["rules"]:
                    for resource in _qualified(rule):
                        for verb in rule["verbs"]:
                            for name in rule.get("resourceNames", [""]):
                                yield Permission(role["metadata"].get("namespace", ""), resource, verb, name)


def _qualified(rule: dict[str, list[str]]) -> Iterator[str]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            plural, slash, subresource = resource.partition("/")
            yield (f"{plural}.{group}" if group else plural) + slash + subresource


def authorized(request: Request) -> Call:
    """Return the call as it is authorized: a list with a field selector for one name has that name."""
    selector = dict(request.query).get("fieldSelector", "")
    one = selector.removeprefix("metadata.name=") if selector.startswith("metadata.name=") else ""
    call = call_of(request)
    return replace(call, name=one) if one else call
