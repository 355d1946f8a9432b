from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.preflight.certificates import DerError, Validity, chain_validity, validity_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def valid(after: timedelta, before: timedelta = -DAY) -> Validity:
    return Validity(not_before=NOW + before, not_after=NOW + after)


@pytest.mark.rule("pipeline: each certificate must be valid for the required days")
@pytest.mark.parametrize(
    ("left", "days", "enough", "words"),
    [
        pytest.param(30 * DAY, 7, True, "in 30 days, 2026-01-31T00:00:00Z", id="long enough"),
        pytest.param(7 * DAY, 7, True, "in 7 days, 2026-01-08T00:00:00Z", id="to the second"),
        pytest.param(
            7 * DAY - timedelta(seconds=1), 7, False, "in 6 days, 2026-01-07T23:59:59Z", id="a second too short"
        ),
        pytest.param(DAY, 7, False, "in 1 day, 2026-01-02T00:00:00Z", id="one day"),
        pytest.param(DAY / 2, 1, False, "in less than a day, 2026-01-01T12:00:00Z", id="hours"),
        pytest.param(-DAY, 7, False, "expired 2025-12-31T00:00:00Z", id="expired"),
        pytest.param(-timedelta(seconds=1), 1, False, "expired 2025-12-31T23:59:59Z", id="just expired"),
        pytest.param(3650 * DAY, 10**17, False, "in 3650 days, 2035-12-30T00:00:00Z", id="more days than exist"),
    ],
)
def test_outlasts_and_expiry(left: timedelta, days: int, *, enough: bool, words: str) -> None:
    assert valid(left).outlasts(days=days, now=NOW) is enough
    assert valid(left).expiry(NOW) == words


def test_fractions_of_a_second_are_truncated() -> None:
    late = NOW + timedelta(microseconds=1)
    assert not valid(7 * DAY).outlasts(days=7, now=late)


def test_chain_validity_is_the_intersection() -> None:
    chain = [valid(9 * DAY, -3 * DAY), valid(2 * DAY, -5 * DAY), valid(99 * DAY, -1 * DAY)]
    assert chain_validity(chain) == valid(2 * DAY, -1 * DAY)


KEY = ec.generate_private_key(ec.SECP256R1())
START, END = datetime(2025, 5, 6, 7, 8, 9, tzinfo=UTC), datetime(2035, 1, 2, 3, 4, 5, tzinfo=UTC)


def certificate(start: datetime = START, end: datetime = END, *, serial: int = 7, name: str = "x") -> bytes:
    named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(named).issuer_name(named).public_key(KEY.public_key())
    builder = builder.serial_number(serial).not_valid_before(start).not_valid_after(end)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


GOOD = certificate()


@pytest.mark.parametrize(
    ("start", "end"),
    [
        pytest.param(START, END, id="two digits of a year"),
        pytest.param(datetime(1999, 12, 31, tzinfo=UTC), END, id="of the last century"),
        pytest.param(datetime(1950, 1, 1, tzinfo=UTC), datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), id="the turn"),
        pytest.param(START, datetime(2050, 1, 1, tzinfo=UTC), id="four digits from 2050 on"),
        pytest.param(START, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), id="no end (RFC 5280 4.1.2.5)"),
    ],
)
def test_dates_are_parsed(start: datetime, end: datetime) -> None:
    assert validity_of(certificate(start, end)) == Validity(not_before=start, not_after=end)


@given(st.integers(0, 149 * 365 * 24 * 3600), st.integers(1, 2**158), st.text("ab", min_size=1, max_size=60))
def test_dates_match_the_cryptography_library(seconds: int, serial: int, name: str) -> None:
    start = datetime(1951, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    made = certificate(start, start + timedelta(days=400), serial=serial, name=name)
    read = x509.load_der_x509_certificate(made)
    assert validity_of(made) == Validity(not_before=read.not_valid_before_utc, not_after=read.not_valid_after_utc)


def test_version_1_certificate_has_no_version_field() -> None:
    def value(tag: int, *content: bytes) -> bytes:
        joined = b"".join(content)
        return bytes([tag, len(joined)]) + joined

    dates = value(0x30, value(0x17, b"250506070809Z"), value(0x18, b"20350102030405Z"))
    made = value(0x30, value(0x30, value(2, b"\x07"), value(0x30), value(0x30), dates))
    assert validity_of(made) == Validity(not_before=START, not_after=END)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x30", id="a tag alone"),
        pytest.param(b"-----BEGIN CERTIFICATE-----", id="PEM"),
        pytest.param(b"\x30\x85\x01\x01\x01\x01\x01", id="a huge length"),
        pytest.param(b"\x30\x80\x00\x00", id="an indefinite length"),
        pytest.param(b"\x30\x02\x05\x00", id="something else"),
        pytest.param(GOOD.replace(b"250506070809Z", b"251306070809Z"), id="a thirteenth month"),
        pytest.param(GOOD.replace(b"250506070809Z", b"2505060708+0Z"), id="an invalid date"),
        pytest.param(GOOD.replace(b"\x17\x0d250506", b"\x16\x0d250506"), id="a date of another type"),
        pytest.param(GOOD[:60], id="cut off"),
    ],
)
def test_invalid_certificates_are_rejected(bad: bytes) -> None:
    with pytest.raises(DerError):
        validity_of(bad)


@given(
    st.binary(max_size=64)
    | st.builds(lambda at, byte: GOOD[:at] + bytes([byte]) + GOOD[at + 1 :], st.integers(0, 120), st.integers(0, 255))
)
def test_random_bytes_are_parsed_or_rejected(data: bytes) -> None:
    try:
        validity_of(data)
    except DerError as error:
        assert str(error)  # noqa: PT017  # either way is right
