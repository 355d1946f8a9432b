"""Random reviews, and what must hold for every response; `python -m tests.support.webhook.review_fuzz COUNT` runs many.

A case follows from its seed alone: `python -m tests.support.webhook.review_fuzz 1 --seed N` repeats one.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import resource
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from random import Random
from typing import Any

import structlog

from tests.support.webhook.webhook import Response, WebhookServer, review, webhook
from webhook import mutation
from webhook.body import MAX_BODY
from webhook.review import MAX_MESSAGE, PLAN_KIND, BadReview, parse

STATUSES = {200, 400, 408, 413, 429}
#: Bytes of the largest response: 101 findings, twice, each character as an escape.
MAX_RESPONSE = 700_000
#: Values of a wrong type or size, for any field.
HOSTILE: tuple[Callable[[Random], Any], ...] = (
    lambda _: None,
    lambda random: random.choice([True, False]),
    lambda random: random.choice([0, -1, 2**63, 10**400, 1e308, 0.1]),
    lambda random: random.choice(["", "\ud800", "\x00\x1b[2J", "a\nb", "../..", "\N{SNOWMAN}", "True", "true"]),
    lambda random: random.choice("ax\u0101\N{GRINNING FACE}\x07") * random.choice([64, 1000, 5000]),
    lambda random: [HOSTILE[random.randrange(4)](random) for _ in range(random.randrange(4))],
    lambda random: {_key(random): HOSTILE[random.randrange(6)](random) for _ in range(random.randrange(4))},
    lambda random: [f"node-{number}" for number in range(random.choice([1, 150, 6000]))],
    lambda random: _nested(random.choice([10, 500, 900])),
)
KEYS = (
    *("metadata", "name", "namespace", "annotations", "labels", "deletionTimestamp", "generateName", "spec", "status"),
    *("version", "image", "nodeUpgradeOption", "pauseNodes", "conditions", "type", "currentPhase", "object", "uid"),
    *("oldObject", "operation", "kind", "subResource", "request", "apiVersion", "\ud800", ""),
)


def case(seed: int) -> tuple[bytes, str]:
    """Return the body and the content type of a case."""
    random = Random(seed)
    content_type = "application/json"
    if random.random() < 0.02:
        content_type = random.choice(["text/plain", "", "application/yaml", "application/json;;", "\x7f/x"])
    document: Any = review(random.choice(["CREATE", "UPDATE", "DELETE"]))
    for plan in ("object", "oldObject"):
        if document["request"][plan] is not None:
            document["request"][plan] = _plan(random)
    for _ in range(random.choice([0, 1, 1, 2, 5])):
        if random.random() < 0.1 or not isinstance(document, dict) or "request" not in document:
            document = _mutated(document, random)
        else:
            document["request"] = _mutated(document["request"], random)
    body = json.dumps(document).encode()
    if random.random() < 0.3:
        body = _bytes(body, random)
    return body, content_type


def check(body: bytes, response: Response) -> None:
    """Check the response to a body. Raises AssertionError."""
    assert response.status in STATUSES, response
    assert len(response.body) <= MAX_RESPONSE, len(response.body)
    assert b"Traceback" not in response.body
    if response.status != 200:
        assert len(response.body) <= MAX_MESSAGE
        return
    request = parse(body)
    found = response.review
    assert found["uid"] == request.uid
    if found["allowed"] is True:
        assert request.kind == PLAN_KIND
        assert request.subresource or request.operation in {"CREATE", "UPDATE", "DELETE"}
        return
    status = found["status"]
    assert (found["allowed"], status["code"], status["reason"]) == (False, 422, "Invalid")
    assert 0 < len(status["details"]["causes"]) <= 101
    for cause in status["details"]["causes"]:
        assert cause["message"].isprintable()
        assert len(cause["message"].encode()) <= MAX_MESSAGE
        assert "unexpectedly" not in cause["message"]
        assert "internal error" not in cause["message"]


def check_mutation(response: Response) -> None:
    """Check the mutating webhook's response to any body. Raises AssertionError."""
    assert response.status in STATUSES, response
    assert b"Traceback" not in response.body
    if response.status == HTTPStatus.OK:
        assert response.review["allowed"] is True
        assert ("patch" in response.review) == ("patchType" in response.review)


