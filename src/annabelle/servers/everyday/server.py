"""Puts the everyday server together."""

from __future__ import annotations

from annabelle.servers.everyday.clock import Clock
from annabelle.servers.everyday.config import EverydayConfig
from annabelle.servers.everyday.currency import CurrencyTools
from annabelle.servers.everyday.dates import Dates
from annabelle.servers.everyday.feed_reader import FeedReader
from annabelle.servers.everyday.feed_shelf import FeedShelf
from annabelle.servers.everyday.feeds import Feeds
from annabelle.servers.everyday.forecasts import Forecasts
from annabelle.servers.everyday.places import Geocoder
from annabelle.servers.everyday.qr_codes import QrCodes
from annabelle.servers.everyday.rates import RateBook
from annabelle.servers.everyday.source import Source
from annabelle.servers.everyday.units import Units
from annabelle.servers.everyday.weather import WeatherTools
from annabelle.servers.everyday.zones import Zones
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.workspace import Workspace

INSTRUCTIONS = (
    "Everyday questions: times and dates across zones, units, money, weather, news feeds and QR codes. Times without a "
    "zone are the user's own."
)


def build(config: EverydayConfig | None = None) -> ToolServer:
    """All everyday tools, ready to serve. Nothing is fetched and no library is loaded before it is needed."""
    config = config or EverydayConfig.from_environment()
    clock, private = config.clock, config.private_hosts
    zones = Zones(config.zone)
    rates = RateBook(Source("CURRENCY_URL", config.currency_url, private, clock), config.folder, clock)
    forecasts = Forecasts(Source("WEATHER_URL", config.weather_url, private, clock))
    geocoder = Geocoder(Source("GEOCODING_URL", config.geocoding_url, private, clock))
    groups = [
        Clock(zones, clock),
        Dates(zones, clock),
        Units(),
        CurrencyTools(rates, clock),
        WeatherTools(forecasts, geocoder, zones, clock),
        Feeds(FeedReader(private), FeedShelf(config.folder), clock),
        QrCodes(Workspace(config.files)),
    ]
    return ToolServer("everyday", groups, instructions=INSTRUCTIONS)
