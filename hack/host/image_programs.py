"""ctr and crictl: they read and change the images of a simulated host."""

from __future__ import annotations

import json
import tarfile
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any

from upgrade_manager.toolkit.host.host_programs import Output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hack.host.state import HostState


class ImagePrograms:
    """The programs that know containerd's images."""

    def __init__(self, state: HostState, *, stage: Callable[[str], None]) -> None:
        self._state = state
        self._stage = stage
        self.handlers: dict[str, Callable[[Sequence[str], bytes], Awaitable[Output]]] = {
            "ctr": self._ctr,
            "crictl": self._crictl,
        }

    async def _ctr(self, arguments: Sequence[str], stdin: bytes) -> Output:
        match list(arguments[arguments.index("images") + 1 :]):
            case ["list", "--quiet"]:
                return Output(status=0, stdout="".join(f"{image}\n" for image in self._state.images))
            case ["import", *options, "-"] if options in ([], ["--no-unpack"]):
                return self._import(stdin, unpacks=not options)
        return Output(status=1, stderr=f"ctr: unknown arguments {arguments}")

    def _import(self, archive: bytes, *, unpacks: bool) -> Output:
        """Import the images that the archive's manifest.json names, as `docker save` writes it.

        ctr also unpacks them to snapshots, unless an option says otherwise (containerd/containerd v2.1.5:
        cmd/ctr/commands/images/import.go); the list has them either way.
        """
        try:
            with tarfile.open(fileobj=BytesIO(archive)) as content:
                manifest = content.extractfile("manifest.json")
                tags = [tag for image in json.load(manifest or BytesIO(b"[]")) for tag in image["RepoTags"]]
        except (tarfile.TarError, KeyError, ValueError) as error:
            return Output(status=1, stderr=f"ctr: unrecognized image format: {error}")
        self._state.images = sorted({*self._state.images, *tags})
        self._state.incomplete = sorted({*self._state.incomplete, *tags})
        self._stage("the content of listed images")
        self._state.incomplete = sorted({*self._state.incomplete}.difference(tags))
        if unpacks:
            self._state.unpacked = sorted({*self._state.unpacked, *tags})
        return Output(status=0, stdout="".join(f"{'unpacking' if unpacks else 'saved'} {tag}\n" for tag in tags))

    async def _crictl(self, arguments: Sequence[str], _: bytes) -> Output:
        match list(arguments):
            case ["images", "--output", "json"]:
                return Output(status=0, stdout=json.dumps({"images": self._images()}))
            case ["ps", "--all", "--output", "json"]:
                used = [
                    {"image": {"image": self._id(one)}, "imageRef": self._id(one)} for one in self._state.used_images
                ]
                return Output(status=0, stdout=json.dumps({"containers": used}))
            case ["rmi", reference]:
                return self._remove(reference)
        return Output(status=1, stderr=f"crictl: unknown arguments {arguments}")

    def _images(self) -> list[dict[str, Any]]:
        tags = dict[str, list[str]]()
        for reference in self._state.images:
            tags.setdefault(self._id(reference), []).append(reference)
        return [{"id": number, "repoTags": names, "repoDigests": []} for number, names in tags.items()]

    def _remove(self, reference: str) -> Output:
        """Remove the image under all of its names, as containerd does, whether a container uses it or not."""
        if reference not in self._state.images:
            return Output(status=1, stderr=f'level=fatal msg="no such image {reference}"')
        number = self._id(reference)
        self._state.images = [one for one in self._state.images if self._id(one) != number]
        return Output(status=0, stdout=f"Deleted: {reference}\n")

    def _id(self, reference: str) -> str:
        return self._state.image_ids.get(reference) or f"sha256:{sha256(reference.encode()).hexdigest()}"
