"""A Kubernetes API server in this process, for virtual time, fault injection and the demo.

It offers what the manager, its webhook, the actors and the documented kubectl commands use. tests/conformance runs the
same table against it and against kube-apiserver. Offered are:

- The built-in kinds in `builtin.yaml`, and CustomResourceDefinitions with one version, a structural schema of the
  keywords in `schema/definition.py`, CEL rules, printer columns and a status subresource.
- The scale subresource of Deployments.
- Create, update, delete, lists, pages, watches with bookmarks and 410, JSON, merge and strategic merge patches, dry
  run, fieldValidation, finalizers, propagation, grace periods, garbage collection, deletion of namespaces.
- Objects, PartialObjectMetadata and Tables in JSON; bodies in protobuf, as kubectl's typed commands send them;
  aggregated discovery; OpenAPI for kubectl explain.
- Bearer tokens, RBAC, impersonation of users and groups, TokenReview, SubjectAccessReview, admission webhooks.

Refused are:

- Other kinds, versions, subresources and `/api/v1/watch/...`: 404.
- Streaming lists, as with the feature gate WatchList off, resourceVersionMatch and pages of an old version: 422.
- Plain discovery, responses in protobuf, CBOR or YAML: 406.
- Server-side apply and bodies in CBOR: 415. So are bodies in protobuf of kinds without an entry in `gotypes.json`, and
  with fields whose type there is `any`.
- Other keywords and subresources in CustomResourceDefinitions: 422.
- Orphaning of dependents, also by default as for Jobs, and delete options in the query: 422.
- Impersonation of a uid or of extra fields: 400.

Known differences:

- ValidatingAdmissionPolicies and their bindings are stored, and not enforced; their expressions are not compiled.
- Mutating webhooks are not called for deletions, nor again after other webhooks (reinvocationPolicy).
- ResourceQuotas do not limit anything.
- Admission webhooks see a change of a Scale as one of the Deployment.
- Quantities are stored as they were sent, not with the largest suffix.
- Built-in objects are checked for types and unknown fields; their own rules (immutable fields,
  required values) are not checked.
- CustomResourceDefinitions are only checked for what is not offered: a CEL rule that does not compile fails at objects.
- Kinds without columns in `builtin.yaml`, and Jobs in wide tables, show fewer columns.
- There are no managedFields, admission plugins or RBAC escalation checks.
- A strategic merge patch appends new list items and does not arrange them.
- Continue tokens expire as soon as the history is compacted.
"""

__all__ = [
    "authorization",
    "handlers",
    "http_poster",
    "identity",
    "posting",
    "server",
    "status",
    "streams",
    "watch",
]
