"""A server reached by address: `python -m support.servers.over_http`. It prints its port and wants a header."""

import socket
import sys

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from support.servers.stage import Arguments, Context, Prop, Stage


async def say(arguments: Arguments, context: Context) -> object:
    return {"said": arguments["text"]}


async def fail(arguments: Arguments, context: Context) -> object:
    raise RuntimeError("as asked")


def main() -> None:
    stage = Stage(
        "over_http", [Prop("say", say, {"text": {"type": "string"}}, ("text",), read_only=True), Prop("fail", fail)]
    )
    inner: Starlette = stage.server.streamable_http_app()
    assert isinstance(stage.server.session_manager, StreamableHTTPSessionManager)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and Request(scope).headers.get("authorization") != "Bearer the-key-12345":
            await PlainTextResponse("who are you?", status_code=401)(scope, receive, send)
        else:
            await inner(scope, receive, send)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(guarded, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