async def run(server: WebhookServer, seeds: range) -> Counter[int]:
    """Send the cases; return how often each status came. Raises AssertionError with the seed."""
    statuses: Counter[int] = Counter()
    for seed in seeds:
        body, content_type = case(seed)
        response = await server.post(body, content_type=content_type)
        try:
            check(body, response)
            check_mutation(await server.post(body, content_type=content_type, path=mutation.PATH))
        except (AssertionError, BadReview, KeyError, TypeError) as error:
            raise AssertionError(f"seed {seed}: {error}: {body[:1000]!r}: {response.body[:1000]!r}") from error
        statuses[response.status] += 1
    return statuses


def _plan(random: Random) -> dict[str, Any]:
    status = {"currentPhase": "NodeUpgrading", "conditions": [{"type": "Progressing", "status": "True"}]}
    return {
        "metadata": {"name": "demo", "annotations": {"management.harvesterhci.io/allow-deletion": "true"}},
        "spec": {"version": "v1.8.0", "nodeUpgradeOption": {"pauseNodes": [f"node-{random.randrange(9)}"]}},
        "status": status if random.random() < 0.5 else {},
    }


def _mutated(document: Any, random: Random) -> Any:
    """Replace, add or remove a value at a random place."""
    hostile = random.choice(HOSTILE)(random)
    if not isinstance(document, dict | list) or not document or random.random() < 0.05:
        return hostile
    where: Any = random.choice(list(document) if isinstance(document, dict) else range(len(document)))
    chance = random.random()
    if chance < 0.1:
        del document[where]
    elif chance < 0.2:
        if isinstance(document, dict):
            document[_key(random)] = hostile
        else:
            document.append(hostile)
    else:
        document[where] = _mutated(document[where], random)
    return document


def _bytes(body: bytes, random: Random) -> bytes:
    at, length = random.randrange(len(body)), random.choice([1, 2, 16, 1000])
    before, after = body[:at], body[at:]
    opening = random.choice([b"[", b'{"a":', b"9", b"-", b'"', b"\xef\xbb\xbf"])
    damaged = [
        before,
        before + after[length:],
        before + random.randbytes(length) + after[length:],
        before + after[:length] + after,
        before + opening * length + after,
        body.replace(b'"', b"'", length),
        body.decode().encode("utf-16"),
        *(random.randbytes(length), b"", b"null", b"[]", b'""'),
    ]
    if random.random() < 0.005:
        damaged = [body + b" " * (MAX_BODY - len(body)), body + b" " * MAX_BODY]
    return random.choice(damaged)


def _key(random: Random) -> str:
    return random.choice(KEYS)


def _nested(depth: int) -> Any:
    document: Any = "deep"
    for level in range(depth):
        document = [document] if level % 2 else {"metadata": document}
    return document


async def _program(first: int, count: int) -> None:
    """Send all cases, in twenty rounds, and print the memory after each."""
    # aiohttp logs each malformed request, and the webhook each denial.
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    async with webhook() as server:
        step = max(count // 20, 1)
        await run(server, range(first, first + min(step, count)))
        tracemalloc.start()
        statuses: Counter[int] = Counter()
        began = time.perf_counter()
        for start in range(first, first + count, step):
            statuses += await run(server, range(start, min(start + step, first + count)))
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            sys.stdout.write(
                f"{start + step - first:>8} cases: {held / 1e6:.2f} MB held, {peak / 1e3:.0f} MB peak RSS\n"
            )
            sys.stdout.flush()
        seconds = time.perf_counter() - began
        sys.stdout.write(f"{count} cases in {seconds:.0f} s; by status: {dict(sorted(statuses.items()))}\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.webhook.review_fuzz", description="Send random reviews."
    )
    parser.add_argument("count", type=int, help="number of cases")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case")
    options = parser.parse_args()
    asyncio.run(_program(options.seed, options.count))


if __name__ == "__main__":
    main()
