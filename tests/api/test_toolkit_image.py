"""One row for each sentence of the rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from upgrade_manager.api import keys
from upgrade_manager.api.annotations import BadAnnotation, PlanAnnotations
from upgrade_manager.api.image_name import ImageName
from upgrade_manager.api.keys import ToolkitKind
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.api.status import ToolkitImageStatus
from upgrade_manager.api.toolkit_image import (
    ToolkitChoice,
    ToolkitConfig,
    ToolkitRefusal,
    decide,
    decide_as_before,
    origin,
    read_choice,
)

MANAGER, PUBLISHED = "0.1.0", "rancher/harvester-upgrade-toolkit"
DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
BY_VERSION, BY_IMAGE = {"version": "v1.8.0"}, {"image": "iso"}
IMAGE, KIND = keys.ANNOTATION_TOOLKIT_IMAGE, keys.ANNOTATION_TOOLKIT_KIND
#: Without flags.
NONE = ToolkitConfig(version=MANAGER)
OWN = replace(NONE, kind=ToolkitKind.OWN, image=ImageName(repository="me/own"), prefixes=("me", PUBLISHED))
MIRROR = replace(NONE, image=ImageName(repository="me/mirror"))
PINNED = replace(MIRROR, image=ImageName(repository="me/mirror", digest=DIGEST), prefixes=("me",))
TAGGED = replace(MIRROR, tag="v9")
ANY = replace(NONE, prefixes=("me", PUBLISHED))
FLAG = "the manager's --toolkit-image"


def chosen(
    spec: dict[str, Any], annotations: dict[str, str], config: ToolkitConfig
) -> ToolkitChoice | tuple[tuple[str, str], ...]:
    decision = decide(UpgradePlanSpec.read(spec), PlanAnnotations(annotations), config)
    if isinstance(decision, ToolkitRefusal):
        return tuple((problem.field, problem.message) for problem in decision.problems)
    return decision


@pytest.mark.rule(
    "workloads: the toolkit's kind is the annotation's, else --toolkit-kind, else harvester",
    "workloads: the toolkit's kind is not inferred from the image's name",
    "workloads: the toolkit's repository is the annotation's, else --toolkit-image, else the published one",
    "workloads: a digest of the annotation or of --toolkit-image wins over every tag",
    "workloads: --toolkit-image and --toolkit-tag belong to --toolkit-kind",
    "workloads: the toolkit's tag is spec.upgrade, else --toolkit-tag, else by kind",
    "api: upgrade overrides the toolkit image's tag",
    "workloads: of kind own the tag is the manager's version, of kind harvester the Version's name",
    "workloads: the tag of an image plan of kind harvester is a guess where nothing names it",
)
@pytest.mark.parametrize(
    ("spec", "annotations", "config", "image", "kind"),
    [
        pytest.param(BY_VERSION, {}, NONE, f"{PUBLISHED}:v1.8.0", "harvester", id="defaults"),
        pytest.param(BY_VERSION, {}, OWN, f"me/own:{MANAGER}", "own", id="kind of the flag"),
        pytest.param(
            BY_VERSION, {KIND: "own", IMAGE: "me/x"}, ANY, f"me/x:{MANAGER}", "own", id="kind of the annotation"
        ),
        pytest.param(
            BY_VERSION, {IMAGE: "me/own-toolkit"}, ANY, "me/own-toolkit:v1.8.0", "harvester", id="a name shows no kind"
        ),
        pytest.param(
            BY_VERSION, {IMAGE: f"{PUBLISHED}"}, OWN, f"{PUBLISHED}:{MANAGER}", "own", id="nor does the published name"
        ),
        pytest.param(BY_VERSION, {}, MIRROR, "me/mirror:v1.8.0", "harvester", id="repository of the flag"),
        pytest.param(BY_VERSION, {IMAGE: "me/x"}, ANY, "me/x:v1.8.0", "harvester", id="repository of the annotation"),
        pytest.param(
            BY_VERSION, {IMAGE: f"me/x@{OTHER}"}, ANY, f"me/x@{OTHER}", "harvester", id="digest of the annotation"
        ),
        pytest.param(BY_VERSION, {}, PINNED, f"me/mirror@{DIGEST}", "harvester", id="digest of the flag"),
        pytest.param(
            BY_VERSION, {IMAGE: f"me/x@{OTHER}"}, PINNED, f"me/x@{OTHER}", "harvester", id="annotation before flag"
        ),
        pytest.param(
            {**BY_VERSION, "upgrade": "fix"},
            {},
            replace(PINNED, tag="v9"),
            f"me/mirror@{DIGEST}",
            "harvester",
            id="digest before tags",
        ),
        pytest.param(
            BY_VERSION, {KIND: "harvester"}, OWN, f"{PUBLISHED}:v1.8.0", "harvester", id="another kind: published"
        ),
        pytest.param(
            BY_VERSION,
            {KIND: "harvester", IMAGE: "me/x"},
            OWN,
            "me/x:v1.8.0",
            "harvester",
            id="another kind: the annotation's",
        ),
        pytest.param(
            BY_VERSION,
            {KIND: "harvester"},
            replace(OWN, tag="v9"),
            f"{PUBLISHED}:v1.8.0",
            "harvester",
            id="another kind: not the flag's tag",
        ),
        pytest.param(BY_VERSION, {KIND: "own"}, OWN, f"me/own:{MANAGER}", "own", id="the same kind: the flag's image"),
        pytest.param(
            {**BY_VERSION, "upgrade": "fix"},
            {},
            TAGGED,
            "me/mirror:fix",
            "harvester",
            id="spec.upgrade before the flag",
        ),
        pytest.param(BY_VERSION, {}, TAGGED, "me/mirror:v9", "harvester", id="tag of the flag"),
        pytest.param(BY_IMAGE, {}, TAGGED, "me/mirror:v9", "harvester", id="tag of the flag for an image plan"),
        pytest.param(
            {**BY_IMAGE, **BY_VERSION}, {}, NONE, f"{PUBLISHED}:v1.8.0", "harvester", id="an image plan with a version"
        ),
        pytest.param(BY_IMAGE, {}, OWN, f"me/own:{MANAGER}", "own", id="an image plan of kind own"),
        pytest.param(
            BY_VERSION,
            {},
            replace(OWN, version="0.2.0+dev"),
            "me/own:0.2.0-dev",
            "own",
            id="a version that is not valid as a tag",
        ),
    ],
)
def test_each_sentence_of_the_rule_decides(
    spec: dict[str, Any], annotations: dict[str, str], config: ToolkitConfig, image: str, kind: str
) -> None:
    choice = chosen(spec, annotations, config)
    assert isinstance(choice, ToolkitChoice), choice
    assert (str(choice), choice.kind, choice.guessed) == (image, kind, False)


@pytest.mark.rule("workloads: the tag of an image plan of kind harvester is a guess where nothing names it")
@pytest.mark.parametrize("annotations", [{}, {IMAGE: "me/x"}], ids=["published", "annotation"])
def test_tag_of_an_image_plan_is_a_guess(annotations: dict[str, str]) -> None:
    choice = chosen(BY_IMAGE, annotations, ANY)
    assert isinstance(choice, ToolkitChoice)
    assert (str(choice), choice.guessed) == (f"{annotations.get(IMAGE, PUBLISHED)}:{MANAGER}", True)
    [remark] = choice.remarks
    assert remark == (
        f"The toolkit image's tag {MANAGER} is a guess, the manager's version, because an image plan names no release. "
        "If the registry lacks it, create a plan with spec.upgrade set to the toolkit's tag"
    )


def test_digest_leaves_nothing_to_guess() -> None:
    choice = chosen(BY_IMAGE, {}, PINNED)
    assert isinstance(choice, ToolkitChoice)
    assert (choice.guessed, choice.remarks) == (False, ())


ALLOWED = f"{PUBLISHED}. Use one of them, or allow it by the manager's --toolkit-image-prefix"


@pytest.mark.rule(
    "workloads: kind own without an image of that kind is refused",
    "workloads: a repository outside the prefixes is refused; by default both that are in use are allowed",
    "api: a tag in upgrade-toolkit-image is refused: it belongs in spec.upgrade",
)
@pytest.mark.parametrize(
    ("spec", "annotations", "config", "problems"),
    [
        pytest.param(
            BY_VERSION,
            {KIND: "own"},
            NONE,
            [(f"metadata.annotations[{KIND}]", f"Name an image by annotation {IMAGE}")],
            id="kind own",
        ),
        pytest.param(
            BY_VERSION,
            {IMAGE: "me/x:v1", KIND: "mine"},
            ANY,
            [
                (f"metadata.annotations[{IMAGE}]", "a tag belongs in spec.upgrade"),
                (f"metadata.annotations[{KIND}]", "Set it to own or harvester"),
            ],
            id="a tag and another kind",
        ),
        pytest.param(
            BY_VERSION,
            {IMAGE: "me/x"},
            NONE,
            [(f"metadata.annotations[{IMAGE}]", f"that this manager allows: {ALLOWED}")],
            id="outside the default prefix",
        ),
        pytest.param(
            BY_VERSION,
            {IMAGE: f"evil/x@{DIGEST}"},
            MIRROR,
            [(f"metadata.annotations[{IMAGE}]", f"that this manager allows: me/mirror, {ALLOWED}")],
            id="outside both default prefixes",
        ),
        pytest.param(
            BY_VERSION,
            {KIND: "harvester"},
            replace(OWN, prefixes=("me",)),
            [(f"metadata.annotations[{KIND}]", "that this manager allows: me. Use")],
            id="the published one outside the prefixes",
        ),
        pytest.param(
            {"version": "v1." + "8" * 130},
            {},
            NONE,
            [("spec.upgrade", "is not valid as a tag of the toolkit image. Set spec.upgrade")],
            id="a version that is too long for a tag",
        ),
    ],
)
def test_refusal_names_the_field_and_what_to_do(
    spec: dict[str, Any], annotations: dict[str, str], config: ToolkitConfig, problems: list[tuple[str, str]]
) -> None:
    found = chosen(spec, annotations, config)
    assert isinstance(found, tuple)
    assert [field for field, _ in found] == [field for field, _ in problems]
    for (_, message), (_, expected) in zip(found, problems, strict=True):
        assert expected in message


@pytest.mark.rule("workloads: a digest that is dropped and a tag that is ignored or can move are reported")
@pytest.mark.parametrize(
    ("spec", "annotations", "config", "remark"),
    [
        pytest.param(
            {**BY_VERSION, "upgrade": "fix"},
            {},
            PINNED,
            "spec.upgrade fix has no effect on the toolkit image, which the digest of the manager's --toolkit-image",
            id="digest of the flag",
        ),
        pytest.param(
            {**BY_VERSION, "upgrade": "fix"},
            {IMAGE: f"me/x@{OTHER}"},
            ANY,
            f"spec.upgrade fix has no effect on the toolkit image, which the digest of annotation {IMAGE} decides",
            id="digest of the annotation",
        ),
        pytest.param(
            BY_VERSION,
            {IMAGE: "me/x"},
            PINNED,
            "The digest of the manager's --toolkit-image does not apply to me/x, which is used instead and not pinned",
            id="an annotation without a digest",
        ),
    ],
)
def test_nothing_is_dropped_in_silence(
    spec: dict[str, Any], annotations: dict[str, str], config: ToolkitConfig, remark: str
) -> None:
    choice = chosen(spec, annotations, config)
    assert isinstance(choice, ToolkitChoice)
    assert [one for one in choice.remarks if one.startswith(remark)] == list(choice.remarks) != []
    recorded = ToolkitImageStatus.read(choice.entry(PlanAnnotations(annotations)))
    assert read_choice(recorded, UpgradePlanSpec.read(spec), config) == choice


def test_summary_says_whether_the_image_can_change() -> None:
    assert isinstance(pinned := chosen(BY_VERSION, {}, PINNED), ToolkitChoice)
    assert isinstance(moving := chosen(BY_VERSION, {}, OWN), ToolkitChoice)
    assert pinned.summary == f"me/mirror@{DIGEST} (kind harvester), pinned by its digest"
    assert moving.summary == f"me/own:{MANAGER} (kind own), not pinned: a push to the registry can move the tag"


@pytest.mark.parametrize(
    ("spec", "annotations", "config", "entry"),
    [
        pytest.param(
            BY_VERSION,
            {},
            NONE,
            {"repository": PUBLISHED, "tag": "v1.8.0", "kind": "harvester"},
            id="only what it needs",
        ),
        pytest.param(
            BY_IMAGE,
            {},
            NONE,
            {"repository": PUBLISHED, "tag": MANAGER, "kind": "harvester", "guessed": True},
            id="a guess",
        ),
        pytest.param(
            BY_VERSION,
            {IMAGE: f" me/x@{OTHER}", KIND: "own"},
            ANY,
            {
                "repository": "me/x",
                "tag": MANAGER,
                "digest": OTHER,
                "kind": "own",
                "annotatedImage": f" me/x@{OTHER}",
                "annotatedKind": "own",
            },
            id="annotations",
        ),
    ],
)
def test_record_reads_back_as_the_choice(
    spec: dict[str, Any], annotations: dict[str, str], config: ToolkitConfig, entry: dict[str, Any]
) -> None:
    choice = chosen(spec, annotations, config)
    assert isinstance(choice, ToolkitChoice)
    assert choice.entry(PlanAnnotations(annotations)) == entry
    assert read_choice(ToolkitImageStatus.read(entry), UpgradePlanSpec.read(spec), config) == choice


@pytest.mark.rule("workloads: an upgrade that version 0.1 began keeps its image: repository and tag by its rule")
@pytest.mark.parametrize(
    ("spec", "annotations", "release", "image", "guessed"),
    [
        pytest.param(BY_VERSION, {}, "v1.8.1", f"{PUBLISHED}:v1.8.1", False, id="the release"),
        pytest.param({**BY_VERSION, "upgrade": "fix"}, {}, "v1.8.1", f"{PUBLISHED}:fix", False, id="spec.upgrade"),
        pytest.param(BY_VERSION, {}, "", f"{PUBLISHED}:v1.8.0", False, id="before the release is known"),
        pytest.param(BY_IMAGE, {}, "", f"{PUBLISHED}:{MANAGER}", True, id="an image plan before that"),
        pytest.param(BY_VERSION, {IMAGE: "evil/x:v1"}, "v1.8.1", "evil/x:v1.8.1", False, id="outside the prefixes"),
        pytest.param(BY_VERSION, {IMAGE: f"me/x@{DIGEST}"}, "v1.8.1", "me/x:v1.8.1", False, id="without the digest"),
        pytest.param(BY_VERSION, {KIND: "own"}, "v1.8.1", f"{PUBLISHED}:v1.8.1", False, id="of kind harvester"),
    ],
)
def test_running_upgrade_keeps_its_image(
    spec: dict[str, Any], annotations: dict[str, str], release: str, image: str, *, guessed: bool
) -> None:
    read = (UpgradePlanSpec.read(spec), PlanAnnotations(annotations))
    choice = decide_as_before(*read, OWN, release=release)
    assert isinstance(choice, ToolkitChoice)
    assert (str(choice), choice.kind, choice.guessed) == (image, ToolkitKind.HARVESTER, guessed)
    recorded = read_choice(ToolkitImageStatus.read(choice.entry(read[1])), read[0], OWN)
    named = annotations.get(IMAGE, "")
    dropped = [f"Annotation {IMAGE} names {named}, of which version 0.1 of the manager uses the repository only"]
    assert list(recorded.ignored) == (dropped if ":" in named else [])


def test_invalid_annotation_of_a_running_upgrade_is_an_error() -> None:
    choice = decide_as_before(UpgradePlanSpec.read({}), PlanAnnotations({IMAGE: "$(id)"}), NONE, release="")
    assert isinstance(choice, BadAnnotation)


@pytest.mark.rule(
    "workloads: the blocker of a toolkit image that cannot be pulled names the source of repository and tag"
)
@pytest.mark.parametrize(
    ("spec", "annotations", "config", "expected"),
    [
        pytest.param(BY_VERSION, {}, NONE, "repository by default, tag v1.8.0 by spec.version", id="defaults"),
        pytest.param(
            {**BY_VERSION, "upgrade": "fix"}, {}, TAGGED, f"repository by {FLAG}, tag fix by spec.upgrade", id="spec"
        ),
        pytest.param(
            BY_VERSION, {}, TAGGED, f"repository by {FLAG}, tag v9 by the manager's --toolkit-tag", id="flags"
        ),
        pytest.param(
            BY_VERSION,
            {IMAGE: "me/x", KIND: "own"},
            ANY,
            f"repository by annotation {IMAGE}, tag {MANAGER} by the manager's version",
            id="annotation",
        ),
        pytest.param(BY_VERSION, {}, PINNED, f"repository and digest by {FLAG}", id="digest of the flag"),
        pytest.param(
            BY_VERSION,
            {IMAGE: f"me/x@{OTHER}"},
            ANY,
            f"repository and digest by annotation {IMAGE}",
            id="digest of the annotation",
        ),
        pytest.param(
            BY_IMAGE,
            {},
            NONE,
            f"repository by default, tag {MANAGER} is a guess, the manager's version: create a plan with spec.upgrade",
            id="a guess",
        ),
    ],
)
def test_sources_of_the_image_are_named(
    spec: dict[str, Any], annotations: dict[str, str], config: ToolkitConfig, expected: str
) -> None:
    choice = chosen(spec, annotations, config)
    assert isinstance(choice, ToolkitChoice)
    recorded = ToolkitImageStatus.read(choice.entry(PlanAnnotations(annotations)))
    assert origin(recorded, UpgradePlanSpec.read(spec), config) == expected


def test_source_that_no_flag_shows_is_the_earlier_manager() -> None:
    recorded = ToolkitImageStatus.read({"repository": "me/own", "tag": "v1", "kind": "own"})
    expected = f"repository by {FLAG}, tag v1 by the manager that began the upgrade"
    assert origin(recorded, UpgradePlanSpec.read(BY_VERSION), NONE) == expected
