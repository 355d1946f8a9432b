from __future__ import annotations

import pytest

from upgrade_manager import __version__
from upgrade_manager.api.image_name import ImageName
from upgrade_manager.api.keys import ToolkitKind
from upgrade_manager.api.toolkit_image import ToolkitConfig
from upgrade_manager.cli.options import RunOptions, parse_options
from upgrade_manager.cli.user_options import PreflightOptions

COMMANDS = ("run", "webhook", "preflight")
DIGEST = "sha256:" + "0a" * 32
MINE = ImageName(repository="registry:5000/me/toolkit")
PINNED = ImageName(repository="me/toolkit", digest=DIGEST)
PUBLISHED = "rancher/harvester-upgrade-toolkit"


def config(command: str, *flags: str) -> ToolkitConfig:
    options = parse_options([command, *flags], {})
    assert isinstance(options, RunOptions | PreflightOptions)
    assert options.toolkit.version == __version__
    return options.toolkit


@pytest.mark.rule("workloads: the flags about the toolkit image are those of run, webhook and preflight")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", {}),
        ("--toolkit-kind=harvester", {}),
        (f"--toolkit-kind=own --toolkit-image={MINE}", {"kind": ToolkitKind.OWN, "image": MINE}),
        (f"--toolkit-image={MINE}", {"image": MINE}),
        (f"--toolkit-image={PINNED}", {"image": PINNED}),
        ("--toolkit-tag=v1.8.0", {"tag": "v1.8.0"}),
        ("--toolkit-image-prefix=rancher", {"prefixes": ("rancher",)}),
        (
            f"--toolkit-image={MINE} --toolkit-image-prefix=a --toolkit-image-prefix registry:5000",
            {"image": MINE, "prefixes": ("a", "registry:5000")},
        ),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_flag_sets_its_option(command: str, flags: str, expected: dict[str, object]) -> None:
    assert config(command, *flags.split()) == ToolkitConfig(version=__version__, **expected)  # type: ignore[arg-type]


@pytest.mark.rule(
    "workloads: a repository outside the prefixes is refused; by default both that are in use are allowed"
)
@pytest.mark.parametrize(
    ("flags", "allowed"),
    [
        ("", (PUBLISHED,)),
        (f"--toolkit-image={PINNED}", ("me/toolkit", PUBLISHED)),
        (f"--toolkit-image={MINE} --toolkit-image-prefix=registry", ("registry",)),
    ],
)
def test_default_prefixes_are_the_repositories_in_use(flags: str, allowed: tuple[str, ...]) -> None:
    assert config("run", *flags.split()).allowed == allowed


#: Flags, and a part of the line that refuses them.
INVALID = {
    "--toolkit-kind=mine": "argument --toolkit-kind: invalid choice: 'mine' (choose from 'own', 'harvester')",
    "--toolkit-kind=own": "--toolkit-kind own needs --toolkit-image",
    "--toolkit-image=me/toolkit:v1": "'me/toolkit:v1' is not of the form REPOSITORY or REPOSITORY@sha256: and 64 "
    "hexadecimal digits; a tag belongs in --toolkit-tag",
    "--toolkit-image=me/toolkit@sha256:12": "a tag belongs in --toolkit-tag",
    "--toolkit-image=": "argument --toolkit-image: '' is not of the form",
    "--toolkit-tag=a/b": "argument --toolkit-tag: 'a/b' is not a valid tag of a container image",
    "--toolkit-image-prefix=me/": "'me/' is not a registry, or a repository or the beginning of one",
    "--toolkit-image-prefix=": "'' is not a registry",
    "--toolkit-image-prefix=me/toolkit:v1": "argument --toolkit-image-prefix: 'me/toolkit:v1' is not a registry",
    f"--toolkit-image={PINNED} --toolkit-image-prefix=me/tool --toolkit-image-prefix=rancher": (
        "no --toolkit-image-prefix matches me/toolkit, the repository of --toolkit-image"
    ),
    "--toolkit-image-prefix=me": (
        f"no --toolkit-image-prefix matches {PUBLISHED}, the repository used without --toolkit-image"
    ),
}


@pytest.mark.rule("workloads: an invalid flag about the toolkit image is refused at the start, with exit status 2")
@pytest.mark.parametrize("flags", INVALID)
@pytest.mark.parametrize("command", COMMANDS)
def test_invalid_flag_is_one_line(capsys: pytest.CaptureFixture[str], command: str, flags: str) -> None:
    with pytest.raises(SystemExit) as caught:
        config(command, *flags.split())
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert INVALID[flags] in error
    assert error.count("\n") == 1
    assert error.endswith(f"(see upgrade-manager {command} --help)\n")
