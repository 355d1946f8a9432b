from __future__ import annotations

import io
import tarfile

import pytest

from tests.support.toolkit.image_archives import entry, tar
from upgrade_manager.toolkit.images import tar_entries
from upgrade_manager.toolkit.images.tar_entries import EntryChecker
from upgrade_manager.toolkit.run.errors import BadArchive

LAYER = b"layer" * 300
LONG = "blobs/" + "d/" * 60 + "layer.tar"
SYMLINK, HARDLINK = tarfile.SYMTYPE, tarfile.LNKTYPE


def _check(archive: bytes, *, piece: int = 1000) -> None:
    checker = EntryChecker("a.tar.zst")
    for start in range(0, len(archive), piece):
        checker.feed(archive[start : start + piece])
    checker.finish()


def _link(name: str, target: str, kind: bytes = SYMLINK) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, type=kind, linkname=target), b""


def _header(name: str, *, size: int = 0, **fields: object) -> bytes:
    return entry(name, size=size, **fields).tobuf(tarfile.GNU_FORMAT)


def _extended(kind: bytes, content: bytes) -> bytes:
    """Return an extension header with its content."""
    return _header("@", size=len(content), type=kind) + content.ljust(-(-len(content) // 512) * 512, b"\0")


END = bytes(1024)


@pytest.mark.parametrize("piece", [1, 511, 512, 4096])
@pytest.mark.parametrize(
    "archive",
    [
        pytest.param(tar((entry("manifest.json"), b"[]")), id="file"),
        pytest.param(tar((entry("./a"), LAYER), (entry("./"), b""), (entry("d", type=tarfile.DIRTYPE), b"")), id="dot"),
        pytest.param(tar((entry("a/layer.tar"), LAYER), _link("b/layer.tar", "../a/layer.tar")), id="shared-layer"),
        pytest.param(tar((entry("a/l"), LAYER), _link("b/l", "a/l", HARDLINK)), id="hard-link"),
        pytest.param(tar((entry(LONG), LAYER), _link("b", LONG), _link("c", LONG, HARDLINK)), id="gnu-long-names"),
        pytest.param(tar((entry(LONG), LAYER), _link("b" * 120, LONG), format=tarfile.PAX_FORMAT), id="pax-long-names"),
        pytest.param(tar((entry("ü" * 90, pax_headers={"comment": "x"}), LAYER), format=tarfile.PAX_FORMAT), id="pax"),
        pytest.param(tar((entry("a"), b"")), id="empty-file"),
        pytest.param(_extended(b"g", b"13 comment=x\n")[:1024] + _header("a") + END, id="global-comment"),
        pytest.param(_extended(b"x", b"12 size=512\n") + _header("a") + bytes(512) + END, id="pax-size"),
    ],
)
def test_archives_of_images_pass(archive: bytes, piece: int) -> None:
    _check(archive, piece=piece)


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        pytest.param(tar((entry("/etc/passwd"), b"")), "'/etc/passwd' has a path outside", id="absolute"),
        pytest.param(tar((entry("a/../../b"), b"")), "'a/../../b' has a path outside", id="parent"),
        pytest.param(
            _extended(b"L", b"../x\0") + _header("a") + END, "'../x' has a path outside", id="long-name-parent"
        ),
        pytest.param(
            _extended(b"x", b"13 path=/etc\n") + _header("a") + END, "'/etc' has a path outside", id="pax-absolute"
        ),
        pytest.param(
            _extended(b"x", b"10 path=a\n") + _header("/etc") + END, "'a' has a path outside", id="hidden-absolute"
        ),
        pytest.param(_extended(b"L", b"\0") + _header("a") + END, "'' has a path outside", id="empty-name"),
        pytest.param(tar(_link("a", "/etc/shadow")), "links to '/etc/shadow'", id="absolute-link"),
        pytest.param(tar(_link("a/b", "../../x")), "links to '../../x'", id="link-leaves"),
        pytest.param(tar(_link("a", "..")), "links to '..'", id="link-to-parent"),
        pytest.param(tar(_link("a/b", "../x", HARDLINK)), "links to '../x'", id="hard-link-leaves"),
        pytest.param(tar(_link("a", "/x", HARDLINK)), "links to '/x'", id="absolute-hard-link"),
        pytest.param(_extended(b"K", b"/x\0") + _header("a", type=SYMLINK, linkname="b") + END, "'/x'", id="long-link"),
        pytest.param(tar(_link("a", "b/c"), (entry("a/x"), b"")), "'a/x' lies below a link", id="below-a-link"),
        pytest.param(
            tar(_link("x/y/z", "../.."), _link("x/y/z/l", "../..")), "'x/y/z/l' lies below", id="link-below-a-link"
        ),
        pytest.param(tar((entry("a", type=tarfile.CHRTYPE), b"")), "'a' is neither a file", id="device"),
        pytest.param(tar((entry("a", type=tarfile.BLKTYPE), b"")), "'a' is neither a file", id="block-device"),
        pytest.param(tar((entry("a", type=tarfile.FIFOTYPE), b"")), "'a' is neither a file", id="fifo"),
        pytest.param(_header("a", type=tarfile.GNUTYPE_SPARSE) + END, "'a' is neither a file", id="gnu-sparse"),
        pytest.param(
            _extended(b"x", b"22 GNU.sparse.major=1\n") + _header("a") + END, "a sparse file", id="pax-sparse"
        ),
        pytest.param(
            _header("a", size=512, type=SYMLINK, linkname="b") + END, "has 512 bytes but", id="link-with-data"
        ),
        pytest.param(_header("a", size=512, type=tarfile.DIRTYPE) + END, "has 512 bytes but", id="directory-with-data"),
        pytest.param(_extended(b"g", b"10 path=a\n") + END, "a global header for path", id="global-path"),
        pytest.param(_extended(b"x", b"11 size=-1\n") + END, "the size '-1'", id="pax-negative-size"),
        pytest.param(_extended(b"x", b"99 path=a\n") + END, "invalid extension header", id="pax-length"),
        pytest.param(_extended(b"x", b"garbage") + END, "invalid extension header", id="pax-garbage"),
        pytest.param(
            _extended(b"L", b"a\0") + _extended(b"x", b"10 path=b\n") + END, "an entry with two names", id="two-names"
        ),
        pytest.param(_header("@", size=2**20 + 1, type=b"L") + END, "1048577 bytes", id="long-name-of-a-megabyte"),
        pytest.param(_header("@", size=2**40, type=b"x") + END, "1099511627776 bytes", id="pax-of-a-terabyte"),
        pytest.param(b"\x7fELF" + bytes(2000), "is not a tar archive", id="other-data"),
        pytest.param(tar((entry("a"), LAYER))[:1024], "ends in the middle", id="truncated-content"),
        pytest.param(_header("a"), "ends in the middle", id="without-end"),
        pytest.param(_header("a")[:100], "ends in the middle", id="truncated-header"),
        pytest.param(b"", "ends in the middle", id="empty"),
        pytest.param(tar((entry("a"), b"")) + _header("b") + END, "data after its end", id="second-archive"),
        pytest.param(END + b"x", "ends in the middle", id="rubbish-at-the-end"),
    ],
)
def test_other_archives_are_refused(archive: bytes, message: str) -> None:
    for piece in (1, 4096):
        with pytest.raises(BadArchive) as raised:
            _check(archive, piece=piece)
        assert str(raised.value).startswith("a.tar.zst")
        assert message in str(raised.value)


def test_content_larger_than_the_octal_field_is_skipped() -> None:
    """Sizes from 8 GiB on are in base 256."""
    size = 9 * 1024**3
    header = _header("layer.tar", size=size)
    assert header[124] == 0x80
    checker = EntryChecker("a.tar.zst")
    checker.feed(header)
    piece = bytes(64 * 1024 * 1024)
    for _ in range(size // len(piece)):
        checker.feed(piece)
    checker.feed(_header("/x")[:511])
    with pytest.raises(BadArchive, match="'/x' has a path outside"):
        checker.feed(_header("/x")[511:])


def test_number_of_links_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_entries, "_MAX_LINKS", 3)
    with pytest.raises(BadArchive, match="more than 3 links"):
        _check(tar(*(_link(str(number), "x") for number in range(4))))


def test_tarfile_reads_the_same_names() -> None:
    """The rows above are archives that a real parser takes for what they claim to be."""
    archive = tar((entry(LONG), LAYER), _link("b", LONG), format=tarfile.PAX_FORMAT)
    with tarfile.open(fileobj=io.BytesIO(archive)) as content:
        assert [(one.name, one.linkname) for one in content] == [(LONG, ""), ("b", LONG)]
