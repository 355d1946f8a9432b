"""An API server in this process, good enough for clients, for kubectl and for being failed against.

tests/conformance holds it and the real kube-apiserver against the same rows. What it does not offer, it refuses as an
older server would, loudly and never with a wrong answer. About reads and access:

- Streaming lists (sendInitialEvents): 422, as with the feature gate WatchList off; no bookmark marks their end.
- Answers in protobuf, CBOR or YAML, and Tables of v1beta1: 406; clients that name JSON too get that.
- Mutating admission webhooks: a configuration that has any is refused with 403.
- `authorizer` in the matchConditions of webhooks: 422.
- Kinds that its discovery does not list, the paths /api/v1/watch/... of long ago, and subresources of kubelets (log,
  exec, proxy) for which nobody registered an answer: 404.
- Continue tokens and old versions expire at once when history is compacted; the real watch cache may still have them.
- The roles that every cluster has (cluster-admin, edit, view ...) apply without being stored.
- Kinds that hardly anybody looks at show name and age alone in Tables.

About writes:

- Server-side apply, CBOR, and protobuf beyond what kubectl sends, are refused with 415, as by a server that is older.
- managedFields are not kept.
- A JSON patch that replaces the whole object is refused; the real one makes an object without a name of it.
- The admission plugins that write into Pods and Nodes are not there: no account, no token volume, no priority and no
  default tolerations for a Pod, no host ports for one on its node's network, and no taint for a new Node.
- CEL rules in a CustomResourceDefinition are parsed, and the fields and functions that they name are looked for; their
  types are not checked, nor is estimated what they cost, so some definitions are taken that the real server refuses.
- Names of Secrets and ConfigMaps that a Pod mentions, quotas, limit ranges and Pod security are not looked at.
- Built-in kinds are checked for what a controller can get wrong, not for all that Kubernetes checks. Their fields and
  types are all known (schema/gotypes.json), so a wrong field is never kept, and never taken under Strict.
"""
