"""A model server for tests that answers by script over real HTTP, in the protocols of OpenAI and of Anthropic.

In a test:      with ScriptedServer([Rule(match="hello", reply=Reply(text="hi"))]) as server: … server.openai_url …
As a process:   python -m support.scripted_model --port 0 [--script rules.json] [--record requests.jsonl] [--key K]
                prints LISTENING_PORT=n; GET /__requests, DELETE /__requests, PUT /__script (a JSON list of rules)

Without a matching rule the answer follows from the conversation alone, so any process may be killed at any time: a
user text that holds `{"calls": [{"name": "…", "arguments": {…}}, …], "say": "…"}` is answered by these calls, one per
step (a list inside `calls` is one step of several calls), and then by the text. `{result}` in it stands for the last
tool result. Every other field of `Reply` (think, delay, chunks, error, …) may stand in the plan too. Any other text
is answered by `You said: …`.
"""

from support.scripted_model.conversation import Conversation
from support.scripted_model.script import Call, Failure, Reply, Rule, Script, plan_text
from support.scripted_model.server import Recorded, ScriptedServer

__all__ = [
    "Call",
    "Conversation",
    "Failure",
    "Recorded",
    "Reply",
    "Rule",
    "Script",
    "ScriptedServer",
    "plan_text",
]
