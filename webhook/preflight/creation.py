"""A dry-run of the plan's creation: the API server checks schema, unknown fields, rules and policies.

It also calls the webhook, if that is installed, and knows whether the name is taken. gate.py has the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound, Terminal
from upgrade_manager.kube.resources import UPGRADE_PLANS
from webhook.check import CannotRun, Check, Finding
from webhook.preflight.permission import EDITOR, needs

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.errors import KubeError
    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject

NAME = "creation"
_DRY_RUN = (("dryRun", "All"), ("fieldValidation", "Strict"))
_NOT_INSTALLED = f"The cluster does not serve {UPGRADE_PLANS.name}. Install the upgrade manager first"
#: Of the cause that says that rules were not checked after a wrong type.
_NO_FIELD = "<nil>"
_ABOUT = f"post {UPGRADE_PLANS.path()}: "


def check(client: Client, plan: Object) -> Check:
    """Return the check of that plan."""

    async def find(subject: Subject) -> list[Finding]:
        try:
            await client.without_retries().raw("POST", UPGRADE_PLANS.path(), query=_DRY_RUN, body=plan)
        except AlreadyExists:
            return [_exists(subject.name)]
        except NotFound:
            return [Finding(problem=_NOT_INSTALLED)]
        except (Terminal, Conflict) as error:
            if _is_missing_permission(error):
                raise CannotRun(needs("create", UPGRADE_PLANS.name, EDITOR)) from error
            return _findings(error)
        return []

    return Check(name=NAME, field="spec", find=find)


def _exists(name: str) -> Finding:
    delete = Remedy(
        "Use another name, or delete that plan once it has ended",
        command=f"kubectl delete {UPGRADE_PLANS.name} {name}",
    )
    return Finding(problem=f"UpgradePlan {name} exists already", remedies=(delete,), field="metadata.name")


def _is_missing_permission(error: KubeError) -> bool:
    """Return True for RBAC's refusal, which names the resource and, unlike a policy or a webhook, no cause."""
    is_named = error.details.get("kind") == UPGRADE_PLANS.plural
    return isinstance(error, Forbidden) and is_named and not error.details.get("causes")


def _findings(error: KubeError) -> list[Finding]:
    """Return a finding for each cause, else one in the API server's words."""
    causes = [one for one in objects.items(error.details, "causes") if objects.text(one, "field") != _NO_FIELD]
    found = [Finding(problem=objects.text(one, "message"), field=objects.text(one, "field")) for one in causes]
    return found or [Finding(problem=str(error).removeprefix(_ABOUT))]
