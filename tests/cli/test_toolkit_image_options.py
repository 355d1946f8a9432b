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
        pytest.param([], {}, id="defaults"),
        pytest.param(["--toolkit-kind=harvester"], {}, id="kind harvester"),
        pytest.param(
            ["--toolkit-kind=own", f"--toolkit-image={MINE}"], {"kind": ToolkitKind.OWN, "image": MINE}, id="kind own"
        ),
        pytest.param([f"--toolkit-image={MINE}"], {"image": MINE}, id="a mirror of Harvester's"),
        pytest.param([f"--toolkit-image={PINNED}"], {"image": PINNED}, id="a digest"),
        pytest.param(["--toolkit-tag=v1.8.0"], {"tag": "v1.8.0"}, id="a tag"),
        pytest.param(
            [f"--toolkit-image={MINE}", "--toolkit-image-prefix=a", "--toolkit-image-prefix", "registry:5000"],
            {"image": MINE, "prefixes": ("a", "registry:5000")},
            id="prefixes",
        ),
        pytest.param(
            ["--toolkit-image-prefix=rancher"], {"prefixes": ("rancher",)}, id="a prefix of the published one"
        ),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_flag_sets_its_option(command: str, flags: list[str], expected: dict[str, object]) -> None:
    assert config(command, *flags) == ToolkitConfig(version=__version__, **expected)  # type: ignore[arg-type]


@pytest.mark.rule(
    "workloads: a repository outside the prefixes is refused; by default both that are in use are allowed"
)
@pytest.mark.parametrize(
    ("flags", "allowed"),
    [
        pytest.param([], (PUBLISHED,), id="the published one"),
        pytest.param([f"--toolkit-image={PINNED}"], ("me/toolkit", PUBLISHED), id="the configured one, too"),
        pytest.param(
            [f"--toolkit-image={MINE}", "--toolkit-image-prefix=registry"], ("registry",), id="only the given"
        ),
    ],
)
def test_default_prefixes_are_the_repositories_in_use(flags: list[str], allowed: tuple[str, ...]) -> None:
    assert config("run", *flags).allowed == allowed


@pytest.mark.rule("workloads: an invalid flag about the toolkit image is refused at the start, with exit status 2")
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param(
            ["--toolkit-kind=mine"],
            "argument --toolkit-kind: invalid choice: 'mine' (choose from 'own', 'harvester')",
            id="not a kind",
        ),
        pytest.param(
            ["--toolkit-kind=own"], "--toolkit-kind own needs --toolkit-image", id="kind own without an image"
        ),
        pytest.param(
            ["--toolkit-image=me/toolkit:v1"],
            "argument --toolkit-image: 'me/toolkit:v1' is not of the form REPOSITORY or REPOSITORY@sha256: and 64 "
            "hexadecimal digits; a tag belongs in --toolkit-tag",
            id="a tag in the image",
        ),
        pytest.param(["--toolkit-image=me/toolkit@sha256:12"], "a tag belongs in --toolkit-tag", id="not a digest"),
        pytest.param(["--toolkit-image="], "argument --toolkit-image: '' is not of the form", id="an empty image"),
        pytest.param(
            ["--toolkit-tag=a/b"],
            "argument --toolkit-tag: 'a/b' is not a valid tag of a container image",
            id="not a tag",
        ),
        pytest.param(
            ["--toolkit-image-prefix=me/"],
            "argument --toolkit-image-prefix: 'me/' is not a registry, or a repository or the beginning of one",
            id="not a prefix",
        ),
        pytest.param(["--toolkit-image-prefix="], "'' is not a registry", id="an empty prefix"),
        pytest.param(["--toolkit-image-prefix=me/toolkit:v1"], "is not a registry", id="a tag in a prefix"),
        pytest.param(
            [f"--toolkit-image={PINNED}", "--toolkit-image-prefix=me/tool", "--toolkit-image-prefix=rancher"],
            "no --toolkit-image-prefix matches me/toolkit, the repository of --toolkit-image",
            id="image outside the prefixes",
        ),
        pytest.param(
            ["--toolkit-image-prefix=me"],
            f"no --toolkit-image-prefix matches {PUBLISHED}, the repository used without --toolkit-image",
            id="published one outside the prefixes",
        ),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_invalid_flag_is_one_line(
    capsys: pytest.CaptureFixture[str], command: str, flags: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        config(command, *flags)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert error.endswith(f"(see upgrade-manager {command} --help)\n")
