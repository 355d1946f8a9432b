"""A Kubernetes client on raw JSON objects, with client-go's reflector, informer, store and event recorder."""

__all__ = [
    "client",
    "clock",
    "config",
    "credentials",
    "errors",
    "events",
    "http_transport",
    "informer",
    "kubeconfig",
    "objects",
    "pager",
    "patch",
    "resources",
    "retry",
    "store",
    "transport",
    "warnings",
]
