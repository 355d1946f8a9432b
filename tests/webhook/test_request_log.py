"""The log of both webhooks: who created, deleted and waived what."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.webhook.webhook import API_SERVER, STRANGER, admission, posted, review, webhook
from upgrade_manager.api.annotations import WAIVER_ANNOTATIONS
from webhook import mutation
from webhook.review_log import PEER_LINES
from webhook.server import PATH

USER = {"username": "alice", "uid": "uid-1", "groups": ["a", "system:authenticated"]}
DESCRIBED = {"plan": "demo", "user": "alice", "user_uid": "uid-1", "groups": 2}
#: The webhook's own lines.
EVENTS = {"admitted", "denied", "waived", "deletion requested"}
PROGRESSING = {"conditions": [{"type": "Progressing", "status": "True"}]}


async def logged(body: Any, *, path: str = PATH, host: str = STRANGER) -> list[dict[str, Any]]:
    """Return what is logged about a review; no check finds anything."""
    with capture_logs() as lines:
        assert (await posted(body, admission(checks=[]), path=path, host=host)).status == 200
    return [dict(line) for line in lines if line["event"] in EVENTS]


def deletion(status: Any) -> dict[str, Any]:
    return review("DELETE", oldObject={"metadata": {"name": "demo"}, "status": status}, userInfo=USER)


@pytest.mark.rule("admission: the webhook logs the user of each create, delete and waiver")
@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        pytest.param(review(userInfo=USER), PATH, {"event": "admitted"}, id="create"),
        pytest.param(deletion({}), PATH, {"event": "admitted"}, id="delete"),
        pytest.param(deletion(PROGRESSING), PATH, {"event": "denied", "findings": 1}, id="denied"),
        *(
            pytest.param(deletion(status), mutation.PATH, {"event": "deletion requested"}, id=f"deletion {number}")
            for number, status in enumerate(({}, PROGRESSING, {"currentPhase": "Failed"}))
        ),
    ],
)
async def test_line_names_the_user(body: dict[str, Any], path: str, expected: dict[str, Any]) -> None:
    (line,) = await logged(body, path=path)
    assert line.items() >= {**expected, **DESCRIBED, "operation": body["request"]["operation"]}.items()
    assert "dry_run" not in line


@pytest.mark.parametrize(("host", "known"), [(API_SERVER, "yes"), (STRANGER, "no")])
async def test_line_says_whether_an_api_server_sent_the_review(host: str, known: str) -> None:
    (line,) = await logged(review(userInfo=USER), host=host)
    assert (line["from_api_server"], line["peer"]) == (known, host)


async def test_update_without_findings_is_not_logged() -> None:
    assert await logged(review("UPDATE", userInfo=USER)) == []


def annotated(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"name": "demo", "annotations": annotations}, "spec": {}}


WAIVER = WAIVER_ANNOTATIONS[0][27:]
WAIVED = annotated(**{WAIVER_ANNOTATIONS[0]: "true"})
FORCED = {"metadata": {"name": "demo"}, "spec": {"force": True}}


@pytest.mark.parametrize(
    ("new", "old", "waivers"),
    [
        *(pytest.param(annotated(**{key: "true"}), None, [key[27:]], id=key[27:]) for key in WAIVER_ANNOTATIONS),
        pytest.param(FORCED, None, ["spec.force"], id="a forced plan"),
        pytest.param(FORCED, annotated(), ["spec.force"], id="forced later"),
        pytest.param(annotated(), FORCED, ["spec.force"], id="forced no more"),
        pytest.param(annotated(), WAIVED, [WAIVER], id="removed"),
        pytest.param(WAIVED, FORCED, [WAIVER, "spec.force"], id="two"),
        pytest.param(FORCED, FORCED, [], id="unchanged"),
        pytest.param(annotated(a="b"), annotated(), [], id="another annotation"),
    ],
)
async def test_waiver_names_the_user(new: Any, old: Any, waivers: list[str]) -> None:
    operation = "UPDATE" if old else "CREATE"
    lines = await logged(review(operation, object=new, oldObject=old, userInfo=USER), path=mutation.PATH)
    assert [line["waivers"] for line in lines] == ([", ".join(waivers)] if waivers else [])
    assert all(line.items() >= {"event": "waived", "operation": operation, **DESCRIBED}.items() for line in lines)


@pytest.mark.rule("security: strangers' reviews have at most 60 lines a minute, API servers' all of them")
@pytest.mark.parametrize(("path", "event"), [(PATH, "admitted"), (mutation.PATH, "waived")], ids=["create", "waiver"])
async def test_made_up_users_have_few_lines(path: str, event: str) -> None:
    body = review(object=FORCED, userInfo=USER)
    with capture_logs() as lines:
        async with webhook(admission(checks=[])) as server:
            for _ in range(2 * PEER_LINES):
                assert (await server.post(body, path=path)).status == 200
    found = [line for line in lines if line["event"] == event]
    assert len(found) == PEER_LINES
    assert all(line["peer"] for line in found)


async def test_dry_run_is_logged_as_one() -> None:
    (line,) = await logged(review(dryRun=True, userInfo=USER))
    assert line["dry_run"] is True


@pytest.mark.parametrize("info", [None, {}, {"username": 1, "groups": "a"}, {"username": "a\n\x1b[2J" + "b" * 5000}])
async def test_any_user_gives_one_short_line(info: Any) -> None:
    (line,) = await logged(review(userInfo=info))
    assert line["user"].isprintable() or line["user"] == ""
    assert len(line["user"].encode()) <= 128
    assert line["groups"] == 0
