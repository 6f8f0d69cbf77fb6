"""Which tools a caller may see and call, and for which user (POL-01, I-30)."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.agents.subagent import FORBIDDEN_TOOLS
from annabelle.core.contract import TERMINAL, ToolCall, ToolList
from annabelle.core.errors import InvalidArguments, NotAllowed
from annabelle.core.ids import new_id
from annabelle.core.messages import OWNER
from annabelle.core.tools import CallContext, ToolSpec
from annabelle.core.trace import current_trace
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.conversations.turns import ActiveTurns
from annabelle.hub.security.identities import CallerIdentity, HomeUsers
from annabelle.toolbox.catalogue import AgentPolicy
from annabelle.toolbox.facade import Toolbox

_CHAT_TOOLS = frozenset({"send_message", "send_telegram"})
_RETRIEVE, _PROFILE = "memory_retrieve_memories", "memory_get_profile"
_READ_FILE = "filer_read_file"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAccess:
    """Decides by the caller's token, the current configuration and the stored turn."""

    registry: AgentRegistry
    users: HomeUsers
    turns: ActiveTurns
    toolbox: Toolbox
    conversations_outside: bool = False
    """Whether an MCP client has the conversations, and so may write to the person's chats (HUB-08)."""

    def tools_for(self, caller: CallerIdentity) -> ToolList:
        """All tools for the owner, their own for other users, those of its policy for an agent."""
        policy = self._agent_policy(caller)
        if policy is not None:
            listed = self.toolbox.tools(policy)
            if caller.outside_agent is None:
                return listed
            return ToolList(version=listed.version, tools=tuple(one for one in listed.tools if one.audience != "named"))
        if caller.kind == "owner":
            return self.toolbox.tools()
        return self.toolbox.tools(self._user_policy(caller.user_id, in_turn=False), "api")

    def find_tool(self, caller: CallerIdentity, name: str) -> ToolSpec | None:
        return next((spec for spec in self.tools_for(caller).tools if spec.name == name), None)

    def authorize(self, caller: CallerIdentity, context: CallContext, call: ToolCall) -> AgentPolicy | None:
        """The policy of a calling agent. Raises NotAllowed if the user may not make this call."""
        implied = _implied_tools(call)
        there = {spec.name for spec in self.toolbox.tools().tools}
        for name in sorted({call.name, *implied} & there):
            self.check_user(context, name)
        policy = self._agent_policy(caller)
        if context.allowed_tools is not None and call.call_id is not None and call.name not in context.allowed_tools:
            raise NotAllowed(f"{call.name} is not part of this work.", hint="Go on with the tools that are offered.")
        for name in implied:
            if policy is not None and not policy.permits(name):
                raise NotAllowed(f"This agent may not use {name}, and so not have its result brought along.")
        return policy

    def check_user(self, context: CallContext, tool: str) -> None:
        """Raises NotAllowed if the user of a call may not use the tool."""
        policy = self.user_policy(context)
        if policy is not None and not policy.permits(tool):
            raise NotAllowed(
                f"{context.user_id} may not use {tool}.",
                hint="The owner of this home decides it: allowedTools in config/users.json.",
            )

    def user_policy(self, context: CallContext) -> AgentPolicy | None:
        """What the user of a call may use, None for the owner, who may use everything."""
        if context.user_id == OWNER:
            return None
        return self._user_policy(context.user_id, in_turn=context.caller == "agent")

    async def make_context(self, caller: CallerIdentity, call: ToolCall, client: str | None) -> CallContext:
        """Context of a call, from the token and the stored turn only: nothing the caller says."""
        if caller.agent_id is None:
            if call.call_id is not None or call.message_id is not None:
                raise NotAllowed("call_id and message_id are for agents only.", field="call_id")
            # The terminal has the rights of any client. Its name only records where something was said.
            person = "cli" if client == TERMINAL else "api"
            return CallContext(
                caller=person if caller.outside_agent is None else "agent",
                # People use the memory of the default agent (catalogue 14.1).
                agent_id=self.registry.config.default.agent_id,
                user_id=caller.user_id,
                # With an id, so that policy judges it.
                call_id=None if caller.outside_agent is None else f"{caller.outside_agent}:{new_id('call')}",
                trace_id=current_trace(),
            )
        if call.message_id is None:
            raise InvalidArguments("message_id is missing: an agent calls tools for a message.", field="message_id")
        if caller.subagent_scope is not None and call.message_id != caller.subagent_scope.turn_id:
            raise NotAllowed("A subagent acts for its own task only.", field="message_id")
        # Call ids belong to the agent's own turns, so it cannot read the results of others.
        if call.call_id is not None and not call.call_id.startswith(f"{call.message_id}:"):
            raise InvalidArguments("call_id does not belong to this message.", field="call_id")
        turn = await self.turns.context(call.message_id, caller.agent_id)
        # A subagent has no chat in which to ask.
        askable = caller.subagent_scope is None and call.call_id is not None
        own = {"call_id": call.call_id, "trace_id": current_trace(), "askable": askable, "judged": False}
        return turn.model_copy(update=own)

    def _agent_policy(self, caller: CallerIdentity) -> AgentPolicy | None:
        """An agent's current policy. A subagent's is narrower than that of its parent agent, and that of an agent from
        outside narrower than that of the default agent."""
        if caller.outside_agent is not None:
            denied = set(FORBIDDEN_TOOLS) - (_CHAT_TOOLS if self.conversations_outside else set[str]())
            return self.registry.policy(self.registry.config.default.agent_id).narrow(None, tuple(denied))
        if caller.agent_id is None:
            return None
        policy, scope = self.registry.policy(caller.agent_id), caller.subagent_scope
        return policy if scope is None else policy.narrow(scope.allowed, scope.denied)

    def _user_policy(self, user_id: str, *, in_turn: bool) -> AgentPolicy:
        return self.users.policy(user_id, self.toolbox.tools().tools, in_turn=in_turn)


def _implied_tools(call: ToolCall) -> tuple[str, ...]:
    """Tools whose results a call includes: a memory search can include the profile, a message a file."""
    if call.name == _RETRIEVE and call.arguments.get("include_profile"):
        return (_PROFILE,)
    return (_READ_FILE,) if call.name in _CHAT_TOOLS and call.arguments.get("file") else ()
