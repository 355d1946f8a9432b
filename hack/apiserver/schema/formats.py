"""The string formats that kube-apiserver checks in custom resources; other formats are documentation only."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import uuid
from datetime import date, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")
_DURATION = re.compile(r"[+-]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+|\d+\s*\w+")
_HOSTNAME = re.compile(r"(?=.{1,255}$)[A-Za-z0-9](-?[A-Za-z0-9_])*(\.[A-Za-z0-9](-?[A-Za-z0-9_])*)*\.?")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


def _parses(parse: Callable[[str], object], value: str) -> bool:
    try:
        parse(value)
    except (ValueError, binascii.Error):
        return False
    return True


def _date_time(value: str) -> bool:
    return bool(_DATE_TIME.fullmatch(value)) and _parses(datetime.fromisoformat, value.upper().replace("Z", "+00:00"))


#: Format to predicate.
FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _date_time,
    "date": lambda value: _parses(date.fromisoformat, value),
    "duration": lambda value: bool(_DURATION.fullmatch(value)),
    "uuid": lambda value: _parses(uuid.UUID, value),
    "uri": lambda value: bool(urlsplit(value).scheme) or value.startswith("/"),
    "hostname": lambda value: bool(_HOSTNAME.fullmatch(value)),
    "email": lambda value: bool(_EMAIL.fullmatch(value)),
    "byte": lambda value: _parses(lambda text: base64.b64decode(text, validate=True), value),
    "ipv4": lambda value: _parses(ipaddress.IPv4Address, value),
    "ipv6": lambda value: _parses(ipaddress.IPv6Address, value),
    "cidr": lambda value: "/" in value and _parses(ipaddress.ip_interface, value),
}


def matches_format(value: str, name: str) -> bool:
    """Whether the string has the format; true for formats that nobody checks."""
    check = FORMATS.get(name)
    return check is None or check(value)
