"""A package index and a package registry on loopback, with packages the tests make themselves."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.timing import seconds


def wheel(name: str, version: str, code: str) -> bytes:
    """A small package of Python, as pip installs it."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return buffer.getvalue()


def tarball(name: str, version: str, code: str, scripts: dict[str, str] | None = None) -> bytes:
    """A small package of Node, as npm installs it."""
    manifest = {"name": name, "version": version, "main": "index.js", "scripts": scripts or {}}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in (("package/package.json", json.dumps(manifest)), ("package/index.js", code)):
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


class Registry(ThreadingHTTPServer):
    """Both at once: `/simple/…` speaks to pip, everything else to npm."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add_wheel(self, name: str, version: str, code: str) -> None:
        file = f"{name}-{version}-py3-none-any.whl"
        self.files[f"/files/{file}"] = wheel(name, version, code)
        page = self.files.get(f"/simple/{name}/", b"").decode()
        self.files[f"/simple/{name}/"] = f'{page}<a href="/files/{file}">{file}</a>\n'.encode()

    def add_tarball(self, name: str, version: str, code: str, scripts: dict[str, str] | None = None) -> None:
        data = tarball(name, version, code, scripts)
        path = f"/{name}/-/{name}-{version}.tgz"
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        dist = {"tarball": f"{self.url}{path}", "integrity": integrity}
        manifest = {"name": name, "version": version, "main": "index.js", "scripts": scripts or {}, "dist": dist}
        self.files[path] = data
        document = {"name": name, "dist-tags": {"latest": version}, "versions": {version: manifest}}
        self.files[f"/{name}"] = json.dumps(document).encode()


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = self.server.files.get(self.path)
        kind = "text/html" if self.path.startswith("/simple/") else "application/json"
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "application/octet-stream" if "." in self.path else kind)
        self.send_header("Content-Length", str(len(body or b"{}")))
        self.end_headers()
        self.wfile.write(body or b"{}")

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving() -> Generator[Registry]:
    registry = Registry()
    thread = threading.Thread(target=registry.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield registry
    finally:
        registry.shutdown()
        thread.join(seconds(10))
        registry.server_close()
