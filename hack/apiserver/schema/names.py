"""Validation of names, label keys and label values, with the messages of apimachinery 1.35.

Results are cached: every write validates all labels and annotations of its object.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LABEL_1123 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_1123 = rf"{_LABEL_1123}(\.{_LABEL_1123})*"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"

_CACHED = 4096

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253

_MIXED = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_SUBDOMAIN_1123_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)


def _pattern_error(text: str, pattern: str, *examples: str) -> str:
    """Return the message with the rule, examples and the regular expression."""
    shown = "  or ".join(f"'{example}'," for example in examples)  # two spaces, as in apimachinery
    return f"{text} (e.g. {shown} regex used for validation is '{pattern}')"


@lru_cache(_CACHED)
def dns_subdomain(value: str) -> Sequence[str]:
    """Return why the value is not an RFC 1123 subdomain, as most object names must be."""
    errors = []
    if len(value.encode()) > SUBDOMAIN_LENGTH:
        errors.append(f"must be no more than {SUBDOMAIN_LENGTH} characters")
    if not re.fullmatch(_SUBDOMAIN_1123, value):
        errors.append(_pattern_error(_SUBDOMAIN_1123_TEXT, _SUBDOMAIN_1123, "example.com"))
    return errors


@lru_cache(_CACHED)
def qualified_name(value: str) -> Sequence[str]:
    """Return why the value is not a label key, annotation key or finalizer."""
    rule = _pattern_error(f"must consist of {_MIXED}", _KEY, "MyName", "my.name", "123-abc")
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors += ["prefix part " + error for error in dns_subdomain(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > LABEL_LENGTH:
        errors.append(f"name part must be no more than {LABEL_LENGTH} bytes")
    if not re.fullmatch(_KEY, name):
        errors.append("name part " + rule)
    return errors


@lru_cache(_CACHED)
def label_value(value: str) -> Sequence[str]:
    """Return why the value is not a label value."""
    errors = []
    if len(value.encode()) > LABEL_LENGTH:
        errors.append(f"must be no more than {LABEL_LENGTH} bytes")
    if not re.fullmatch(_VALUE, value):
        text = f"a valid label must be an empty string or consist of {_MIXED}"
        errors.append(_pattern_error(text, _VALUE, "MyValue", "my_value", "12345"))
    return errors
