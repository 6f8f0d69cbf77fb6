"""Builds the everyday server."""

from __future__ import annotations

from annabelle.servers.everyday.config import EverydayConfig
from annabelle.servers.everyday.currency import CurrencyTools, RateStore
from annabelle.servers.everyday.feed_reader import FeedReader
from annabelle.servers.everyday.feeds import FeedStore, FeedTools
from annabelle.servers.everyday.forecasts import ForecastSource, Geocoder
from annabelle.servers.everyday.qr_codes import QrCodeTools
from annabelle.servers.everyday.time_tools import ClockTools, DateTools
from annabelle.servers.everyday.units import UnitTools
from annabelle.servers.everyday.weather import WeatherTools
from annabelle.servers.everyday.web_source import JsonSource
from annabelle.servers.everyday.zones import Zones
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.workspace import Workspace

INSTRUCTIONS = (
    "Everyday questions: times and dates across zones, units, money, weather, news feeds and QR codes. Times without a "
    "zone are the user's own."
)


def build(config: EverydayConfig | None = None) -> ToolServer:
    """Nothing is fetched and no large library is loaded before it is needed."""
    config = config or EverydayConfig.from_environment()
    clock, private = config.clock, config.private_hosts
    zones = Zones(config.zone)
    rates = RateStore(JsonSource("CURRENCY_URL", config.currency_url, private, clock), config.folder, clock)
    forecasts = ForecastSource(JsonSource("WEATHER_URL", config.weather_url, private, clock))
    geocoder = Geocoder(JsonSource("GEOCODING_URL", config.geocoding_url, private, clock))
    groups = [
        ClockTools(zones, clock),
        DateTools(zones, clock),
        UnitTools(),
        CurrencyTools(rates, clock),
        WeatherTools(forecasts, geocoder, zones, clock),
        FeedTools(FeedReader(private), FeedStore(config.folder), clock),
        QrCodeTools(Workspace(config.files)),
    ]
    return ToolServer("everyday", groups, instructions=INSTRUCTIONS)
