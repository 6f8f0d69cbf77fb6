"""`/rules`: what Annabelle must ask about or never do, and a yes or no to a new rule."""

from __future__ import annotations

from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.hub.trust.rules import describe_rule


class RulesCommand(Command):
    info = CommandInfo(
        name="rules",
        usage="[confirm ID|revoke ID]",
        summary="Your rules; confirm makes a new one hold, revoke takes one back.",
        examples=("/rules",),
        scope="approve",
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        rules = self.deps.services.rules
        if not call.words:
            listed = await rules.listing(call.user_id)
            lines = [f"{rule.id} ({rule.state}): {describe_rule(rule)}" for rule in listed]
            return CommandAnswer("\n".join(lines) or "There are no rules. Say one: always ask before deleting mail")
        match call.words:
            case ("confirm", rule_id):
                return CommandAnswer(f"It holds: {describe_rule(await rules.confirm(rule_id, call.user_id))}")
            case ("revoke", rule_id):
                return CommandAnswer(f"Taken back: {describe_rule(await rules.revoke(rule_id, call.user_id))}")
            case _:
                raise self.wrong_usage("That is not understood.")
