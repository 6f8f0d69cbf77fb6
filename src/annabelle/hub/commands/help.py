"""`/help`: the commands that a person may give."""

from __future__ import annotations

from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo


class HelpCommand(Command):
    info = CommandInfo(
        name="help",
        usage="[command]",
        summary="The commands there are, or how one is used.",
        examples=("/help", "/help logs"),
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        if not call.words:
            lines = [f"{info.synopsis} – {info.summary}" for info in call.offered]
            return CommandAnswer("\n".join([*lines, "", "Everything else you say is answered by a model."]))
        name = call.words[0].lstrip("/").lower()
        found = next((info for info in call.offered if info.name == name), None)
        if found is None:
            raise self.wrong_usage(f"There is no command /{name}.")
        examples = f"\nFor example: {', '.join(found.examples)}" if found.examples else ""
        return CommandAnswer(f"{found.synopsis}\n{found.summary}{examples}")
