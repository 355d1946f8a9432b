from __future__ import annotations

import pytest

from hack.actors.rancher_features import features_of

MULTI_CLUSTER = "multi-cluster-management"
OFF = f"{MULTI_CLUSTER}=false"


@pytest.mark.parametrize(
    ("version", "text", "enabled"),
    [
        ("v2.13.1", "", True),
        ("v2.13.1", OFF, False),
        ("v2.13.1", f"{OFF},turtles=false,embedded-cluster-api=true", False),
        ("v2.14.0", f"{OFF},turtles=false,embedded-cluster-api=true", True),
        ("v2.14.0", f"{OFF},turtles=false", False),
        ("v2.14.0", f"{OFF}, turtles=false", True),
        ("v2.14.0", f"{OFF},crt-token-ttl-rotation=false", True),
        ("v2.15.0", f"{OFF},crt-token-ttl-rotation=false", False),
        ("v2.14.0", f"{OFF},", True),
        ("v2.14.0", f"{MULTI_CLUSTER}=no", True),
    ],
)
def test_one_unknown_key_refuses_the_whole_text(version: str, text: str, *, enabled: bool) -> None:
    assert features_of(version, text)[MULTI_CLUSTER] is enabled
