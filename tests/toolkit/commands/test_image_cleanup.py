from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.toolkit.mounted_list import mount_list
from tests.support.toolkit.toolkit import toolkit_world
from tests.support.toolkit.toolkit_transcript import golden, transcript
from upgrade_manager.resources.image_list import LIST_KEY
from upgrade_manager.toolkit.commands import image_cleanup
from upgrade_manager.toolkit.commands.image_cleanup import mounted_list
from upgrade_manager.toolkit.host.host_programs import Call, HostPrograms, Output
from upgrade_manager.toolkit.run.errors import BadArchive, BadEnvironment, ProgramTimedOut, StepFailed

COMMAND = "image-cleanup"
OLD, USED, SHARED, ABSENT = (f"docker.io/rancher/{name}:v1" for name in ("old", "used", "shared", "absent"))
SHORT = "docker.io/library/busybox:1"
#: The name of SHARED in the current release.
CURRENT = "docker.io/rancher/shared:v2"


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Mount a list of five images."""
    prefix = mount_list(tmp_path, ABSENT, "busybox:1", OLD, SHARED, USED)
    monkeypatch.setattr(image_cleanup, "LIST_PATH", str(prefix))
    return prefix


@pytest.mark.usefixtures("mounted")
async def test_images_that_nothing_needs_are_removed(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        state = world.programs.state
        state.images = [CURRENT, OLD, SHARED, SHORT, USED]
        state.image_ids = {SHARED: "sha256:1", CURRENT: "sha256:1"}
        state.used_images = [USED]
        listing = await transcript(world, COMMAND)
        assert listing == golden("image-cleanup", listing)
        # containerd would have removed the current release's image with SHARED, and one in use.
        assert state.images == [CURRENT, SHARED, USED]
        await world.run(COMMAND)
        assert state.images == [CURRENT, SHARED, USED]


class _Failing:
    """Programs of which removals fail."""

    def __init__(self, inner: HostPrograms, *failures: Output | ProgramTimedOut) -> None:
        self._inner = inner
        self._failures = list(failures)

    async def run(self, call: Call) -> Output:
        if "rmi" in call.argv and self._failures:
            failure = self._failures.pop(0)
            if isinstance(failure, Output):
                return failure
            raise failure
        return await self._inner.run(call)


_REFUSED = Output(status=1, stderr="level=error msg=busy")
_SLOW = ProgramTimedOut("crictl did not end within 300 s")


@pytest.mark.usefixtures("mounted")
@pytest.mark.parametrize("failure", [pytest.param(_REFUSED, id="refused"), pytest.param(_SLOW, id="timed-out")])
async def test_failed_removal_is_not_a_failure(tmp_path: Path, failure: Output | ProgramTimedOut) -> None:
    async with toolkit_world(tmp_path) as world:
        world.programs.state.images = [OLD, SHORT, USED]
        await world.run(COMMAND, programs=_Failing(world.programs, failure))
        assert world.programs.state.images == [SHORT]


@pytest.mark.usefixtures("mounted")
async def test_containerd_that_does_not_answer_ends_the_command(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        world.programs.state.images = [OLD, SHORT, USED]
        with pytest.raises(StepFailed, match=r"^remove-images: 3 removals in a row timed out; check containerd"):
            await world.run(COMMAND, programs=_Failing(world.programs, _SLOW, _SLOW, _SLOW))


@pytest.mark.usefixtures("mounted")
async def test_output_that_is_not_a_list_fails(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        world.programs.state.failing = {"crictl images": "connection refused"}
        with pytest.raises(StepFailed, match="crictl returned 1: connection refused"):
            await world.run(COMMAND)


async def test_pinned_images_stay(tmp_path: Path, mounted: Path) -> None:
    class _Pinned:
        async def run(self, call: Call) -> Output:
            assert "rmi" not in call.argv
            image = {"id": "sha256:1", "repoTags": [OLD], "repoDigests": None, "pinned": True}
            return Output(status=0, stdout=json.dumps({"images": [image], "containers": None}))

    assert OLD in mounted_list(mounted)
    async with toolkit_world(tmp_path) as world:
        await world.run(COMMAND, programs=_Pinned())


async def test_images_that_the_node_lacks_need_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    references = [f"docker.io/rancher/image-{number}:v1.7.1" for number in range(1_000)]
    monkeypatch.setattr(image_cleanup, "LIST_PATH", str(mount_list(tmp_path, *references, chunk=20_000)))
    async with toolkit_world(tmp_path) as world:
        world.programs.state.images = references[:40]
        await world.run(COMMAND)
        assert world.programs.state.images == []
        assert len(world.programs.state.calls) == 42


def test_list_is_read_from_its_chunks_in_order(tmp_path: Path) -> None:
    references = [f"docker.io/rancher/image-{number}:{number * 7919:x}" for number in range(500)]
    prefix = mount_list(tmp_path, *references, chunk=100)
    assert len(list(prefix.parent.iterdir())) > 10
    assert mounted_list(prefix) == references


def test_missing_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadEnvironment, match=r"^no list of images is mounted at .*/images-00$"):
        mounted_list(tmp_path / "images")


def test_incomplete_list_removes_nothing(tmp_path: Path) -> None:
    prefix = mount_list(tmp_path, OLD, USED)
    last = max(prefix.parent.iterdir())
    (last / LIST_KEY).write_bytes((last / LIST_KEY).read_bytes()[:-9])
    with pytest.raises(BadArchive, match="incomplete"):
        mounted_list(prefix)
    (last / LIST_KEY).unlink()
    with pytest.raises(BadArchive, match="not readable"):
        mounted_list(prefix)


def test_list_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_cleanup, "SIZE_LIMIT", 1_000)
    with pytest.raises(BadArchive, match="more than 1000 bytes"):
        mounted_list(mount_list(tmp_path, *[OLD] * 100))
