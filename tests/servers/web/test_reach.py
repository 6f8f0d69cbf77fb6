"""Nothing a page does reaches the user's own network: redirects, frames, scripts, sockets, popups, calls."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.errors import AnnabelleError, NotAllowed, Unavailable
from servers.web.browsing import Web
from servers.web.conftest import Names
from servers.web.pages import Site
from support.timing import seconds

PUBLIC = "93.184.215.14"


@pytest.mark.req("SRV-BRW", "SRV-SRC")
@pytest.mark.incident("I-15")
async def test_every_spelling_of_this_machine_is_refused(web: Web, private: Site) -> None:
    for host in ("127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433", "0", "[::ffff:127.0.0.1]", "127.0.0.1."):
        for scheme in ("http", "https"):
            url = f"{scheme}://{host}:{private.port}/"
            with pytest.raises(NotAllowed):
                await web("navigate", url=url)
            await web("evaluate", function=f"() => fetch('{url}', {{mode: 'no-cors'}}).then(() => 1, () => 0)")
    assert private.connections == 0


@pytest.mark.req("SRV-BRW")
@pytest.mark.incident("I-15")
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_redirect_to_a_private_address_is_refused(web: Web, site: Site, private: Site, scheme: str) -> None:
    site.pages["/go"] = (302, {"Location": f"{scheme}://127.0.0.1:{private.port}/"}, "")
    with pytest.raises(NotAllowed):
        await web("navigate", url=f"{site.url}/go")
    assert private.connections == 0


@pytest.mark.req("SRV-BRW")
@pytest.mark.incident("I-15")
async def test_a_name_that_changes_its_mind_gains_nothing(web: Web, private: Site, names: Names) -> None:
    names["rebind.test"] = [PUBLIC, "127.0.0.1"]
    with pytest.raises(NotAllowed):
        await web("navigate", url=f"http://rebind.test:{private.port}/")
    assert names["rebind.test"] == ["127.0.0.1"], "it was looked up for the judgement and again by the gate"
    assert private.connections == 0


@pytest.mark.req("SRV-BRW")
@pytest.mark.incident("I-15")
async def test_what_is_embedded_in_a_page_does_not_reach_a_private_address(web: Web, site: Site, private: Site) -> None:
    inner = f"http://127.0.0.1:{private.port}"
    site.pages[
        "/"
    ] = f"""<title>Trap</title><link rel=stylesheet href="{inner}/css"><link rel=preconnect href="{inner}">
      <link rel=dns-prefetch href="//private.test"><img src="{inner}/img"><script src="{inner}/js"></script>
      <iframe src="{inner}/frame"></iframe><object data="{inner}/object"></object>
      <form action="{inner}/form" method=post target=f><input name=a></form><iframe name=f></iframe>
      <script>document.forms[0].submit(); navigator.sendBeacon("{inner}/beacon")</script>"""
    await web("navigate", url=f"{site.url}/")
    asked = (await web("network_requests", includeStatic=True)).content
    for path in ("css", "img", "js", "frame", "object", "form"):
        assert f"{inner}/{path} " in asked, "it was tried"
    assert "private</" not in (await web("read", format="html")).content
    assert private.connections == 0


@pytest.mark.req("SRV-BRW")
@pytest.mark.incident("I-15")
async def test_scripts_do_not_reach_a_private_address(web: Web, site: Site, private: Site) -> None:
    site.pages["/"] = "<title>Page</title>"
    await web("navigate", url=f"{site.url}/")
    inner = f"127.0.0.1:{private.port}"
    fetched = await web("evaluate", function=f"async () => (await fetch('http://{inner}/', {{mode: 'no-cors'}})).type")
    assert fetched.content == '"opaque"', "the gate's refusal, which the page can not read"
    for call in (
        f"new Promise(done => {{ const s = new WebSocket('ws://{inner}/'); s.onerror = () => done('no'); "
        "s.onopen = () => done('open') })",
        f"new Promise(done => {{ const s = new EventSource('http://{inner}/'); s.onerror = () => done('no'); "
        "s.onopen = () => done('open') })",
        f"new Promise(done => {{ const x = new XMLHttpRequest(); x.onerror = () => done('no'); x.onload = () => "
        f"done(x.responseText); x.open('GET', 'https://{inner}/'); x.send() }})",
        f"new WebTransport('https://{inner}/').ready.then(() => 'open', () => 'no')",
        "(async () => { const w = new Worker(URL.createObjectURL(new Blob(["
        f"`fetch('https://{inner}/').then(() => postMessage('open'), () => postMessage('no'))`"
        "]))); return await new Promise(done => { w.onmessage = m => done(m.data) }) })()",
    ):
        assert (await web("evaluate", function=f"() => {call}")).content == '"no"', call
    assert private.connections == 0


@pytest.mark.req("SRV-BRW")
@pytest.mark.incident("I-15")
async def test_a_socket_to_an_open_address_still_works(web: Web, site: Site) -> None:
    site.pages |= {"/": "<title>Page</title>", "/data": "fetched"}
    await web("navigate", url=f"{site.url}/")
    found = await web("evaluate", function="async () => (await fetch('/data')).text()")
    assert found.content == '"fetched"'
    await web(
        "evaluate",
        function="() => new Promise(done => { const s = new WebSocket('/socket'); s.onerror = () => done(1) })",
    )
    assert "/socket" in site.asked, "it came as far as the site, which speaks no WebSocket"


@pytest.mark.req("SRV-BRW")
async def test_the_gates_password_is_told_to_no_site(web: Web, site: Site) -> None:
    site.pages["/"] = (401, {"WWW-Authenticate": 'Basic realm="annabelle"'}, "<title>Who are you?</title>")
    site.pages["/proxy"] = (407, {"Proxy-Authenticate": 'Basic realm="annabelle"'}, "")
    with pytest.raises(Unavailable, match="asks for a name and password"):
        await web("navigate", url=f"{site.url}/")
    with pytest.raises(AnnabelleError):
        await web("navigate", url=f"{site.url}/proxy")
    assert "/proxy" in site.asked
    assert not any("authorization" in head.lower() for head in site.heads)


@pytest.mark.req("SRV-BRW")
@pytest.mark.incident("I-15")
async def test_webrtc_sends_nothing_around_the_gate(web: Web, site: Site, private: Site) -> None:
    packets: list[bytes] = []

    class Listener(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:
            packets.append(data)

    loop = asyncio.get_running_loop()
    transport, _protocol = await loop.create_datagram_endpoint(Listener, local_addr=("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    site.pages["/"] = "<title>Page</title>"
    await web("navigate", url=f"{site.url}/")
    found = await web(
        "evaluate",
        function=f"""async () => {{
          const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}},
            {{urls: 'turn:127.0.0.1:{private.port}?transport=tcp', username: 'a', credential: 'b'}}]}});
          peer.createDataChannel('x');
          const found = [];
          const done = new Promise(resolve => {{
            peer.onicecandidate = event => event.candidate ? found.push(event.candidate.candidate) : resolve();
            setTimeout(resolve, 2000);
          }});
          await peer.setLocalDescription(await peer.createOffer());
          await done;
          return found }}""",
    )
    transport.close()
    assert found.content == "[]", "not even this machine's own addresses are told"
    assert packets == []
    assert private.connections == 0


@pytest.mark.req("SRV-BRW")
@pytest.mark.incident("I-15")
async def test_a_popup_and_a_link_do_not_reach_a_private_address(web: Web, site: Site, private: Site) -> None:
    site.pages["/"] = f"""<title>Page</title><button onclick="window.open('{private.url}/popup')">Pop</button>
      <a href="{private.url}/link">Go</a>"""
    await web("navigate", url=f"{site.url}/")
    news = (await web("click", ref=await web.ref('button "Pop"'))).news
    async with asyncio.timeout(seconds(30)):
        while not any("opened tab 1" in line for line in news):
            await asyncio.sleep(0.02)  # a busy machine may open it after the click was answered
            news = (await web("tabs", action="list")).news
    await web("tabs", action="close", index=1)
    await web("click", ref=await web.ref('link "Go"'))
    assert "private or local network" in (await web("read")).content, "the gate's own page is shown"
    assert private.connections == 0


@pytest.mark.req("SRV-BRW")
async def test_a_script_does_not_leave_the_web(web: Web, site: Site) -> None:
    site.pages["/"] = "<title>Page</title>"
    await web("navigate", url=f"{site.url}/")
    for target in ("file:///etc/passwd", "chrome://version", "data:text/html,x", "view-source:http://site.test/"):
        await web("evaluate", function=f"() => {{ location = '{target}'; window.open('{target}'); return 1 }}")
        assert (await web("evaluate", function="() => location.href")).content == f'"{site.url}/"'
        assert [tab.url for tab in (await web("tabs", action="list")).tabs] == [f"{site.url}/"]
