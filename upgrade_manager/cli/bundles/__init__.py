"""The bundle of an upgrade: a file with all that is known of it, without secrets, which `bundle` writes.

contents     the objects that are read, as a table
collection   reads them, and the logs of Pods
redaction    removes secrets from objects and texts
archive      the file: tar and gzip, equal for equal contents
reader       reads such a file, which may come from anywhere
"""

__all__ = ["archive", "collection", "contents", "reader", "redaction"]
