"""Facts and questions for measuring: real words, as unevenly common as in real text, the same in every run."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

from tokenizers import Tokenizer

_NAMES = "Ada Ben Clara Dmitri Elif Farid Greta Hana Igor Jun Kofi Lena Mira Noah Olga Pia Quentin Rosa Sami Tove"
_PEOPLE = _NAMES.split()
_SHAPES = (
    "{who} likes {a} {b} with {c}",
    "{who} works on the {a} {b} project for {c}",
    "The {a} of {who} is kept near the {b} in {c}",
    "{who} decided to use {a} instead of {b} because of {c} and {d}",
    "Every {a} {who} meets {b} to talk about {c}",
    "{who} does not want {a} in the {b} before {c}",
)
_ASKED = ("What does {who} think about {a} {b}?", "Which {a} did {who} choose for {b}?", "{a} {b} {c}", "Who has {a}?")


class Rows:
    """An endless supply; the n-th fact is always the same one."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("wordllama")
        assert spec is not None
        assert spec.origin is not None
        file = Path(spec.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"
        vocabulary = Tokenizer.from_file(str(file)).get_vocab()
        known = sorted((number, token[1:]) for token, number in vocabulary.items() if token.startswith("▁"))
        # The vocabulary is in the order of how common a piece of text is, so the place in it is the rank of a word.
        self._words = [
            word for _, word in known if len(word) > 3 and word.isascii() and word.isalpha() and word.islower()
        ]
        self._weights = [1 / (rank + 10) for rank in range(len(self._words))]

    def fact(self, number: int) -> str:
        chance = random.Random(number)
        a, b, c, d = self._some(chance, 4)
        return chance.choice(_SHAPES).format(who=chance.choice(_PEOPLE), a=a, b=b, c=c, d=d)

    def question(self, number: int, facts: int) -> str:
        """About one of the facts, in other words where it can be."""
        chance = random.Random(f"question {number}")
        told = self.fact(chance.randrange(facts)).split()
        words = [word for word in told if word in self._words]
        a, b, c = (chance.sample(words, 3) if len(words) >= 3 else self._some(chance, 3))[:3]
        return chance.choice(_ASKED).format(who=told[0] if told[0] in _PEOPLE else "Ada", a=a, b=b, c=c)

    def _some(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self._words, self._weights, k=count)
