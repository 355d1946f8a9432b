from __future__ import annotations

import pytest

from tests.support.harvester import Files
from upgrade_manager.kube.errors import Terminal, Transient
from upgrade_manager.pipeline.errors import BadRepository
from upgrade_manager.pipeline.repository import REMEDY, read

URL = "http://repo/file"


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        pytest.param(b"text", b"text", id="a file"),
        pytest.param(b"", b"", id="an empty one"),
        pytest.param(404, None, id="none"),
    ],
)
async def test_a_file_is_read_or_there_is_none(answer: bytes | int, content: bytes | None) -> None:
    assert await read(Files({"file": answer}), URL, limit=9) == content


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(Transient("reset"), f"the upgrade repository does not answer: reset; {REMEDY}", id="no answer"),
        pytest.param(
            Terminal("leads to another host"),
            "leads to another host; what answers there is no Harvester ISO",
            id="an answer that is not wanted",
        ),
        pytest.param(500, f"{URL}: the upgrade repository answers HTTP 500; {REMEDY}", id="an error"),
        pytest.param(301, f"{URL}: the upgrade repository answers HTTP 301; {REMEDY}", id="a way elsewhere"),
        pytest.param(206, f"{URL}: the upgrade repository answers HTTP 206; {REMEDY}", id="a part"),
    ],
)
async def test_all_else_is_a_fault_of_the_repository(answer: int | Exception, text: str) -> None:
    with pytest.raises(BadRepository) as caught:
        await read(Files({"file": answer}), URL, limit=9)
    assert str(caught.value) == text
