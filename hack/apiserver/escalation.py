"""Nobody gives away rights that they do not have: roles and bindings, checked when they are written."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from hack.apiserver.authorization import MASTERS, decide
from hack.apiserver.identity import Attributes
from hack.apiserver.rbac import GROUP, covers, grants, rules_of
from hack.apiserver.status import forbidden, not_found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.identity import User
    from hack.apiserver.rbac import Rule
    from hack.apiserver.resources import Row
    from hack.apiserver.storage import Storage
    from upgrade_manager.kube.resources import Resource

#: For each kind, what exempts: this verb on that kind's roles.
_ROLES = {f"roles.{GROUP}": "roles", f"clusterroles.{GROUP}": "clusterroles"}
_BINDINGS = {f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}"}
_PLURALS = {"Role": "roles", "ClusterRole": "clusterroles"}


@dataclass(frozen=True, slots=True)
class Escalation:
    """A validating stage. Raises StatusError 403, and 404 for a binding to a role that is not there."""

    store: Storage

    def __call__(
        self, row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions
    ) -> Object:
        """The object as it is."""
        _ = operation
        user, name = options.user, row.resource.name
        if MASTERS in user.groups or not (name in _ROLES or name in _BINDINGS):
            return new
        namespace = str(new["metadata"].get("namespace", ""))
        if name in _ROLES:
            unchanged = old is not None and old.get("rules") == new.get("rules")
            asked = _attributes("escalate", _ROLES[name], new["metadata"].get("name", ""), namespace)
            rules = new.get("rules") or []
        else:
            unchanged = old is not None and (old["roleRef"], old.get("subjects")) == (
                new["roleRef"],
                new.get("subjects"),
            )
            reference = new["roleRef"]
            asked = _attributes("bind", _PLURALS[reference["kind"]], reference["name"], namespace)
            rules = []
        if unchanged or decide(user, asked, self.store).allowed:
            return new
        if name in _BINDINGS:
            rules = self._bound(row.resource, new["roleRef"], namespace)
        self._check(row.resource, new, user, namespace, rules)
        return new

    def _bound(self, resource: Resource, reference: dict[str, Any], namespace: str) -> list[Rule]:
        rules = rules_of(self.store, reference["kind"], reference["name"], namespace)
        if rules is None:
            # It is the binding's kind that is named, with the role's name.
            raise not_found(resource, reference["name"])
        return rules

    def _check(self, resource: Resource, obj: Object, user: User, namespace: str, rules: list[Rule]) -> None:
        own = list(grants(user, namespace, self.store))
        held = [grant.rule for grant in own if not grant.missing]
        missing = [part for rule in rules for part in _parts(rule) if not any(covers(one, part) for one in held)]
        if not missing:
            return
        groups = " ".join(f'"{group}"' for group in user.groups)
        lines = "\n".join(sorted(_told(missing)))
        who = f'user "{user.name}" (groups=[{groups}])'
        why = f"{who} is attempting to grant RBAC permissions not currently held:\n{lines}"
        unresolved = [grant.missing.replace("role.", "roles.", 1) for grant in own if grant.missing]
        if unresolved:
            why += f"; resolution errors: [{', '.join(unresolved)}]"
        raise forbidden(resource, str(obj["metadata"].get("name", "")), why)


def _attributes(verb: str, plural: str, name: str, namespace: str) -> Attributes:
    return Attributes(verb=verb, group=GROUP, resource=plural, namespace=namespace, name=name)


#: One permission: kind of rule ("" for resources), API group, resource or URL, name, verb.
Part = tuple[str, str, str, str]


def _parts(rule: Rule) -> Iterator[Part]:
    """A rule taken apart: group, resource, name and verb; URLs have no group and begin with a slash or star."""
    verbs = rule.get("verbs") or []
    yield from product(
        rule.get("apiGroups") or [], rule.get("resources") or [], rule.get("resourceNames") or [""], verbs
    )
    for url, verb in product(rule.get("nonResourceURLs") or [], verbs):
        yield ("", "", url, verb)


def _told(parts: list[Part]) -> Iterator[str]:
    """Go's picture of the rules that the parts make, those about the same things together."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for group, resource, name, verb in parts:
        known = verbs.setdefault((group, resource, name), [])
        if verb not in known:
            known.append(verb)
    for (group, resource, name), several in verbs.items():
        shown = " ".join(f'"{verb}"' for verb in several)
        if not resource:
            yield f'{{NonResourceURLs:["{name}"], Verbs:[{shown}]}}'
            continue
        named = f', ResourceNames:["{name}"]' if name else ""
        yield f'{{APIGroups:["{group}"], Resources:["{resource}"]{named}, Verbs:[{shown}]}}'
