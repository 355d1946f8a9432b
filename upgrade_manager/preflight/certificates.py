"""Whether the API servers' certificates outlast the upgrade."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from upgrade_manager.api.timestamps import format_time
from upgrade_manager.preflight.certificate_validity import Validity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

_DAY = 24 * 3600


def chain_validity(chain: Sequence[Validity]) -> Validity:
    """When all certificates of a chain as it was served are valid: a client may need any of them."""
    return Validity(
        not_before=max(certificate.not_before for certificate in chain),
        not_after=min(certificate.not_after for certificate in chain),
    )


def outlasts(validity: Validity, *, days: int, now: datetime) -> bool:
    """Whether it is valid for so many days from now; to the second is long enough."""
    return seconds_left(validity, now=now) >= days * _DAY


def seconds_left(validity: Validity, *, now: datetime) -> int:
    """Whole seconds until it expires; negative afterwards."""
    return (validity.not_after - now) // timedelta(seconds=1)


def verdict(validity: Validity, *, now: datetime) -> str:
    """When it expires, as in `expires 2026-01-05T00:00:00Z, in 4 days`."""
    left, when = seconds_left(validity, now=now), format_time(validity.not_after)
    if left < 0:
        return f"expired {when}"
    days = left // _DAY
    return f"expires {when}, in {'less than a day' if not days else '1 day' if days == 1 else f'{days} days'}"
