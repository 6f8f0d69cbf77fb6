"""Reaching the outside: which addresses, by which spelling, over which redirects, and how much of an answer."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import ssl
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.core.errors import (
    AnnabelleError,
    ConfigMistake,
    InvalidArguments,
    NotAllowed,
    TooLarge,
    ToolTimeout,
    Unavailable,
)
from annabelle.servers.kit import host_access as module
from annabelle.servers.kit.host_access import AllowedPrivateHosts, HostAccess, is_public, resolve_by_system
from annabelle.servers.kit.http_client import USER_AGENT, FetchedResponse, fetch, guarded_client
from servers.searcher.certificates import Authority
from servers.searcher.local_web import Asked, LocalWeb, Reply, local_web, redirect

pytestmark = [pytest.mark.req("SRV-SRC", "SRV-BRW"), pytest.mark.incident("I-15")]

OUTSIDE = "127.0.0.2"
"""Stands for the internet in these tests: the only loopback address that is opened."""


class Names:
    """A resolver whose answers the test writes down; several answers for a name are given one after another."""

    def __init__(self, **known: list[list[str]]) -> None:
        self.known = {name.replace("_", "."): answers for name, answers in known.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        answers = self.known.get(host.rstrip("."))
        if answers is None:
            return await resolve_by_system(host, port)
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
async def web() -> AsyncIterator[LocalWeb]:
    async with local_web() as web:
        web.pages["/"] = Reply(b"hello")
        yield web


async def get(
    url: str, *, resolve: Names | None = None, allowed: str = OUTSIDE, seconds: float = 10, max_bytes: int = 100_000,
    verify: ssl.SSLContext | None = None,
) -> FetchedResponse:  # fmt: skip
    reach = HostAccess(AllowedPrivateHosts.parse(allowed), resolve)
    async with guarded_client(reach, seconds=seconds, verify=verify) as client:
        return await fetch(client, url, max_bytes=max_bytes, seconds=seconds)


PRIVATE = [
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "0",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.170",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:a9fe:a9fe]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:c0a8:101::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[100::1]",
    "[2001:db8::1]",
    "[2606:4700::1111%lo]",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "anything.localhost",
]


@pytest.mark.parametrize("host", PRIVATE)
async def test_what_is_private_is_refused_in_any_spelling(web: LocalWeb, host: str) -> None:
    with pytest.raises((NotAllowed, InvalidArguments), match=r"private or local network|not an address"):
        await get(f"http://{host}:{web.port}/")
    with pytest.raises(NotAllowed, match="private or local network"):
        await HostAccess(AllowedPrivateHosts()).resolve_allowed(host.strip("[]"), web.port)
    assert web.asked == []


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00::1"])
def test_the_open_internet_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))
    assert is_public(ipaddress.ip_address("64:ff9b::8.8.8.8"))
    assert is_public(ipaddress.ip_address("::ffff:8.8.8.8"))


NETWORKS = ["10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"]
_private4 = st.sampled_from(NETWORKS).flatmap(
    lambda text: st.ip_addresses(v=4, network=ipaddress.ip_network(text)).map(int)
)


def _spelled(number: int, way: int) -> str:
    parts = number.to_bytes(4, "big")
    return [
        str(ipaddress.ip_address(number)),
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(hex(part) for part in parts),
        ".".join(f"0{part:o}" for part in parts),
        f"{parts[0]}.{number & 0xFFFFFF}",
        f"{parts[0]}.{parts[1]}.{number & 0xFFFF}",
        f"::ffff:{ipaddress.ip_address(number)}",
        str(ipaddress.IPv6Address((0x64FF9B << 96) | number)),
        str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80))),
        f"{ipaddress.ip_address(number)}.",
    ][way]


@settings(deadline=None, max_examples=60)
@given(number=_private4, way=st.integers(0, 11))
async def test_no_spelling_of_a_private_address_gets_through(number: int, way: int) -> None:
    with pytest.raises((NotAllowed, Unavailable)):
        await HostAccess(AllowedPrivateHosts()).resolve_allowed(_spelled(number, way), 80)


@settings(deadline=None, max_examples=60)
@given(address=st.ip_addresses())
def test_nothing_is_more_public_than_the_standard_library_says(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_public(address) and getattr(address, "ipv4_mapped", None) is None:
        inside = (address.is_private, address.is_loopback, address.is_link_local, address.is_multicast)
        assert not any(inside)


async def test_an_opened_address_is_reached_with_name_and_agent(web: LocalWeb) -> None:
    answer = await get(web.url(host="site.example"), resolve=Names(site_example=[[OUTSIDE]]))
    assert (answer.data, answer.status, answer.url) == (b"hello", 200, web.url(host="site.example"))
    assert (answer.content_type, answer.charset) == ("text/html", "utf-8")
    [asked] = web.asked
    assert asked.headers["host"] == f"site.example:{web.port}"
    assert asked.headers["user-agent"] == USER_AGENT
    assert asked.address == OUTSIDE


async def test_only_the_port_that_was_opened_is_open(web: LocalWeb) -> None:
    assert (await get(web.url(), allowed=f"127.0.0.1:{web.port}")).data == b"hello"
    with pytest.raises(NotAllowed):
        await get(web.url(), allowed=f"127.0.0.1:{web.port + 1}")
    assert (await get(web.url(host="nas.local"), allowed="nas.local", resolve=Names(nas_local=[["127.0.0.1"]]))).data
    with pytest.raises(NotAllowed):
        await get(web.url(host="other.local"), allowed="nas.local", resolve=Names(other_local=[["127.0.0.1"]]))


async def test_a_name_that_changes_its_mind_gains_nothing(web: LocalWeb) -> None:
    names = Names(rebind_example=[[OUTSIDE], ["127.0.0.1"]])
    web.pages["/again"] = redirect("/")
    assert (await get(web.url(host="rebind.example"), resolve=names)).data == b"hello"
    assert names.asked == ["rebind.example"], "looked up once, and the connection goes where the judgement went"
    assert [asked.address for asked in web.asked] == [OUTSIDE]
    with pytest.raises(NotAllowed):
        await get(web.url(host="rebind.example"), resolve=names)
    assert len(web.asked) == 1


async def test_a_name_that_changes_its_mind_between_redirects_is_judged_again(web: LocalWeb) -> None:
    web.pages["/again"] = redirect("/")
    with pytest.raises(NotAllowed):
        await get(web.url("/again", host="turn.example"), resolve=Names(turn_example=[[OUTSIDE], ["127.0.0.1"]]))
    assert web.paths() == ["/again"]


async def test_one_private_address_among_several_forbids_the_host(web: LocalWeb) -> None:
    with pytest.raises(NotAllowed):
        await get(web.url(host="mixed.example"), resolve=Names(mixed_example=[[OUTSIDE, "10.0.0.1"]]))
    assert web.asked == []


async def test_the_next_address_is_tried_when_one_is_dead() -> None:
    async with local_web(host=OUTSIDE) as web:
        web.pages["/"] = Reply(b"second")
        names = Names(two_example=[["127.0.0.3", OUTSIDE]])
        answer = await get(web.url(host="two.example"), resolve=names, allowed="127.0.0.2,127.0.0.3")
    assert answer.data == b"second"


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:{port}/",
        "//localhost:{port}/",
        "http://[::1]:{port}/",
        "http://0x7f.1:{port}/",
    ],
)
async def test_a_redirect_inwards_is_refused(web: LocalWeb, target: str) -> None:
    web.pages["/go"] = redirect(target.format(port=web.port))
    with pytest.raises(NotAllowed):
        await get(web.url("/go", host=OUTSIDE))
    assert web.paths() == ["/go"]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://x/", "gopher://x/", "ws://x/", "javascript:1"])
async def test_only_web_addresses_are_followed_or_opened(web: LocalWeb, target: str) -> None:
    web.pages["/go"] = redirect(target)
    for url in (web.url("/go", host=OUTSIDE), target):
        with pytest.raises(AnnabelleError, match=r"http and https|can not be read|not an address"):
            await get(url)
    assert web.paths() == ["/go"]


async def test_circles_of_redirects_end(web: LocalWeb) -> None:
    web.pages["/go"] = redirect("/go")
    with pytest.raises(Unavailable, match="in circles"):
        await get(web.url("/go", host=OUTSIDE))
    assert len(web.asked) == 11


async def test_an_address_with_credentials_is_not_opened(web: LocalWeb) -> None:
    web.pages["/go"] = redirect(f"http://user:hunter2@{OUTSIDE}:{web.port}/")
    for url in (web.url("/go", host=OUTSIDE), web.url(host=f"user:hunter2@{OUTSIDE}")):
        with pytest.raises(InvalidArguments) as caught:
            await get(url)
        assert "hunter2" not in caught.value.message
    assert web.paths() == ["/go"]


@pytest.mark.parametrize(
    "url", ["", "nonsense", "http://", "http:///x", "http://１２７.0.0.1/", "http://\x00/", "http://a b/"]
)
async def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    with pytest.raises((InvalidArguments, Unavailable)):
        await get(url)


async def test_proxies_of_the_environment_are_not_used(web: LocalWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await get(web.url(host=OUTSIDE))).data == b"hello"


async def test_the_certificate_has_to_be_the_hosts_own(tmp_path: Path) -> None:
    authority = Authority.make(tmp_path)
    async with local_web(authority.for_servers("bücher.example".encode("idna").decode(), "10.9.8.7")) as web:
        web.pages["/"] = Reply(b"secret")
        names = Names(other_example=[[OUTSIDE]])
        names.known["xn--bcher-kva.example"] = [[OUTSIDE]]
        trusted = authority.for_clients()
        url = web.url(host="bücher.example", scheme="https")
        assert (await get(url, resolve=names, verify=trusted)).data == b"secret"
        assert web.asked[0].headers["host"] == f"xn--bcher-kva.example:{web.port}"
        with pytest.raises(Unavailable, match="valid certificate"):
            await get(web.url(host="other.example", scheme="https"), resolve=names, verify=trusted)
        with pytest.raises(Unavailable, match="valid certificate"):
            await get(url, resolve=names)
    assert len(web.asked) == 1


async def test_a_name_nobody_knows_is_said_in_a_sentence() -> None:
    async def fails(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    async def nothing(host: str, port: int) -> list[str]:
        return []

    for resolve in (fails, nothing):
        with pytest.raises(Unavailable, match=r"gone\.example") as caught:
            await HostAccess(AllowedPrivateHosts(), resolve).resolve_allowed("gone.example", 80)
        assert "offline" in str(caught.value.hint), "who asked for the weather typed no address"


async def test_a_lookup_that_hangs_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOKUP_SECONDS", 0.01)

    async def hangs(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(Unavailable, match="too long"):
        await HostAccess(AllowedPrivateHosts(), hangs).resolve_allowed("slow.example", 80)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "bare deflate", "identity", ""])
async def test_packed_answers_are_unpacked(web: LocalWeb, encoding: str) -> None:
    text = b"words " * 100_000
    raw = zlib.compressobj(wbits=-15)
    body = {
        "gzip": gzip.compress(text),
        "deflate": zlib.compress(text),
        "bare deflate": raw.compress(text) + raw.flush(),
    }
    headers = (("Content-Encoding", encoding.split()[-1] if encoding else "identity"),)
    web.pages["/packed"] = Reply(body.get(encoding, text), headers=headers)
    assert (await get(web.url("/packed", host=OUTSIDE), max_bytes=1_000_000)).data == text


async def test_a_bomb_costs_no_more_than_the_bound(web: LocalWeb) -> None:
    bomb = gzip.compress(bytes(60_000_000), 9)
    web.pages["/bomb"] = Reply(bomb, headers=(("Content-Encoding", "gzip"),))
    answer = await get(web.url("/bomb", host=OUTSIDE), max_bytes=10_000)
    assert (len(answer.data), answer.truncated) == (10_000, True)
    async with guarded_client(
        HostAccess(AllowedPrivateHosts.parse(OUTSIDE)), seconds=10, max_bytes=1_000_000
    ) as client:
        with pytest.raises(TooLarge):
            await client.get(web.url("/bomb", host=OUTSIDE))
    web.pages["/twice"] = Reply(gzip.compress(bomb), headers=(("Content-Encoding", "gzip, gzip"),))
    with pytest.raises(Unavailable, match="packed"):
        await get(web.url("/twice", host=OUTSIDE))


async def test_damaged_and_broken_answers_are_a_sentence(web: LocalWeb) -> None:
    web.pages["/damaged"] = Reply(b"\x1f\x8bnonsense", headers=(("Content-Encoding", "gzip"),))
    web.pages["/broken"] = Reply(b"half", broken=True)
    for path in ("/damaged", "/broken"):
        with pytest.raises(Unavailable, match="read"):
            await get(web.url(path, host=OUTSIDE))


async def test_a_host_that_says_nothing_is_left_after_the_time_given(web: LocalWeb) -> None:
    gone = asyncio.Event()

    async def silent(asked: Asked) -> Reply:
        await gone.wait()
        return Reply()

    web.pages["/silent"] = silent
    with pytest.raises(ToolTimeout, match="did not answer"):
        await get(web.url("/silent", host=OUTSIDE), seconds=0.2)
    gone.set()


async def test_a_dead_port_is_a_sentence() -> None:
    async with local_web() as web:
        port = web.port
    with pytest.raises(Unavailable, match="can not be reached"):
        await get(f"http://{OUTSIDE}:{port}/")


@pytest.mark.parametrize("text", ["http://nas.local", "10.0.0.0/33", "[::1", "*", "user@host"])
def test_an_exception_that_means_nothing_is_a_mistake_of_the_settings(text: str) -> None:
    with pytest.raises(ConfigMistake, match="PRIVATE_HOSTS_ALLOWED"):
        AllowedPrivateHosts.parse(f"nas.local,{text}")


@pytest.mark.parametrize("entry", ["[::1]:8080", "::1", "[0:0::1]:8080", "[::1]"])
async def test_an_ipv6_exception_is_understood_in_any_spelling(entry: str) -> None:
    assert await HostAccess(AllowedPrivateHosts.parse(entry)).resolve_allowed("::1", 8080) == ["::1"]
