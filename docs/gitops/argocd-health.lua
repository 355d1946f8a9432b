-- Health of an UpgradePlan for Argo CD. argocd.yaml has the same script in the ConfigMap argocd-cm.
local health = { status = "Progressing", message = "Waiting for the upgrade manager" }
local status = obj.status or {}
if obj.metadata.deletionTimestamp ~= nil then
  health.message = "The plan is being deleted"
  return health
end
if status.observedGeneration ~= nil and status.observedGeneration ~= obj.metadata.generation then
  health.message = "Waiting for the upgrade manager to read the changed spec"
  return health
end
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.status == "True" then
    conditions[condition.type] = condition
  end
end
if conditions.Reconciling then
  health.message = conditions.Reconciling.message
  if conditions.Paused then
    health.status = "Suspended"
  end
elseif conditions.Ready then
  health.status = "Healthy"
  health.message = conditions.Ready.message
elseif conditions.Stalled then
  health.status = "Degraded"
  health.message = conditions.Stalled.message
end
return health
