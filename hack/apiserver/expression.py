"""CEL expressions over Kubernetes objects, for validation rules and computed printer columns."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import cel
from cel import stdlib

if TYPE_CHECKING:
    from collections.abc import Mapping


class ExpressionError(Exception):
    """The expression cannot be parsed or has no value for this object."""


#: Names outside of the core language; binding them costs more than most expressions.
_NAMES = frozenset(name.rpartition(".")[2] for name in stdlib.STDLIB_FUNCTIONS)


@lru_cache(maxsize=1024)
def compiled(source: str) -> cel.Program:
    """Return the program of an expression. Raises ExpressionError for a syntax error."""
    try:
        return cel.compile(source)
    except ValueError as error:
        raise ExpressionError(str(error)) from error


def evaluate(source: str, variables: Mapping[str, Any]) -> Any:
    """Return the value of an expression. Raises ExpressionError when it has none."""
    program = compiled(source)
    context = cel.Context(variables=dict(variables))
    if not _NAMES.isdisjoint(program.functions()):
        stdlib.add_stdlib_to_context(context)
    try:
        return program.execute(context)
    except KeyError as error:
        raise ExpressionError(f"no such key: {error.args[0]}") from error
    except ZeroDivisionError as error:
        raise ExpressionError("division by zero") from error
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise ExpressionError(str(error)) from error


def uses(source: str, variable: str) -> bool:
    """Return whether the expression reads a variable. Raises ExpressionError for a syntax error."""
    return variable in compiled(source).variables()
