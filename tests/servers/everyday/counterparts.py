"""Local stand-ins for the weather, the places, the rates and feeds: they keep state and refuse wrong questions."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from support.timing import seconds

PLACES = [
    {"id": 1, "name": "Paris", "latitude": 48.8534, "longitude": 2.3488, "country": "France", "country_code": "FR",
     "admin1": "Île-de-France", "timezone": "Europe/Paris", "population": 2138551},
    {"id": 2, "name": "Paris", "latitude": 33.6609, "longitude": -95.5555, "country": "United States",
     "country_code": "US", "admin1": "Texas", "timezone": "America/Chicago", "population": 24782},
    {"id": 3, "name": "Tokyo", "latitude": 35.6895, "longitude": 139.6917, "country": "Japan", "country_code": "JP",
     "admin1": "Tokyo", "timezone": "Asia/Tokyo", "population": 9733276},
]  # fmt: skip
RATES = {"USD": "1.10", "GBP": "0.85", "PLN": "4.25", "JPY": "160.5"}
NAMES = {"EUR": "Euro", "USD": "United States Dollar", "GBP": "British Pound", "PLN": "Polish Złoty", "JPY": "Yen"}
DAILY = {
    "weather_code": 61, "temperature_2m_max": 12.5, "temperature_2m_min": 4.0, "precipitation_sum": 3.2,
    "precipitation_probability_max": 80, "wind_speed_10m_max": 22.0, "wind_direction_10m_dominant": 225,
    "sunrise": "07:00", "sunset": "17:00", "uv_index_max": 2.0,
}  # fmt: skip


class Outside:
    """What the services know, what they were asked, and how they feel."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.down = False
        self.status: int | None = None
        self.today = date(2026, 11, 15)
        self.rates = dict(RATES)
        self.feeds: dict[str, tuple[str, bytes]] = {}
        self.redirects: dict[str, str] = {}
        self.url = ""
        self._held: dict[str, threading.Event] = {}

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def paths(self, start: str = "") -> list[str]:
        return [path for path, _, _ in self.asked if path.startswith(start)]

    def publish(self, path: str, entries: list[tuple[str, str]], etag: str) -> str:
        """Put a feed up; each entry is its id and its title, the newest first."""
        items = "".join(
            f"<item><guid>{key}</guid><title>{title}</title><link>https://news.example/{key}</link>"
            f"<description>&lt;p&gt;About &lt;b&gt;{title}&lt;/b&gt;&lt;/p&gt;"
            "&lt;script&gt;x()&lt;/script&gt;</description>"
            f"<pubDate>Sun, 15 Nov 2026 {20 - number:02d}:00:00 GMT</pubDate></item>"
            for number, (key, title) in enumerate(entries)
        )
        text = f'<?xml version="1.0"?><rss version="2.0"><channel><title>Local news</title>{items}</channel></rss>'
        self.feeds[path] = (etag, text.encode())
        return f"{self.url}{path}"

    @contextmanager
    def holding(self, path: str) -> Iterator[None]:
        """Give no answer on a path until this is over."""
        self._held[path] = threading.Event()
        try:
            yield
        finally:
            self._held.pop(path).set()

    def answer(self, path: str, query: dict[str, str], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        self.asked.append((path, query, headers))
        if path in self._held:
            self._held[path].wait(seconds(20))
        if self.status is not None:
            return self.status, {}, b'{"reason": "Something is wrong"}'
        if path in self.redirects:
            return 302, {"Location": self.redirects[path]}, b""
        if path in self.feeds:
            etag, body = self.feeds[path]
            if headers.get("if-none-match") == etag:
                return 304, {"ETag": etag}, b""
            return 200, {"ETag": etag, "Content-Type": "application/rss+xml"}, body
        routes = {"/v1/search": self._search, "/v1/forecast": self._forecast, "/v1/currencies": lambda _: NAMES}
        found = routes.get(path, self._rates if path.startswith("/v1/") else None)
        answer = found(query | {"_path": path}) if found else None
        if answer is None:
            return 404, {}, b'{"message": "not found"}'
        if "error" in answer:
            return 400, {}, json.dumps(answer).encode()
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()

    def _search(self, query: dict[str, str]) -> dict[str, object]:
        if not query.get("name") or not 1 <= int(query.get("count", "0")) <= 100:
            return {"error": True, "reason": "Parameter name and count are needed"}
        found = [place for place in PLACES if query["name"].casefold() in str(place["name"]).casefold()]
        return {"results": found[: int(query["count"])]} if found else {"generationtime_ms": 0.1}

    def _forecast(self, query: dict[str, str]) -> dict[str, object]:
        if not (-90 <= float(query["latitude"]) <= 90 and query.get("timezone") == "auto"):
            return {"error": True, "reason": "Latitude or timezone is wrong"}
        warm = 1.8 if query.get("temperature_unit") == "fahrenheit" else 1.0
        extra = 32 if warm > 1 else 0
        answer: dict[str, object] = {"latitude": query["latitude"], "timezone": "Europe/Paris"}
        if "current" in query:
            known = {"temperature_2m": 10.0 * warm + extra, "apparent_temperature": 8.0, "relative_humidity_2m": 71,
                     "precipitation": 0.0, "weather_code": 3, "cloud_cover": 100, "wind_speed_10m": 15.2,
                     "wind_direction_10m": 180, "wind_gusts_10m": 30.0}  # fmt: skip
            answer["current"] = {"time": "2026-11-15T10:00"} | {k: known[k] for k in query["current"].split(",")}
        if "daily" in query:
            start = date.fromisoformat(query["start_date"]) if "start_date" in query else self.today
            count = 1 if "start_date" in query else int(query["forecast_days"])
            days = [(start + timedelta(days=step)).isoformat() for step in range(count)]
            answer["daily"] = {"time": days} | {k: [DAILY[k]] * count for k in query["daily"].split(",")}
        if "hourly" in query:
            hours = int(query["forecast_days"]) * 24
            answer["hourly"] = {"time": [f"hour {number}" for number in range(hours)]} | {
                name: [number % 24 for number in range(hours)] for name in query["hourly"].split(",")
            }
        return answer

    def _rates(self, query: dict[str, str]) -> dict[str, object] | None:
        wanted = query["_path"].removeprefix("/v1/")
        day = self.today if wanted == "latest" else date.fromisoformat(wanted)
        if query.get("base") != "EUR" or day.year < 1999:
            return None
        while day.weekday() > 4:  # published on working days
            day -= timedelta(days=1)
        rates = {name: float(value) for name, value in self.rates.items()}
        return {"amount": 1.0, "base": "EUR", "date": day.isoformat(), "rates": rates}


@contextmanager
def running(outside: Outside) -> Iterator[Outside]:
    """Serve it on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if outside.down:
                self.connection.close()
                return
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, sent, body = outside.answer(parts.path, query, headers)
            self.send_response(status)
            for name, value in sent.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (ConnectionError, ValueError, OSError):
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    outside.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    try:
        yield outside
    finally:
        server.shutdown()
        server.server_close()
        thread.join(seconds(5))
