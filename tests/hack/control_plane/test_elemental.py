"""The part of a module that elemental needs, from the version that is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.control_plane.assets import GO_FOLDER, AssetsError
from hack.control_plane.elemental import (
    MODULE,
    VERSIONS,
    expected_elemental,
    find_elemental,
    osutil_version,
    write_osutil,
)

SOURCE = 'package sha512_crypt\n\nimport "github.com/tredoe/osutil/user/crypt/common"\n'


def test_osutil_is_copied_under_the_path_that_elemental_imports(tmp_path: Path) -> None:
    source = tmp_path / f"modules/{MODULE}@{osutil_version()}/user/crypt/sha512_crypt"
    source.mkdir(parents=True)
    (source / "sha512_crypt.go").write_text(SOURCE)
    (source / "sha512_crypt_test.go").write_text("package sha512_crypt\n")
    target = tmp_path / "osutil"
    write_osutil(tmp_path / "modules", target)
    assert (target / "go.mod").read_text() == "module github.com/tredoe/osutil/v2\n\ngo 1.17\n"
    (copied,) = target.rglob("*.go")
    assert copied.relative_to(target) == Path("userutil/crypt/sha512_crypt/sha512_crypt.go")
    assert copied.read_text() == SOURCE.replace("osutil/user/crypt", "osutil/v2/userutil/crypt")


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_replace_osutil_by_the_copy(version: str) -> None:
    pinned = (GO_FOLDER / f"elemental-{version}/go.mod").read_text()
    assert f"v{version}\n" in pinned
    assert "replace github.com/tredoe/osutil/v2 => ./osutil\n" in pinned


def test_version_that_is_not_built_is_an_error_with_its_remedy(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    with pytest.raises(AssetsError, match=r"elemental 0\.3\.1 is not built: run `make elemental`"):
        find_elemental("0.3.1", environ)
    assert expected_elemental("0.3.1", environ) != expected_elemental("1.3.0", environ)
