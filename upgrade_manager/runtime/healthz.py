"""Checks that a probe asks, and what it answers (controller-runtime's pkg/healthz, to the byte)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import structlog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

#: Seconds for one check; kubelet gives up on the whole answer earlier than that by default.
_PATIENCE = 5.0


class Unhealthy(Exception):
    """Why a check fails, as a sentence for the log and the check's own sub-path."""


#: Returns when all is well, raises otherwise.
Check: TypeAlias = "Callable[[], Awaitable[None]]"


async def ping() -> None:
    """The check of a group that has none: if this runs, the event loop does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check said."""

    name: str
    excluded: bool = False
    #: Why it failed; empty when it did not.
    failure: str = ""

    def line(self) -> str:
        """As listed; why a check fails is for the log, since anybody may ask."""
        if self.failure:
            return f"[-]{self.name} failed: reason withheld"
        return f"[+]{self.name} excluded: ok" if self.excluded else f"[+]{self.name} ok"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a text."""

    status: int
    text: str


class CheckGroup:
    """The checks behind one probe, `healthz` or `readyz`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._checks: dict[str, Check] = {}
        self._log = structlog.get_logger(__name__, probe=name)

    def add(self, name: str, check: Check) -> None:
        """Ask this check too. Raises ValueError when there is one of that name."""
        if name in self._checks:
            raise ValueError(f"probe {self.name} has a check {name} already")
        self._checks[name] = check

    async def answer(self, *, verbose: bool = False, exclude: Collection[str] = ()) -> Answer:
        """All checks together: `ok`, or what each of them says when one fails or when asked to be verbose."""
        checks = self._checks or {"ping": ping}
        names = sorted(checks)
        findings = await asyncio.gather(*(self._ask(name, checks[name], exclude) for name in names))
        failed = [finding for finding in findings if finding.failure]
        if failed:
            self._log.warning("probe failed", failures={finding.name: finding.failure for finding in failed})
        elif not verbose:
            return Answer(200, "ok")
        unknown = sorted(set(exclude) - set(names))
        return Answer(500 if failed else 200, self._text(findings, unknown, passed=not failed))

    async def answer_one(self, name: str) -> Answer | None:
        """One check alone, its failure in words; None when there is none of that name."""
        check = ping if name == "ping" and not self._checks else self._checks.get(name)
        if check is None:
            return None
        finding = await self._ask(name, check, ())
        return Answer(500, f"internal server error: {finding.failure}\n") if finding.failure else Answer(200, "ok")

    async def _ask(self, name: str, check: Check, exclude: Collection[str]) -> Finding:
        if name in exclude:
            return Finding(name=name, excluded=True)
        try:
            async with asyncio.timeout(_PATIENCE):
                await check()
        except TimeoutError:
            return Finding(name=name, failure=f"no answer within {_PATIENCE:g} s")
        except Exception as error:  # noqa: BLE001  # a check that breaks has failed, and the others still count
            return Finding(name=name, failure=str(error) or type(error).__name__)
        return Finding(name=name)

    def _text(self, findings: Sequence[Finding], unknown: Sequence[str], *, passed: bool) -> str:
        lines = [finding.line() for finding in findings]
        if unknown:
            quoted = ", ".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
        # The reference says healthz under either path.
        lines.append(f"healthz check {'passed' if passed else 'failed'}")
        return "\n".join(lines) + "\n"
