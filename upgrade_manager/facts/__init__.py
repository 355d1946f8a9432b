"""Rules about objects of other controllers, as pure functions of raw objects.

The Job on a node, the finder of blockers and the webhook apply the same rule, so that they explain a wait alike.

live_migration   Harvester's rule for VMs that the Job stops before a drain; `node_affinity` is the scheduler's rule
vm_obstacles     why a VM stays on a node that KubeVirt evacuates; `migrations` finds the VM's migrations
vm_start         whether KubeVirt is about to start or stop a VM
node_obstacles   why a node's upgrade has not ended; `missing_nodes` why a node cannot be observed
volumes          Longhorn's volumes for which a drain waits
image_import     the state of the import of the ISO, and the volume of its image
drain_hooks      the drain hooks of Rancher's cluster and machine-plan Secrets
evictions        which Pods a PodDisruptionBudget keeps on their node, and which budgets have outlived their VM
forbidden_stops  which VMs users' PodDisruptionBudgets keep from being stopped
holders          work of others during which no upgrade begins
rancher_cluster  why Rancher's cluster is absent or not ready; `rancher_features` has Rancher's features
quantities       Kubernetes quantities
pairing          names of nodes that neither Kubernetes nor Rancher knows
pod_reason       why a Pod does not run, and `pod_end` why it does not end; `taints` finds the taints that keep it off
deployments      why a Deployment does nothing; `endpoint_slices` counts the ready endpoints of a Service
addons           the state of Harvester's Addons
kubernetes       versions of Kubernetes on nodes
kubevirt         why KubeVirt does not serve, or has not ended its upgrade; `update_methods` is a list that it reads
managed_charts   why Fleet has not deployed a ManagedChart
job_state        the progress of a Job
machine_plan     the node and the hooks of Rancher's machine-plan Secret
old_images       images that stay on nodes after an upgrade
suc_nodes        nodes that the system-upgrade-controller cannot process
removal          why an object that is to be removed still exists
field_managers   which client last wrote a field
condition_words  what the conditions of other projects' objects report
versions         Harvester's Version objects
final_phases     the phases in which Pods, VMs and migrations have ended
label_selectors  label selectors, evaluated as Kubernetes does
"""

__all__ = [
    "addons",
    "condition_words",
    "deployments",
    "drain_hooks",
    "endpoint_slices",
    "evictions",
    "field_managers",
    "final_phases",
    "forbidden_stops",
    "holders",
    "image_import",
    "job_state",
    "kubernetes",
    "kubevirt",
    "label_selectors",
    "live_migration",
    "machine_plan",
    "managed_charts",
    "migrations",
    "missing_nodes",
    "node_affinity",
    "node_obstacles",
    "old_images",
    "pairing",
    "pod_end",
    "pod_reason",
    "quantities",
    "rancher_cluster",
    "rancher_features",
    "removal",
    "suc_nodes",
    "taints",
    "update_methods",
    "versions",
    "vm_obstacles",
    "vm_start",
    "volumes",
]
