from __future__ import annotations

import pytest

from upgrade_manager.runtime.bindaddress import BindAddress


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8443", BindAddress("", 8443)),
        ("127.0.0.1:0", BindAddress("127.0.0.1", 0)),
        ("[::1]:65535", BindAddress("::1", 65535)),
        ("0", None),
    ],
)
def test_addresses(text: str, address: BindAddress | None) -> None:
    assert BindAddress.parse(text) == address


@pytest.mark.parametrize("text", ["", "8443", ":", ":http", ":65536", ":-1", ":٣"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not of the form"):
        BindAddress.parse(text)
