from __future__ import annotations

import pytest

from upgrade_manager.api import keys
from upgrade_manager.api.keys import Component, JobType, is_managed, manage_command, suc_node_label


@pytest.mark.rule(
    "api: group and version are management.harvesterhci.io/v1beta1",
    "api: annotation keys begin with management.harvesterhci.io/",
    "api: an accepted plan gets the finalizer upgradeplan-cleanup",
)
@pytest.mark.parametrize(
    ("key", "text"),
    [
        (keys.FINALIZER, "management.harvesterhci.io/upgradeplan-cleanup"),
        (keys.LABEL_PLAN, "management.harvesterhci.io/upgrade-plan"),
        (keys.LABEL_PLAN_UID, "management.harvesterhci.io/upgrade-plan-uid"),
        (keys.LABEL_ACTIVE, "management.harvesterhci.io/active"),
        (keys.LABEL_COMPONENT, "management.harvesterhci.io/upgrade-component"),
        (keys.LABEL_NODE, "management.harvesterhci.io/node"),
        (keys.LABEL_JOB_TYPE, "management.harvesterhci.io/job-type"),
        (keys.ANNOTATION_SKIP_DISK_CHECK, "management.harvesterhci.io/skip-garbage-collection-threshold-check"),
        (keys.ANNOTATION_MIN_CERTS_DAYS, "management.harvesterhci.io/min-certs-expiration-in-day"),
        (keys.ANNOTATION_TOOLKIT_IMAGE, "management.harvesterhci.io/upgrade-toolkit-image"),
        (keys.ANNOTATION_REPLENISHMENT_INTERVAL, "management.harvesterhci.io/replica-replenishment-wait-interval"),
        (keys.ANNOTATION_DESCHEDULER_WAS_ENABLED, "management.harvesterhci.io/descheduler-was-enabled"),
        (keys.ANNOTATION_PENDING_OS_IMAGE, "management.harvesterhci.io/pendingOSImage"),
        (keys.ANNOTATION_PRE_HOOK, "management.harvesterhci.io/pre-hook"),
        (keys.ANNOTATION_POST_HOOK, "management.harvesterhci.io/post-hook"),
        (keys.API_VERSION, "management.harvesterhci.io/v1beta1"),
        (keys.RKE_PRE_DRAIN, "rke.cattle.io/pre-drain"),
        (keys.RKE_POST_DRAIN, "rke.cattle.io/post-drain"),
        (keys.RKE_MACHINE_NAME, "rke.cattle.io/machine-name"),
        (keys.MACHINE_PLAN_SECRET_TYPE, "rke.cattle.io/machine-plan"),
    ],
)
def test_keys_of_the_public_interface(key: str, text: str) -> None:
    assert key == text


@pytest.mark.rule(
    "api: every created object has a component as a label",
    "api: node Jobs have node and one of four steps as labels",
)
def test_components_and_job_types() -> None:
    # Users' dashboards and commands have these values. New ones may follow.
    assert {"iso", "repo", "checksums", "image-preload", "cluster-upgrade", "node-upgrade", "image-cleanup"} <= {
        *Component
    }
    assert list(JobType) == ["pre-drain", "post-drain", "single-node-upgrade", "restore-vm"]


def test_suc_node_label() -> None:
    assert suc_node_label("up-image-preload") == "plan.upgrade.cattle.io/up-image-preload"


def test_managed_nodes_have_the_label_that_the_command_adds() -> None:
    key, value = manage_command("n1").removeprefix("kubectl label --overwrite node n1 ").split("=")
    assert is_managed({key: value})
    assert not is_managed({key: "false"})
    assert not is_managed({})
