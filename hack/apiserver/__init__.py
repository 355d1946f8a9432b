"""An API server in this process, good enough for clients, for kubectl and for being failed against.

It answers as kube-apiserver v1.35 does; tests/conformance holds both against one table. What it does not offer, it
refuses as an older server would, loudly and never with a wrong answer:

- server-side apply: 415; managedFields are not kept
- streaming lists (sendInitialEvents): 422, as with the feature gate WatchList off; no bookmark marks their end
- answers in protobuf, CBOR or YAML, and Tables of v1beta1: 406; clients that name JSON too get that
- mutating admission webhooks: a configuration that has any is refused with 403
- `authorizer` in the matchConditions of webhooks: 422
- admission policies, priority and fairness, and all kinds that its discovery does not list: 404
- the paths /api/v1/watch/... of long ago, and subresources of kubelets (log, exec, proxy): 404 unless somebody
  registered an answer

What is there and simpler than the original: continue tokens and old versions expire at once when history is compacted,
where the real watch cache may still have them; the roles that every cluster has (cluster-admin, edit, view ...) apply
without being stored; kinds that hardly anybody looks at show name and age alone in Tables.
"""
