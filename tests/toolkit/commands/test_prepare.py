from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.managers.sweep import Sweep
from tests.support.toolkit.file_operations import file_operations
from tests.support.toolkit.image_archives import compressed, entry, image_archive, tar
from tests.support.toolkit.prepare import (
    AGENT,
    BUSYBOX,
    ETCD,
    IMPORTED,
    KEPT,
    RANCHER,
    imports,
    is_prepared,
    new_host,
    prepare_world,
)
from tests.support.toolkit.toolkit import PLAN, ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import Killed, count_points, run_killed, run_killed_before
from tests.support.toolkit.toolkit_transcript import golden, transcript
from upgrade_manager.kube.errors import Forbidden, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.toolkit.host import disk_space
from upgrade_manager.toolkit.host.host_paths import RKE2_IMAGES, WORK
from upgrade_manager.toolkit.images import kept_archives
from upgrade_manager.toolkit.images.image_record import ImageRecord
from upgrade_manager.toolkit.iso.checksums import Checksums
from upgrade_manager.toolkit.run.errors import BadArchive, OutOfSpace, StepFailed, WrongChecksum

COMMAND = "node prepare"
RKE2_ARCHIVE = f"{RKE2_IMAGES}/rke2.tar.zst"


async def test_golden_run(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        listing = await transcript(world, COMMAND)
        assert listing == golden("prepare", listing)
        assert is_prepared(world)


async def test_second_run_imports_and_downloads_nothing(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        await world.run(COMMAND)
        with file_operations(world.tree.root) as operations:
            await world.run(COMMAND)
        assert imports(world) == 2
        assert operations.inside == []


async def test_archive_is_imported_only_for_missing_images(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        world.programs.state.images = [RANCHER, BUSYBOX, "docker.io/rancher/old:v1"]
        await world.run(COMMAND)
        assert imports(world) == 1
        assert is_prepared(world)
        assert "/bundle/rancher.tar.zst" not in {path for path, _ in world.iso.requests}


async def test_images_are_not_unpacked_before_a_container_needs_them(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        await world.run(COMMAND)
        assert world.programs.state.unpacked == []


async def test_killed_import_is_repeated_although_images_are_listed(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        await run_killed_before(world, COMMAND, "ctr, before the content of listed images")
        assert world.programs.state.incomplete == [BUSYBOX, RANCHER]
        await world.run(COMMAND)
        assert is_prepared(world)
        assert imports(world) == 3
        assert world.programs.state.unpacked == []


async def test_killed_at_every_effect_the_next_run_ends_the_same(tmp_path: Path, sweep: Sweep) -> None:
    async with prepare_world(tmp_path) as world:
        points = await count_points(world, COMMAND)
        for at in sweep.points(0, points - 1, stride=1):
            new_host(world, tmp_path / str(at))
            where = await run_killed(world, COMMAND, at=at)
            await world.run(COMMAND)
            assert where
            assert is_prepared(world), where


@pytest.mark.full
async def test_killed_at_every_file_operation_the_next_run_mends_it(tmp_path: Path, sweep: Sweep) -> None:
    async with prepare_world(tmp_path) as world:
        with file_operations(world.tree.root) as operations:
            await world.run(COMMAND)
        points = len(operations.inside)
        assert points > 30
        for at in sweep.points(0, points - 1, stride=1):
            new_host(world, tmp_path / str(at))
            with file_operations(world.tree.root, kill_at=at), pytest.raises(Killed) as killed:
                await world.run(COMMAND)
            await world.run(COMMAND)
            assert is_prepared(world), killed.value


async def test_killed_during_a_download_the_next_run_continues_it(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        size = len(world.iso.files["/bundle/rke2.tar.zst"])
        for cut in range(1, size // 64 + 1):
            new_host(world, tmp_path / str(cut))
            world.iso.killed_after = {"/bundle/rke2.tar.zst": cut * 64}
            with pytest.raises(Killed):
                await world.run(COMMAND)
            world.iso.requests.clear()
            await world.run(COMMAND)
            assert ("/bundle/rke2.tar.zst", cut * 64) in world.iso.requests
            assert is_prepared(world)


async def test_repository_that_breaks_at_every_request_is_awaited(tmp_path: Path, sweep: Sweep) -> None:
    async with prepare_world(tmp_path) as world:
        await world.run(COMMAND)
        for at in sweep.points(0, len(world.iso.requests) - 1, stride=1):
            new_host(world, tmp_path / str(at))
            world.iso.errors = [*[None] * at, Transient("repository: HTTP 503")]
            await world.run(COMMAND)
            assert is_prepared(world)


def _replace(path: str, content: bytes) -> Callable[[ToolkitWorld], None]:
    def change(world: ToolkitWorld) -> None:
        world.iso.files[path] = content

    return change


def _refuse_import(world: ToolkitWorld) -> None:
    world.programs.state.failing[
        "ctr --address /run/k3s/containerd/containerd.sock --namespace k8s.io images import"
    ] = "time=now level=info\nctr: failed to ingest: unexpected media type"


ARCHIVE = "/bundle/rancher.tar.zst"
#: The defect, and the line that users read.
WRONG = [
    pytest.param(
        _replace(ARCHIVE, image_archive(RANCHER, BUSYBOX)[:-1]),
        BadArchive,
        "rancher.tar.zst is cut off",
        id="truncated",
    ),
    pytest.param(
        _replace(ARCHIVE, image_archive(RANCHER)[:-4] + b"sums"),
        BadArchive,
        "rancher.tar.zst is corrupt: ",
        id="wrong-checksum",
    ),
    pytest.param(
        _replace(ARCHIVE, compressed(tar((entry("../etc/passwd"), b"root")))),
        BadArchive,
        "rancher.tar.zst: entry '../etc/passwd' has a path outside the archive",
        id="hostile",
    ),
    pytest.param(
        _replace(ARCHIVE, image_archive(RANCHER)),
        StepFailed,
        "rancher.tar.zst was imported, but containerd lacks 1 of its images, such as busybox:1",
        id="image-missing-in-archive",
    ),
    pytest.param(
        _replace("/bundle/rancher.txt", b"# none\n"),
        BadArchive,
        "/bundle/rancher.txt names no image; the ISO is corrupt or not a Harvester release",
        id="empty-list",
    ),
    pytest.param(
        _refuse_import,
        StepFailed,
        "rancher.tar.zst: ctr returned 1: ctr: failed to ingest: unexpected media type",
        id="containerd-refuses",
    ),
    pytest.param(
        lambda world: world.iso.files.pop(ARCHIVE),
        StepFailed,
        "/bundle/rancher.tar.zst does not exist",
        id="archive-missing",
    ),
]


@pytest.mark.parametrize(("break_world", "kind", "line"), WRONG)
async def test_wrong_world_fails_in_one_line_and_is_mended(
    tmp_path: Path, break_world: Callable[[ToolkitWorld], None], kind: type[StepFailed], line: str
) -> None:
    async with prepare_world(tmp_path) as world:
        good = dict(world.iso.files)
        break_world(world)
        with pytest.raises(kind) as raised:
            await world.run(COMMAND)
        assert str(raised.value).startswith(f"import-images: {line}")
        assert "\n" not in str(raised.value)
        if kind is BadArchive:
            assert not list(world.tree.root.rglob("rancher.tar.zst*"))
        world.iso.files, world.programs.state.failing = good, {}
        await world.run(COMMAND)
        assert is_prepared(world)


async def test_bad_kept_archive_is_never_left_where_rke2_reads_it(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        world.programs.state.images = [RANCHER, BUSYBOX, ETCD]
        good = world.iso.files["/bundle/rke2.tar.zst"]
        world.iso.files["/bundle/rke2.tar.zst"] = good[:-1] + b"\0"
        with pytest.raises(BadArchive, match=r"^keep-archives: rke2\.tar\.zst is corrupt: "):
            await world.run(COMMAND)
        assert list(world.tree.path(RKE2_IMAGES).iterdir()) == []
        world.iso.files["/bundle/rke2.tar.zst"] = good
        await world.run(COMMAND)
        assert is_prepared(world)


async def test_disk_that_fills_during_an_import_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with prepare_world(tmp_path) as world:
        with monkeypatch.context() as patch:
            free = disk_space.free_bytes
            patch.setattr(disk_space, "free_bytes", lambda path: 0 if path.name == "containerd" else free(path))
            with pytest.raises(OutOfSpace) as raised:
                await world.run(COMMAND)
        place = "/var/lib/rancher/rke2/agent/containerd"
        wanted = f"the import of rancher.tar.zst needs 1024 MiB in {place} on the host, which has 0 MiB free"
        assert str(raised.value) == f"import-images: {wanted}. Free space on the node"
        assert world.programs.state.images == []
        assert not list(world.tree.root.rglob("*.zst*"))
        await world.run(COMMAND)
        assert is_prepared(world)


async def test_downloads_of_an_earlier_plan_are_removed(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        world.tree.write(f"{IMPORTED}/rancher.tar.zst", "of another ISO, and of any size")
        world.tree.write(f"{WORK}/os/elemental.log", "kept")
        earlier = f"{RKE2_IMAGES}/rke2-v1.34.tar.zst"
        ImageRecord(plan="of another", found={earlier: False}).save(world.tree)
        for name in (earlier, f"{earlier}.partial", f"{earlier}.partial.etag"):
            world.tree.write(name, "of another ISO")
        await world.run(COMMAND)
        assert not world.tree.exists(IMPORTED)
        # RKE2 may need the complete archive if its next start is one without an upgrade.
        assert [path.name for path in world.tree.path(RKE2_IMAGES).glob("*v1.34*")] == ["rke2-v1.34.tar.zst"]
        assert world.tree.read(f"{WORK}/os/elemental.log") == "kept"


async def test_plan_of_the_same_name_starts_over(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        await world.run(COMMAND)
        plan = await world.client.get(UPGRADE_PLANS, PLAN)
        await world.client.delete(UPGRADE_PLANS, PLAN)
        await world.client.create(UPGRADE_PLANS, {**plan, "metadata": {"name": PLAN}})
        status = MergePatch({"status": plan["status"]})
        await world.client.patch(UPGRADE_PLANS, PLAN, status, subresource="status")
        world.tree.write(f"{IMPORTED}/rancher.tar.zst", "of another ISO")
        await world.run(COMMAND)
        assert is_prepared(world)


@pytest.mark.parametrize("was_there", [False, True])
async def test_post_drain_removes_only_what_the_upgrade_put_there(tmp_path: Path, *, was_there: bool) -> None:
    async with prepare_world(tmp_path) as world:
        user = f"{RKE2_IMAGES}/user.tar.zst"
        world.tree.write(user, "of a user")
        if was_there:
            world.tree.path(RKE2_ARCHIVE).write_bytes(world.iso.files["/bundle/rke2.tar.zst"])
        await world.run(COMMAND)
        # Another run finds what the first one put there.
        await world.run(COMMAND)
        context = world.context()
        await kept_archives.remove_archives(context)
        assert await kept_archives.archives_left(context) == ""
        left = {path for path in (*KEPT, user) if world.tree.exists(path)}
        agent = {path for path in KEPT if not path.startswith(RKE2_IMAGES)}
        assert left == {user, *agent, *([RKE2_ARCHIVE] if was_there else [])}


async def test_service_account_without_permission_is_named(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:

        class _Refusing:
            async def get(self, *_: object) -> object:
                raise Forbidden("get upgradeplans: 403")

        with pytest.raises(StepFailed) as raised:
            await world.run(COMMAND, client=_Refusing())
        assert str(raised.value) == (
            "check-version: the service account of this Pod may not read UpgradePlan demo. "
            "Allow it `get` on upgradeplans.management.harvesterhci.io"
        )


def _checksums(world: ToolkitWorld) -> Checksums:
    return Checksums({path: sha256(content).hexdigest() for path, content in world.iso.files.items()})


@pytest.mark.rule("nodes: an archive that was changed on its way is refused before containerd or RKE2 sees it")
@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("/bundle/rancher.tar.zst", "import-images"),
        ("/bundle/rke2.tar.zst", "import-images"),
        ("/bundle/agent.tar.zst", "keep-archives"),
        ("/bundle/agent.txt", "keep-archives"),
    ],
)
async def test_changed_file_reaches_neither_containerd_nor_rke2(tmp_path: Path, path: str, step: str) -> None:
    async with prepare_world(tmp_path) as world:
        good = dict(world.iso.files)
        world.checksums = _checksums(world)
        images = (RANCHER, BUSYBOX, ETCD, AGENT)
        world.iso.files[path] = image_archive(*images, "docker.io/a/backdoor:v1") if "tar" in path else b"backdoor:v1\n"
        with pytest.raises(WrongChecksum, match=f"^{step}: {path} has the SHA-256 "):
            await world.run(COMMAND)
        assert "docker.io/a/backdoor:v1" not in world.programs.state.images
        assert not list(world.tree.root.rglob(f"{path.rpartition('/')[2]}*"))
        world.iso.files = good
        await world.run(COMMAND)
        assert is_prepared(world)


async def test_file_of_a_user_stays_when_the_download_is_bad(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        world.programs.state.images = [RANCHER, BUSYBOX]
        world.tree.write(RKE2_ARCHIVE, "of a user")
        world.iso.files["/bundle/rke2.tar.zst"] = world.iso.files["/bundle/rke2.tar.zst"][:-1] + b"\0"
        with pytest.raises(BadArchive, match=r"^import-images: rke2\.tar\.zst is corrupt: "):
            await world.run(COMMAND)
        assert world.tree.read(RKE2_ARCHIVE) == "of a user"


async def test_files_that_stay_on_the_host_are_recorded(tmp_path: Path) -> None:
    async with prepare_world(tmp_path) as world:
        await world.run(COMMAND)
        assert ImageRecord.load(world.tree).found == dict.fromkeys(KEPT, False)
