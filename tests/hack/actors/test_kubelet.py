from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.container_work import missing_from
from tests.support.cluster.actor_cluster import job

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.kube.objects import Object


def pod() -> Object:
    template = job("x", command=["upgrade_node.sh", "post-drain"], node="node-0")["spec"]["template"]
    return {"metadata": {"name": "p", "labels": {}}, "spec": deepcopy(template["spec"])}


def _container(**changes: Any) -> Callable[[Object], None]:
    return lambda given: given["spec"]["containers"][0].update(changes)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(_container(image=""), "no image", id="no image"),
        pytest.param(_container(securityContext={}), "not privileged", id="no privileges"),
        pytest.param(_container(volumeMounts=[]), "not mounted at /host", id="no host"),
        pytest.param(_container(volumeMounts=[{"name": "a", "mountPath": "/a"}]), "no volume 'a'", id="no volume"),
        pytest.param(lambda given: given["spec"].update(containers=[]), "no container", id="no container"),
    ],
)
def test_pod_without_required_fields_cannot_start(spoil: Callable[[Object], None], message: str) -> None:
    given = pod()
    assert missing_from(given) == ""
    spoil(given)
    assert message in missing_from(given)
