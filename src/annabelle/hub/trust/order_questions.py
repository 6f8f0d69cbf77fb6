"""Has a thinker's model read whether a person ordered a call (POL-08)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

from annabelle.core.contract import OrderBrief
from annabelle.core.errors import AnnabelleError
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext
from annabelle.core.trace import current_trace
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.policy.order_question import OrderQuestion

_KEPT: Final = 500


class OrderQuestions:
    """Asks each question once. Whatever goes wrong, the answer is that nobody knows, and the person is asked."""

    def __init__(self, settings: Settings, thinkers: ThinkerQuestions) -> None:
        self._settings, self._thinkers = settings, thinkers
        self._known: OrderedDict[tuple[str, OrderQuestion], bool] = OrderedDict()

    async def __call__(self, question: OrderQuestion, context: CallContext) -> bool | None:
        if context.agent_id is None:
            return None
        key = (context.user_id, question)
        if key in self._known:
            return self._known[key]
        brief = OrderBrief(
            user_id=context.user_id,
            trace_id=context.trace_id or current_trace() or "",
            message=question.message,
            acts=question.acts,
            objects=question.objects,
            receivers=question.receivers,
        )
        try:
            async with asyncio.timeout(self._settings.llm_summary_timeout_seconds):
                ordered = (await self._thinkers.read_order(context.agent_id, brief)).ordered
        except (AnnabelleError, TimeoutError):
            return None
        if ordered is not None:
            self._known[key] = ordered
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return ordered
