"""What is not watched, because it is only wanted where something does not come on: asked for, and not too often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

#: Seconds after which something that does not come on is worth a request, and between two such requests.
PATIENCE = 60.0


class Inquiries:
    """The answers of one plan, in memory: whoever looks a hundred times a minute asks once."""

    def __init__(self) -> None:
        #: By question: the loop's time until which the answer is good, and the answer.
        self._answers: dict[str, tuple[float, str]] = {}

    async def answer(self, question: str, ask: Callable[[], Awaitable[str]]) -> str:
        """The answer to the question, which `ask` is called for where there is none, or an old one only."""
        time = loop_time()
        self._answers = {key: known for key, known in self._answers.items() if known[0] > time}
        if question not in self._answers:
            self._answers[question] = (time + PATIENCE, await ask())
        return self._answers[question][1]
