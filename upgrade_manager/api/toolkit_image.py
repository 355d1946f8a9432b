"""The choice of an upgrade's toolkit image: a pure function of the plan and the manager's flags.

Initialize records the decision (`pipeline.toolkit_image`); the webhook and `upgrade-manager preflight` make the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api import keys
from upgrade_manager.api.annotations import BadAnnotation
from upgrade_manager.api.image_name import ImageName, is_allowed, is_tag
from upgrade_manager.api.keys import ToolkitKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.api.annotations import PlanAnnotations
    from upgrade_manager.api.spec import UpgradePlanSpec
    from upgrade_manager.api.status import ToolkitImageStatus

#: Characters of an invalid tag.
_MAX_SHOWN = 80
_IMAGE, _KIND = keys.ANNOTATION_TOOLKIT_IMAGE, keys.ANNOTATION_TOOLKIT_KIND
PUBLISHED = ImageName(repository=keys.DEFAULT_TOOLKIT_IMAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitConfig:
    """The manager's flags about the toolkit image."""

    #: The manager's version.
    version: str
    kind: ToolkitKind = ToolkitKind.HARVESTER
    image: ImageName = PUBLISHED
    #: Empty for the tag that follows from the kind.
    tag: str = ""
    #: Empty for the configured repository and the published one.
    prefixes: tuple[str, ...] = ()

    @property
    def allowed(self) -> tuple[str, ...]:
        """The prefixes of the repositories that a plan may use."""
        return self.prefixes or tuple(dict.fromkeys((self.image.repository, PUBLISHED.repository)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitChoice:
    """The toolkit image of an upgrade."""

    image: ImageName
    kind: ToolkitKind
    #: It names the image only where that has no digest.
    tag: str
    #: The tag is the manager's version, because nothing names the release.
    guessed: bool = False
    #: Names in the plan or in a flag that the decision does not use, as sentences.
    ignored: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the image as containers name it."""
        return str(self.image) if self.image.digest else f"{self.image}:{self.tag.replace('+', '-')}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about the choice, as sentences."""
        return (*((guess_message(self.tag),) if self.guessed else ()), *self.ignored)

    @property
    def summary(self) -> str:
        """The image, its kind, and whether it can change during the upgrade, for a line."""
        pinned = "pinned by its digest" if self.image.digest else "not pinned: a push to the registry can move the tag"
        return f"{self} (kind {self.kind}), {pinned}"

    def entry(self, annotations: PlanAnnotations) -> dict[str, Any]:
        """Return status.toolkitImage."""
        optional = {
            "digest": self.image.digest,
            "guessed": self.guessed,
            "annotatedImage": annotations.raw.get(_IMAGE),
            "annotatedKind": annotations.raw.get(_KIND),
        }
        required = {"repository": self.image.repository, "tag": self.tag, "kind": self.kind.value}
        return required | {key: value for key, value in optional.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The refusal of a toolkit image."""

    #: Path of the field of the plan.
    field: str
    #: The problem and the remedy.
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitRefusal:
    """The plan names an image that it may not have, or none."""

    problems: tuple[Problem, ...]


def is_own(recorded: object) -> bool:
    """Return True if `status.toolkitImage` records the toolkit of this project."""
    return isinstance(recorded, dict) and recorded.get("kind") == ToolkitKind.OWN


def decide(
    spec: UpgradePlanSpec, annotations: PlanAnnotations, config: ToolkitConfig
) -> ToolkitChoice | ToolkitRefusal:
    """Return the toolkit image of a plan, by the rule that docs/install.md describes."""
    named, kind = annotations.toolkit_image, annotations.toolkit_kind
    if isinstance(named, BadAnnotation) or isinstance(kind, BadAnnotation):
        bad = [one for one in (named, kind) if isinstance(one, BadAnnotation)]
        return ToolkitRefusal(problems=tuple(_annotation_problem(one.key, str(one)) for one in bad))
    kind = kind or config.kind
    # The configured image and its tag belong to the configured kind.
    is_configured = kind is config.kind
    if named is None and not is_configured and kind is ToolkitKind.OWN:
        return ToolkitRefusal(problems=(_annotation_problem(_KIND, _no_own_image(config)),))
    image = named or (config.image if is_configured else PUBLISHED)
    if not is_allowed(image.repository, config.allowed):
        key = _IMAGE if named else _KIND
        return ToolkitRefusal(problems=(_annotation_problem(key, _not_allowed(image, config)),))
    tag, guessed = _tag(spec, config, kind=kind, configured=config.tag if is_configured else "")
    if not image.digest and not is_tag(tag.replace("+", "-")):
        return ToolkitRefusal(problems=(Problem(field="spec.upgrade", message=_no_tag(tag)),))
    return ToolkitChoice(
        image=image,
        kind=kind,
        tag=tag,
        guessed=guessed and not image.digest,
        ignored=tuple(_ignored(spec, config, image=image, annotated=annotations.raw.get(_IMAGE, ""))),
    )


def decide_as_before(
    spec: UpgradePlanSpec, annotations: PlanAnnotations, config: ToolkitConfig, *, release: str
) -> ToolkitChoice | BadAnnotation:
    """Return the image of an upgrade that version 0.1 of the manager began, so that its objects keep their names.

    That version reads only the repository of the annotation, and uses the release's version once that is known; until
    then nothing but the repository's Deployment has the image.
    """
    repository = annotations.toolkit_repository
    if isinstance(repository, BadAnnotation):
        return repository
    tag = spec.upgrade or release or spec.version
    return ToolkitChoice(
        image=ImageName(repository=repository), kind=ToolkitKind.HARVESTER, tag=tag or config.version, guessed=not tag
    )


def read_choice(recorded: ToolkitImageStatus, spec: UpgradePlanSpec, config: ToolkitConfig) -> ToolkitChoice:
    """Return the decision that status.toolkitImage records."""
    image = ImageName(repository=recorded.repository, digest=recorded.digest)
    return ToolkitChoice(
        image=image,
        kind=ToolkitKind.OWN if recorded.kind == ToolkitKind.OWN else ToolkitKind.HARVESTER,
        tag=recorded.tag,
        guessed=recorded.guessed,
        ignored=tuple(_ignored(spec, config, image=image, annotated=recorded.annotated_image)),
    )


def origin(recorded: ToolkitImageStatus, spec: UpgradePlanSpec, config: ToolkitConfig) -> str:
    """Return which field, annotation or flag each part of the recorded image comes from, for the messages of blockers.

    The flags may have changed since the decision.
    """
    if recorded.annotated_image:
        source = f"annotation {_IMAGE}"
    else:
        source = "default" if recorded.repository == PUBLISHED.repository else "the manager's --toolkit-image"
    if recorded.digest:
        return f"repository and digest by {source}"
    return f"repository by {source}, tag {recorded.tag} {_tag_source(recorded, spec, config)}"


def _tag_source(recorded: ToolkitImageStatus, spec: UpgradePlanSpec, config: ToolkitConfig) -> str:
    if recorded.guessed:
        return "is a guess, the manager's version: create a plan with spec.upgrade"
    is_own = recorded.kind == ToolkitKind.OWN
    sources = {
        "spec.upgrade": spec.upgrade,
        "the manager's --toolkit-tag": config.tag,
        "the manager's version": config.version if is_own else "",
        "spec.version": "" if is_own else spec.version,
    }
    named = (source for source, tag in sources.items() if tag == recorded.tag)
    return f"by {next(named, 'the manager that began the upgrade')}"


def guess_message(tag: str) -> str:
    """Return what users have to know about a guessed tag."""
    return (
        f"The toolkit image's tag {tag} is a guess, the manager's version, because an image plan names no release. If "
        "the registry lacks it, create a plan with spec.upgrade set to the toolkit's tag"
    )


def _tag(spec: UpgradePlanSpec, config: ToolkitConfig, *, kind: ToolkitKind, configured: str) -> tuple[str, bool]:
    """Return the tag, and whether it is a guess."""
    if given := spec.upgrade or configured:
        return given, False
    if kind is ToolkitKind.OWN:
        return config.version, False
    return spec.version or config.version, not spec.version


def _ignored(spec: UpgradePlanSpec, config: ToolkitConfig, *, image: ImageName, annotated: str) -> Iterator[str]:
    named = annotated.strip()
    if named and named != str(image):
        yield f"Annotation {_IMAGE} names {named}, of which version 0.1 of the manager uses the repository only"
    if image.digest and spec.upgrade:
        whose = f"annotation {_IMAGE}" if named else "the manager's --toolkit-image"
        yield f"spec.upgrade {spec.upgrade} has no effect on the toolkit image, which the digest of {whose} decides"
    if config.image.digest and not image.digest:
        yield (
            f"The digest of the manager's --toolkit-image does not apply to {image.repository}, which is used instead "
            f"and not pinned; add @sha256:DIGEST to annotation {_IMAGE}"
        )


def _annotation_problem(key: str, message: str) -> Problem:
    return Problem(field=f"metadata.annotations[{key}]", message=message)


def _no_own_image(config: ToolkitConfig) -> str:
    return (
        f"Annotation {_KIND} is {ToolkitKind.OWN}, and the manager's image is of kind {config.kind}. Name an image by "
        f"annotation {_IMAGE}"
    )


def _not_allowed(image: ImageName, config: ToolkitConfig) -> str:
    return (
        f"Toolkit image {image.repository} is in none of the repositories that this manager allows: "
        f"{', '.join(config.allowed)}. Use one of them, or allow it by the manager's --toolkit-image-prefix"
    )


def _no_tag(tag: str) -> str:
    return f"{tag[:_MAX_SHOWN]!r} is not valid as a tag of the toolkit image. Set spec.upgrade to the toolkit's tag"
