"""The writes of this project that stand in no entry, in classes with their reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """A class of writes."""

    what: str
    #: A regular expression that each line of the class matches.
    lines: str
    #: Whole sentences.
    because: str


EXTRA = (
    Extra(
        what="annotations with the prefix management.harvesterhci.io of ManagedCharts, ClusterRepos, machine-plan "
        "Secrets, the Setting overcommit-config and Rancher's Cluster",
        lines=r"metadata\.annotations\[management\.harvesterhci\.io/"
        r"(?:original-|generation-before-upgrade|refreshed-for|pinned-value|unfinished-upgrade|acknowledged-request)",
        because="They record what an attempt that is killed has begun, and what it has to give back. All but "
        "refreshed-for and the record of acknowledged requests are removed at the end of the upgrade.",
    ),
    Extra(
        what="labels with the prefix management.harvesterhci.io of objects that the upgrade creates",
        lines=r"metadata\.labels\[management\.harvesterhci\.io/",
        because="They tie an object to its plan, instead of an ownerReference (decision 0031).",
    ),
    Extra(
        what="Job PLAN-checksums",
        lines=r"Job(?:\.batch)? harvester-system/upgrade-checksums",
        because="The repository is plain HTTP: the Job computes the checksums with which the other Jobs compare what "
        "they download.",
    ),
    Extra(
        what="Plan PLAN-survey",
        lines=r"Plan\.\S+ cattle-system/upgrade-survey\b",
        because="It reads on every node what would make the node's upgrade fail, before the cluster is changed.",
    ),
    Extra(
        what="Plan PLAN-agent-release",
        lines=r"Plan\.\S+ cattle-system/upgrade-agent-release\b",
        because="It removes the hold of the system agents from nodes that were never drained, after a failure and "
        "before a deletion too; in the original such nodes keep the hold until their next reboot.",
    ),
    Extra(
        what="VirtualMachineImage, Service and Deployment of the ISO",
        lines=r"(?:VirtualMachineImage\.\S+|Service|Deployment(?:\.apps)?) harvester-system/upgrade-(?:iso|repo)\b",
        because="Harvester's own upgrade has them under the name of its Upgrade.",
    ),
    Extra(
        what="fields, scripts and deletions of the Jobs, Plans, Secrets and ConfigMaps of the upgrade",
        lines=r"(?:Job(?:\.batch)?|Plan\.\S+|Secret|ConfigMap) (?:harvester|cattle)-system/upgrade-"
        r"(?:agent-hold|skip-on|skip-off|image-preload|image-cleanup|cluster-upgrade|node-upgrade|restore-vm|ledger)",
        because="The tables above name what such an object does; these lines are the rest of it. All are deleted at "
        "the end of the upgrade.",
    ),
    Extra(
        what="labels of these Plans on the nodes, removed",
        lines=r"patch +Node \S+: metadata\.labels\[plan\.upgrade\.cattle\.io/upgrade-",
        because="The system-upgrade-controller sets them, and leaves them on the nodes.",
    ),
    Extra(
        what="further options of Rancher's upgradeStrategy",
        lines=r"Cluster\.provisioning\S+ fleet-local/local: spec\.rkeConfig\.upgradeStrategy\.",
        because="Workers get the options of control planes: the same ones as in the original.",
    ),
    Extra(
        what="pause and time-out of ManagedChart kubeovn-operator-crd",
        lines=r"ManagedChart\.\S+ fleet-local/kubeovn-operator-crd: spec\.(?:paused|timeoutSeconds)",
        because="The chart is treated as the other four are: Fleet would report an error from the moment at which the "
        "new repository lacks its version.",
    ),
    Extra(
        what="the other fields of an Addon that is created",
        lines=r"^addons +create +Addon\.",
        because="They are those of the release's own manifest.",
    ),
    Extra(
        what="Helm release rancher: its chart, and variable CATTLE_SHELL_IMAGE removed from extraEnv",
        lines=r"upgrade Helm release cattle-system/rancher: (?:chart|value extraEnv) := ",
        because="The chart is that of helm upgrade above. The variable pins an image of the previous release; "
        "an installation without it is not changed.",
    ),
    Extra(
        what="annotations of CustomResourceDefinition cdis.cdi.kubevirt.io",
        lines=r"^cdi-definition +patch .*: metadata\.",
        because="They are part of the definition that is applied.",
    ),
    Extra(
        what="mounts of the download, of the new image and of the release's elemental, and the state partition made "
        "writable for a moment",
        lines=r" run +(?:mount|umount) ",
        because="The new system is measured before elemental runs and compared with the download afterwards, and "
        "elemental of the release runs instead of the host's.",
    ),
    Extra(
        what="active.img, passive.img, and GRUB's mark boot_assessment on the state partition",
        lines=r"file /run/initramfs/cos-state/(?:cOS/(?:active|passive)\.img|boot_assessment)",
        because="elemental and its hooks write them in both cases.",
    ),
    Extra(
        what="state.yaml renamed by mv",
        lines=r"^state-file +run +mv ",
        because="It is the program by which the copy above is made.",
    ),
    Extra(
        what="files below /usr/local/harvester-upgrade",
        lines=r"file /usr/local/harvester-upgrade/",
        because="They are the records, the log and the download with which the next attempt continues.",
    ),
    Extra(
        what="/oem/grubenv on hosts of other kinds",
        lines=r"^kernel-arguments +change +file /oem/grubenv := ",
        because="It is the same change with other NICs and arguments.",
    ),
)
