"""Plays the guardian: EVIL is a threat, DOUBT a doubt, SLOW never ends, and the file after `DIE ` kills it once."""

import asyncio
import json

from support.servers.stage import Arguments, Context, Prop, Stage
from support.servers.witness import die_once, note

ASKED = {"content": {}, "source": {"type": "string"}, "context": {"type": "string"}}


async def scan_content(arguments: Arguments, context: Context) -> object:
    text = json.dumps(arguments["content"])
    note(f"scan {arguments['context']} {arguments['source']}")
    if "SLOW" in text:
        await asyncio.sleep(3600)
    if "DIE " in text:
        die_once(text.split("DIE ")[1].split('"')[0])
    risk = "high" if "EVIL" in text else "medium" if "DOUBT" in text else "none"
    found = {"path": "$.text", "type": "prompt_injection", "snippet": text[:100]}
    return {
        "safe": risk != "high",
        "confidence": 0.9,
        "threats": [] if risk == "none" else [found],
        "explanation": "as told",
        "scan_id": "scan_1",
        "risk": risk,
        "score": {"high": 0.95, "medium": 0.6, "none": 0.0}[risk],
    }


def main() -> None:
    Stage("watchman", [Prop("scan_content", scan_content, ASKED, ("content",), read_only=True)]).run()


if __name__ == "__main__":
    main()
