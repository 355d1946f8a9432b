"""Paths that other components serve: kubelets behind the node proxy, aggregated APIs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from upgrade_manager.kube.transport import Request, Response

    Handler = Callable[[Request, Mapping[str, str]], Awaitable[Response]]

_PLACEHOLDER = re.compile(r"\{(\w+)(:rest)?\}")


class Handlers:
    """Handlers by path pattern; they precede the resource table."""

    def __init__(self) -> None:
        self._handlers: list[tuple[str, re.Pattern[str], Handler]] = []

    def register(self, pattern: str, handler: Handler, *, method: str = "GET") -> None:
        """Register a handler for a method and a path like /api/v1/nodes/{name}/proxy/{path:rest}.

        A placeholder matches one segment; with `:rest` it matches all that follows, slashes included, or nothing. The
        handler gets the request and the unquoted values by name. The pattern registered last takes precedence.
        """
        parts = _PLACEHOLDER.split(pattern)
        expression = "".join(
            re.escape(literal) + (f"(?P<{name}>{'.*' if rest else '[^/]+'})" if name else "")
            for literal, name, rest in zip(parts[::3], [*parts[1::3], ""], [*parts[2::3], ""], strict=True)
        )
        self._handlers.insert(0, (method, re.compile(expression), handler))

    def find(self, request: Request) -> tuple[Handler, dict[str, str]] | None:
        """Return the handler of a request, and the values of the placeholders."""
        for method, expression, handler in self._handlers:
            match = expression.fullmatch(request.path) if method == request.method else None
            if match is not None:
                return handler, {name: unquote(value) for name, value in match.groupdict().items()}
        return None
