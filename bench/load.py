"""Many chats at once through the Bot API double: nothing lost, nothing doubled, in order; and how fast (PERF-01).

Call spacing is 0, cost controls are off and the cap per cycle is lifted; the model answers at once.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import httpx2 as httpx
import psutil

from annabelle.core.home import Home
from channels.bot_api_double import TOKEN, BotApiDouble, bot_api_double
from hub.hubs import HubProcess, wait_for
from measure import Report, percentile
from support.scripted_model import ScriptedServer, plan_text

SETTINGS = {
    "TELEGRAM_BOT_TOKEN": TOKEN,
    "CHANNEL_POLL_MAX_MESSAGES": "1000",
    "CHANNEL_POLL_INTERVAL_MS": "0",
    "LLM_SPACING_SECONDS": "0",
    "ANNABELLE_RATE_LIMIT_PER_MINUTE": "1000000",
    "MAX_QUEUED_MESSAGES": "100000",
    "MAX_QUEUED_PER_THREAD": "1000",
}
AGENTS = {"agents": [{"agentId": "annabelle", "costControls": {"enabled": False}}]}


def pair(hub: HubProcess, account: int) -> None:
    hub.http.post("/channels/telegram/accounts", json={"accountId": str(account)}).raise_for_status()


def measure_load(bot: BotApiDouble, chats: int, messages: int) -> float:
    """Seconds until every message was answered, each once and in order."""
    began = time.monotonic()
    each = messages // chats
    for number in range(each):
        for chat in range(1, chats + 1):
            bot.say(plan_text([], say=f"{chat}:{number}"), chat)
    wait_for(lambda: len(bot.sent) >= each * chats or None, "all answers", 900)
    seconds = time.monotonic() - began
    time.sleep(1.0)  # for one that comes twice
    told: defaultdict[str, list[str]] = defaultdict(list)
    for one in bot.sent:
        told[one.chat_id].append(one.text)
    for chat in range(1, chats + 1):
        if told[str(chat)] != [f"{chat}:{number}" for number in range(each)]:
            raise SystemExit(f"In chat {chat} something was lost, doubled or out of order: {told[str(chat)]}")
    return seconds


def measure_latency(bot: BotApiDouble, text: str, answer: str, times: int) -> list[float]:
    found: list[float] = []
    for _ in range(times):
        before = len(bot.sent)
        began = time.perf_counter()
        bot.say(text, 1)
        while len(bot.sent) <= before or answer not in bot.sent[-1].text:
            time.sleep(0.001)
        found.append(time.perf_counter() - began)
    return found


def measure_commands(hub: HubProcess, times: int) -> list[float]:
    """From the request to the answer, at the hub itself."""
    found: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        hub.http.post("/message", params={"wait": 10}, json={"text": "/cost", "chatId": "bench"}).raise_for_status()
        found.append(time.perf_counter() - began)
    return found


def measure_idle(hub: HubProcess, seconds: float) -> float:
    """Share of a core that the hub and everything below it uses."""
    everyone = [psutil.Process(hub.pid), *hub.children()]

    def used() -> float:
        return sum(sum(one.cpu_times()[:2]) for one in everyone if one.is_running())

    before = used()
    time.sleep(seconds)
    return (used() - before) / seconds


def measure_memory(hub: HubProcess) -> int:
    """Bytes of the hub and everything below it."""
    return sum(one.memory_info().rss for one in (psutil.Process(hub.pid), *hub.children()))


def measure_webhook(hub: HubProcess, bot: BotApiDouble, seconds: float) -> list[float]:
    found: list[float] = []
    headers = {"X-Telegram-Bot-Api-Secret-Token": str(bot.webhook["secret_token"])}
    with httpx.Client() as client:
        for number in range(int(seconds * 5)):
            message = {
                "message_id": 10_000 + number,
                "from": {"id": 1, "is_bot": False, "first_name": "One"},
                "chat": {"id": 1, "type": "private"},
                "date": int(time.time()),
                "text": plan_text([], say=f"w{number}"),
            }
            began = time.perf_counter()
            client.post(bot.webhook["url"], json={"update_id": number, "message": message}, headers=headers)
            found.append(time.perf_counter() - began)
            time.sleep(max(0.0, 0.2 - found[-1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chats", type=int, default=100)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="a small run that shows that everything still works")
    given = parser.parse_args()
    chats, messages, seconds = (5, 20, 2.0) if given.quick else (given.chats, given.messages, 20.0)
    report = Report("load")
    with tempfile.TemporaryDirectory() as folder, ScriptedServer() as model, bot_api_double() as (bot, address):
        home = Home(Path(folder) / "home")
        home.prepare()
        home.agents_file.write_text(json.dumps(AGENTS))
        hub = HubProcess(home, model.openai_url, TELEGRAM_API_URL=address, **SETTINGS).start()
        for chat in range(1, chats + 1):
            pair(hub, chat)
        alone = _time_model(model.openai_url)
        answered = statistics.median(measure_latency(bot, plan_text([], say="hello"), "hello", 20))
        commands = statistics.median(measure_commands(hub, 100))
        idle = measure_idle(hub, seconds)
        bot.sent.clear()
        measure_load(bot, chats, chats * 2)
        before = measure_memory(hub)
        bot.sent.clear()
        taken = measure_load(bot, chats, messages)
        grown = measure_memory(hub) / before
        hub.stop()
        hub.environment |= {"ANNABELLE_PORT": "18931", "TELEGRAM_WEBHOOK_URL": "http://127.0.0.1:18931"}
        hub.start()
        wait_for(lambda: bot.webhook.get("url"), "the webhook")
        webhook = measure_webhook(hub, bot, seconds)
        hub.end()
    report.figures["answered_per_second"] = messages / taken
    report.ratios["answer/model"] = answered / alone
    report.within("memory after the load, ratio to before", grown, 1.1)
    report.within("an answer takes longer than its model, ms", (answered - alone) * 1000, 500)
    report.within_time("a command, p50", commands * 1000, 15)
    report.within("the webhook answers, p99, ms", percentile(webhook, 0.99) * 1000, 50)
    report.within("CPU while nobody writes, percent of a core", idle * 100, 3)
    report.print()


def _time_model(url: str) -> float:
    """The scripted model asked directly: the baseline of an answer."""
    body = {"model": "scripted", "messages": [{"role": "user", "content": plan_text([], say="hello")}]}
    found: list[float] = []
    for _ in range(20):
        began = time.perf_counter()
        httpx.post(f"{url}/chat/completions", json=body, headers={"Authorization": "Bearer x"}).raise_for_status()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


if __name__ == "__main__":
    main()
