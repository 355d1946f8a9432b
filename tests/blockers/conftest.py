from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.support.managers.named_waits import record_unnamed
from upgrade_manager.blockers.object_view import NotSynced, Unreadable
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import Selection


@dataclass(slots=True, kw_only=True)
class FakeView:
    """Objects by kind, as a View without selectors; records what was read."""

    now: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)
    found: dict[str, list[Object]] = field(default_factory=lambda: defaultdict(list))
    #: The objects of these label selectors, in place of those of their kind.
    selected: dict[str, list[Object]] = field(default_factory=dict)
    #: By kind: the error instead of objects; empty for objects that are being listed.
    errors: dict[str, str] = field(default_factory=dict)
    is_current: bool = True
    read: list[Selection] = field(default_factory=list)

    def objects_by(self, selection: Selection, function: Callable[[Object], str], value: str) -> Sequence[Object]:
        return [one for one in self.objects(selection) if function(one) == value]

    def objects(self, selection: Selection) -> Sequence[Object]:
        self.read.append(selection)
        kind = selection.resource.kind
        if kind in self.errors:
            raise Unreadable(self.errors[kind]) if self.errors[kind] else NotSynced
        found = self.selected.get(selection.label_selector, self.found[kind])
        return [one for one in found if selection.namespace in {"", objects.namespace(one) or selection.namespace}]

    def ago(self, seconds: float) -> datetime:
        return self.now - timedelta(seconds=seconds)

    def time(self, seconds: float) -> str:
        """Return the time so many seconds ago, as Kubernetes writes it."""
        return f"{self.ago(seconds):%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture
def view() -> FakeView:
    return FakeView()


@pytest.fixture(autouse=True)
def unnamed_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail the test if a phase of a whole upgrade has waited without naming what for."""
    found = record_unnamed(monkeypatch)
    yield
    assert found == []
