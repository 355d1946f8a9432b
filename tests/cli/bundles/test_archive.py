"""The file of a bundle."""

from __future__ import annotations

import os

import pytest

from upgrade_manager.cli.bundles.archive import LOGS, MAX_BYTES, bounded, packed


def test_equal_contents_give_equal_bytes() -> None:
    files = {"b": b"1", "a/c": b"2"}
    assert packed("x", files) == packed("x", dict(reversed(files.items())))
    assert packed("x", files) != packed("y", files)


def test_end_of_a_log_is_kept() -> None:
    lines = b"".join(b"line %d\n" % one for one in range(200_000))
    kept, cut = bounded({f"{LOGS}a": lines, "objects/a": lines})
    assert kept["objects/a"] == lines
    assert cut == {f"{LOGS}a": len(lines)}
    log = kept[f"{LOGS}a"]
    assert lines.endswith(log)
    assert log.startswith(b"line ")
    assert 900_000 < len(log) <= 1_000_000


def test_line_without_an_end_is_cut() -> None:
    kept, _ = bounded({f"{LOGS}a": b"x" * 3_000_000})
    assert len(kept[f"{LOGS}a"]) == 1_000_000


@pytest.mark.full
@pytest.mark.rule("bundle: it has at most 20 MB")
def test_logs_are_cut_until_the_file_fits() -> None:
    noise = {f"{LOGS}{one}": os.urandom(1_000_000) for one in range(30)}
    kept, cut = bounded(noise)
    assert len(packed("a", kept)) <= MAX_BYTES
    assert len(cut) == 30
