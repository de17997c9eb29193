"""Where an outgoing webhook may go: each address that must be refused, one by one."""

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.outgoing.webhooks import Target, UrlRefused, is_public, target_of

PRIVATE = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "127.0.0.1", "127.255.255.254"),
    *("169.254.169.254", "169.254.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.0.0.170"),
    *("192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1", "fec0::1", "ff02::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::ffff:10.0.0.1", "::127.0.0.1"),
    *("64:ff9b::169.254.169.254", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1"),
    *("2001::1", "2001:db8::1", "3fff::1", "100::1", "4000::1"),
]
PUBLIC = [
    "93.184.216.34",
    "1.1.1.1",
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "2606:4700::1111",
    "2a00:1450::1",
]
# Forms in which libraries of C read an address, and people do not.
STRANGE = [
    *("2130706433", "0x7f000001", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1"),
    *("2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "0", "1.1.1.1.1", "256.1.1.1"),
    *("127.0.0.0x1", "host.0x", "10.0.0.01"),
]
URLS = [
    ("", "URL"),
    ("http://hooks.example.com/", "https"),
    ("ftp://hooks.example.com/", "https"),
    ("//hooks.example.com/", "https"),
    ("https://user@hooks.example.com/", "user"),
    ("https://user:secret@hooks.example.com/", "user"),
    ("https://hooks.example.com\\@127.0.0.1/", "backslash"),
    ("https://hooks.example.com/ a", "blank"),
    ("https://hooks.example.com/\r\nX: 1", "blank"),
    ("https://hooks.example.com/#a", "fragment"),
    ("https://hooks.example.com:0/", "port"),
    ("https://hooks.example.com:70000/", "URL"),
    ("https://localhost/", "domain"),
    ("https:///path", "host"),
    ("https://ho st.example/", "blank"),
    ("https://höst.example/", "URL"),
    ("https://a..example.com/", "host"),
    ("https://[fe80::1%25eth0]/", "host"),
    ("https://[::1/", "URL"),
    ("https://hooks.example.com/" + "a" * 1000, "1000"),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_or_reserved_address_is_not_public_and_no_url_may_name_it(address: str) -> None:
    assert not is_public(address)
    written = f"[{address}]" if ":" in address else address
    with pytest.raises(UrlRefused):
        target_of(f"https://{written}/hook")
    with pytest.raises(UrlRefused):
        target_of(f"https://{written}:8443/hook")


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_named(address: str) -> None:
    assert is_public(address)
    written = f"[{address}]" if ":" in address else address
    assert target_of(f"https://{written}/hook") == Target(True, address, 443, "/hook")


@pytest.mark.parametrize("host", STRANGE)
def test_an_address_in_a_strange_form_is_refused(host: str) -> None:
    for name in (host, host.upper(), f"{host}."):
        with pytest.raises(UrlRefused):
            target_of(f"https://{name}/")
        assert not is_public(name)


@pytest.mark.parametrize(("url", "reason"), URLS)
def test_a_url_that_cannot_be_taken_is_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(UrlRefused, match=reason):
        target_of(url)


@given(st.integers(0, 2**32 - 1))
def test_what_python_calls_private_is_never_public(number: int) -> None:
    address = IPv4Address(number)
    assert not (
        is_public(str(address)) and (address.is_private or address.is_multicast or address.is_reserved)
    )


def test_a_url_is_read_as_it_is_called() -> None:
    assert target_of("https://Hooks.Example.com./a?b=c") == Target(True, "hooks.example.com", 443, "/a?b=c")
    assert target_of("https://hooks.example.com").host_header == "hooks.example.com"
    assert target_of("https://hooks.example.com:8443/").host_header == "hooks.example.com:8443"
    assert target_of("https://[2606:4700::1111]/").host_header == "[2606:4700::1111]"


def test_a_laptop_may_call_itself() -> None:
    assert target_of("http://127.0.0.1:8000/", may_be_private=True) == Target(False, "127.0.0.1", 8000, "/")
    assert target_of("http://localhost/", may_be_private=True).port == 80
