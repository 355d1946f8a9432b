"""The settings of the webhook, apart from wiring.py, which loads the whole webhook.

cli/application.py makes them from its options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.api.toolkit_image import ToolkitConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Settings of the webhook, from the command line."""

    #: Host and port.
    address: tuple[str, int]
    #: Directory with tls.crt and tls.key; "" for a self-made certificate.
    certificates: str
    #: The namespace of the webhook's Service and Secret.
    namespace: str
    toolkit: ToolkitConfig
