"""No user has made Rancher manage other clusters: cluster-upgrade would fail after Rancher's upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts.rancher_features import FOLLOW_DEFAULT, set_by_a_user
from webhook.check import Check, Finding
from webhook.listings import MULTI_CLUSTER_FEATURE

if TYPE_CHECKING:
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    features = await subject.cluster.list(MULTI_CLUSTER_FEATURE)
    problems = [problem for feature in features if (problem := set_by_a_user(feature))]
    return [Finding(problem=problem, remedies=(FOLLOW_DEFAULT,)) for problem in problems]


CHECK = Check(name="rancher features", field="spec", find=_find)
