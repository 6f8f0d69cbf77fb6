"""A long conversation for the benchmark of the prompt: everyday topics, some with tools, and what memory knows."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.tools import JsonObject, ToolResult

QUESTION = "what files do I have?"
LISTING = "\n".join(f"{name}  {size} bytes  2026-11-1{n}" for n, (name, size) in enumerate(
    [("notes.md", 1840), ("report-q3.md", 20711), ("recipes/bread.md", 912), ("photos.txt", 77), ("todo.md", 421)]
))  # fmt: skip


@dataclass(frozen=True)
class Exchange:
    """What the user says, which tool the model calls for it, what comes back, and the answer."""

    text: str
    answer: str
    tool: str = ""
    arguments: JsonObject | None = None
    result: str = ""


# Those with tools come last: the question is asked when their results, a good thousand characters each, and the tools
# themselves are still fresh.
_TOPICS = (
    Exchange("Good morning!", "Good morning. The kettle is on your list for today."),
    Exchange("Which river runs through Lisbon?", "The Tagus, which meets the Atlantic just west of the city."),
    Exchange("Convert 12 inches to centimetres.", "12 inches are 30.48 centimetres."),
    Exchange("How long do I boil an egg?", "Six minutes for a soft yolk, nine for a firm one."),
    Exchange("Suggest a name for a grey cat.", "Pebble, perhaps. It is short and easy to call."),
    Exchange("Thank you, that helps.", "You are welcome."),
    Exchange(
        "Is there any unread mail from the bank?",
        "Two mails are unread: the statement of October, and a notice about new terms from 1 December.",
        "gmail_list_emails", {"query": "from:bank is:unread"},
        "\n".join(f"{n} | bank@example.org | Statement {n} | unread | " + "lorem ipsum " * 10 for n in range(6)),
    ),
    Exchange(
        "What is on my calendar on Friday?",
        "On Friday there is the review at 10:00 and dinner with Ada at 19:30.",
        "gmail_list_events", {"time_min": "2026-11-20T00:00:00Z", "time_max": "2026-11-21T00:00:00Z"},
        "10:00 review (room 4)\n19:30 dinner with Ada (Rua das Flores 12)\n" + "details " * 80,
    ),
    Exchange(
        "Look up how the new tram line is doing.",
        "The line opens in March; the last stretch of track was laid in October. Source: https://example.org/tram",
        "searcher_web_search", {"query": "new tram line opening"},
        "\n".join(f"https://example.org/{n} Tram line {n}: " + "the works go on " * 9 for n in range(6)),
    ),
    Exchange(
        "What did I note about the garden?",
        "That the roses want cutting in February, and that the hose leaks.",
        "filer_read_file", {"path": "notes.md"},
        "# Garden\n- cut roses in February\n- hose leaks\n" + "- another line about plants and soil\n" * 30,
    ),
)  # fmt: skip


def said(number: int) -> Exchange:
    """The exchange of a turn; each is a little different from those before."""
    topic = _TOPICS[number % len(_TOPICS)]
    return Exchange(f"{topic.text} ({number})", topic.answer, topic.tool, topic.arguments, topic.result)


def memory(fields: int) -> ToolResult:
    """What memory answers to every message: a profile of so many fields, and five facts."""
    habits: JsonObject = {f"habit_{n}": "prefers the quiet way, with few words and a clear end" for n in range(fields)}
    found = [
        {
            "id": n,
            "fact": f"The user once said about matter {n} that it is to be done before the end of the month.",
            "source": "chat",
            "trust": "trusted",
            "created_at": "2026-05-03T10:00:00+00:00",
        }
        for n in range(5)
    ]
    profile: JsonObject = {"profile": {"user": habits}, "version": 3, "untrusted_fields": [], "trust": "trusted"}
    return ToolResult(text="", structured={"facts": found, "conversations": [], "profile": profile})
