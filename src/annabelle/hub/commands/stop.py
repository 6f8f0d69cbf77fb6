"""`/stop`: end what is being done in this chat."""

from __future__ import annotations

from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.hub.conversations.turn_canceller import TurnCanceller, describe_stopped


class StopCommand(Command):
    info = CommandInfo(
        name="stop",
        summary="End the answer that is being made here, what waits behind it, and open questions.",
        examples=("/stop",),
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        self.expect_no_words(call)
        canceller = TurnCanceller(self.deps.storage.events, self.deps.stopper)
        return CommandAnswer(describe_stopped(await canceller.stop_chat(call.channel, call.chat_id, call.user_id)))
