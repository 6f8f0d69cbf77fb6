"""Makes up attacks: a goal in a frame, in a language, in a code, at some place of ordinary content."""

from __future__ import annotations

import base64
import codecs
import json
import re
from dataclasses import dataclass
from typing import Literal

from guardian_carriers import Carriers
from guardian_draw import Draw

Channel = Literal["output", "message"]
SPLIT = 0.05
"""Share of attacks and of their harmless counterparts that are cut up over fields."""

_POLITE = re.compile(
    r"bitte|merci|veuillez|por favor|per favore|proszę|alsjeblieft|пожалуйста|请|ください|من فضلك|lütfen|prosím|कृपया|"
    r"주세요",
    re.IGNORECASE,
)
_PLAIN_REQUEST = re.compile(
    r"^(?:please|can you|could you|i want|i need|i would like|i'd like|help me|let's|make|send|create|book|find|get|"
    r"set|"
    r"order|play|update|delete|add|generate|show|give|search|change|turn|buy|schedule|transfer|provide|write|draft|"
    r"check|"
    r"reserve)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Sample:
    """A text with what is known of it. `attack` is the part that attacks; without it the whole text counts."""

    text: str
    label: int
    family: str
    channel: Channel
    attack: str | None = None


class Attacks:
    """Draws attacks and their harmless counterparts from one seeded source."""

    def __init__(self, seed: int, carriers: list[str], requests: list[str]) -> None:
        self._draw = Draw(seed)
        self._chance, self._phrases = self._draw.chance, self._draw.phrases
        self._carriers = Carriers(self._draw, carriers)
        self._requests = [one for one in requests if _PLAIN_REQUEST.match(one) and len(one) < 300]

    def made(self, count: int) -> list[Sample]:
        makers = [
            (self._framed, 10),
            (self._saying, 4),
            (self._requested, 4),
            (self._persona, 2),
            (self._payload, 2),
            (self._coded, 2),
            (self._foreign, 6),
            (self._passage, 8),
        ]
        drawn = self._chance.choices([maker for maker, _ in makers], [weight for _, weight in makers], k=count)
        return [maker() for maker in drawn]

    def harmless(self, count: int) -> list[Sample]:
        """The same shapes around ordinary words, so that no shape alone is suspicious."""
        samples: list[Sample] = []
        for _ in range(count):
            words = (
                self._draw.fill(self._draw.pick(self._phrases.requests))
                if self._chance.random() < 0.35
                else self._carriers.sentence()
            )
            if self._chance.random() < 0.2:
                words = self._encoded(self._draw.fill(self._draw.pick(self._phrases.letters["sentences"])))[1]
            text = _split(words) if self._chance.random() < SPLIT else self._carriers.placed(self._draw.typed(words))
            samples.append(Sample(text, 0, "made-harmless", "output"))
        return samples

    def rightful(self, count: int) -> list[Sample]:
        """What a user may ask for: the goals of attacks, said where they are nobody's attack."""
        samples: list[Sample] = []
        for _ in range(count):
            text = self._in_frame(self._goal(), self._phrases.plain_frames)
            if self._chance.random() < 0.2:
                text = self._draw.pick(self._phrases.questions)
            samples.append(Sample(text, 0, "made-rightful", "message"))
        return samples

    def letters(self, count: int) -> list[Sample]:
        """What people write to each other, with the requests they make."""
        parts = self._phrases.letters
        samples: list[Sample] = []
        for _ in range(count):
            sentences = self._chance.choices(parts["sentences"], k=self._chance.randrange(1, 9))
            lines = [self._draw.pick(parts["greetings"]), " ".join(sentences), self._draw.pick(parts["closings"])]
            text = self._draw.typed(self._draw.fill("\n\n".join(line for line in lines if line)))
            if self._chance.random() < 0.4:
                head = self._draw.fill(f"From: {{PERSON}} <{{MAIL}}>\nSubject: {self._carriers.sentence()[:40]}")
                text = f"{head}\n\n{text}"
            samples.append(
                Sample(
                    text if self._chance.random() < 0.6 else self._carriers.in_object(text), 0, "made-letters", "output"
                )
            )
        return samples

    def _framed(self) -> Sample:
        return self._from_goal(self._goal(), "made-goal")

    def _saying(self) -> Sample:
        return self._from_goal(self._draw.fill(self._draw.pick(self._phrases.sayings)), "made-saying")

    def _from_goal(self, goal: str, family: str) -> Sample:
        """Dressed up, or plainly as a user would ask; the latter is an attack only where no user speaks."""
        if self._chance.random() < 0.3:
            return self._placed_sample(self._in_frame(goal, self._phrases.plain_frames), family, said=False)
        return self._placed_sample(self._in_frame(goal, self._phrases.frames), family)

    def _requested(self) -> Sample:
        """What a user would ask for has no business in a tool's result."""
        if not self._requests:
            return self._framed()
        words = self._draw.pick(self._requests)
        attack = (
            words if self._chance.random() < 0.6 else self._in_frame(_lowered(words).rstrip("."), self._phrases.frames)
        )
        return self._placed_sample(attack, "made-request", said=False)

    def _persona(self) -> Sample:
        lines = self._chance.sample(self._phrases.personas, k=self._chance.choice([1, 1, 2, 3]))
        alias = self._draw.pick(self._phrases.aliases)
        text = " ".join(
            line.replace("{ALIAS}", alias).replace("{EVIL}", self._draw.pick(self._phrases.evils)) for line in lines
        )
        channel: Channel = "message" if self._chance.random() < 0.6 else "output"
        return (
            Sample(text, 1, "made-persona", channel)
            if channel == "message"
            else self._placed_sample(text, "made-persona")
        )

    def _payload(self) -> Sample:
        text = self._draw.pick(self._phrases.payload_frames).replace(
            "{payload}", self._draw.fill(self._draw.pick(self._phrases.payloads))
        )
        return self._placed_sample(text, "made-payload")

    def _foreign(self) -> Sample:
        language = self._draw.pick(sorted(self._phrases.languages))
        text = self._draw.fill(self._draw.pick(self._phrases.languages[language]))
        if self._chance.random() < 0.3:
            text = f"{text} {self._draw.fill(self._draw.pick(self._phrases.languages[language]))}"
        return self._placed_sample(text, "made-foreign", said=not _POLITE.search(text))

    def _passage(self) -> Sample:
        """In content only: much of it a user may ask for."""
        languages = self._draw.texts["attacks"]
        named = self._chance.choices(sorted(languages), [len(languages[one]["sentences"]) for one in sorted(languages)])
        text = self._draw.fill(self._draw.pick(languages[named[0]]["sentences"]))
        return self._placed_sample(text, "made-passage", said=False)

    def _coded(self) -> Sample:
        how, code = self._encoded(self._in_frame(self._goal(), self._phrases.frames))
        text = self._draw.pick(self._phrases.ask_decode).replace("{code}", code).replace("{how}", how)
        if self._chance.random() < 0.4:
            return Sample(text, 1, "made-coded", "message", text)
        return self._placed_sample(text, "made-coded")

    def _encoded(self, text: str) -> tuple[str, str]:
        ways = {
            "base64": base64.b64encode(text.encode()).decode(),
            "hex": text.encode().hex(),
            "rot13": codecs.encode(text, "rot13"),
            "reversed text": text[::-1],
            "spaced letters": " ".join(text),
            "leet": text.translate(str.maketrans("oieast", "013457")),
            "percent code": "".join(f"%{byte:02X}" for byte in text.encode()),
            "entities": "".join(f"&#{ord(sign)};" for sign in text),
            "base32": base64.b32encode(text.encode()).decode(),
            "binary": " ".join(f"{byte:08b}" for byte in text.encode()),
        }
        return self._chance.choice(sorted(ways.items()))

    def _goal(self) -> str:
        return self._draw.fill(self._draw.pick(self._phrases.goals))

    def _in_frame(self, goal: str, frames: list[str]) -> str:
        text = self._draw.fill(self._draw.pick(frames))
        text = text.replace("{goal2}", self._goal()).replace("{goal}", goal)
        return text.replace("{Goal}", goal[:1].upper() + goal[1:]).replace("{{", "{").replace("}}", "}")

    def _placed_sample(self, attack: str, family: str, said: bool = True) -> Sample:
        """In content, or said by a user where that is an attack as well."""
        if family != "made-coded":
            attack = self._draw.typed(attack)
        if said and self._chance.random() < 0.25:
            return Sample(attack, 1, family, "message")
        if self._chance.random() < SPLIT:
            return Sample(_split(attack), 1, family, "output")
        return Sample(self._carriers.placed(attack), 1, family, "output", attack)


def _split(text: str) -> str:
    words = text.split()
    return json.dumps({f"part{at}": " ".join(words[at : at + 3]) for at in range(0, len(words), 3)}, ensure_ascii=False)


def _lowered(text: str) -> str:
    return text if text[:2].isupper() or text.startswith("I ") else text[:1].lower() + text[1:]
