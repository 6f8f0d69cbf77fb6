"""Every tool by the name it is called with, who may see and call it, and the tools the hub serves itself (RTR-01,
POL-01).
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from annabelle.core.contract import ToolList
from annabelle.core.errors import AnnabelleError, RetryByModel, SwitchedOff, UnknownTool
from annabelle.core.ports import ToolClient
from annabelle.core.tools import Audience, CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.core.trust import ScanDirections
from annabelle.policy.tool_traits import ToolTraits, reviewed_tools
from annabelle.toolbox.manifest import variable_name


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    """`*` is the only wildcard, so a name with brackets or question marks means itself."""
    return re.compile(".*".join(re.escape(part) for part in glob.split("*")), re.DOTALL)


def _matches_any(name: str, globs: tuple[str, ...]) -> bool:
    return any(_pattern(glob).fullmatch(name) for glob in globs)


@dataclass(frozen=True, slots=True)
class AgentPolicy:
    """What one agent may call. `allowed=None` (not configured) is every tool; an empty tuple is none (I-06)."""

    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()
    within: AgentPolicy | None = None
    """What this one lies inside of: asked about every name, so it is never wider, whatever its globs say (AGT-04)."""

    def narrow(self, allowed: tuple[str, ...] | None, denied: tuple[str, ...]) -> AgentPolicy:
        """A policy for somebody who works for the one with this policy."""
        return AgentPolicy(allowed, denied, within=self)

    def permits(self, name: str) -> bool:
        """Whether a tool of this exposed name may be seen and called."""
        if _matches_any(name, self.denied) or (self.within is not None and not self.within.permits(name)):
            return False
        return self.allowed is None or _matches_any(name, self.allowed)


Caller = Literal["agent", "api", "cli", "hub"]

_OPEN_TO: dict[Caller, frozenset[Audience]] = {
    "agent": frozenset({"everyone", "named"}),
    "api": frozenset({"everyone", "people"}),
    "cli": frozenset({"everyone", "people"}),
    "hub": frozenset({"everyone", "people", "hub", "named"}),
}


def may_use(caller: Caller, tool: ToolSpec) -> bool:
    """Whether a tool is meant for this kind of caller at all; what an agent's policy says comes on top."""
    return tool.audience in _OPEN_TO[caller]


_CLOSEST = 3


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """One tool, who serves it and how long a call may take."""

    spec: ToolSpec
    client: ToolClient
    timeout_seconds: float
    provenance: bool = False
    takes_secrets: bool = False
    scan: ScanDirections = field(default_factory=ScanDirections)
    vouched: bool = False


class ToolCatalogue:
    """Names are unique: where two tools would share one, the first keeps it and the other is reported as hidden.

    Our own servers come before those the user added, however long each took to start: no external server can take the
    name of a built-in tool by being quicker.
    """

    def __init__(self) -> None:
        self._by_server: dict[str, tuple[ToolOffer, ...]] = {}
        self._foreign: set[str] = set()
        self._off: frozenset[str] = frozenset()
        self._held: set[str] = set()
        self._by_name: dict[str, ToolOffer] = {}
        self._lists: dict[tuple[AgentPolicy | None, Caller], ToolList] = {}
        self._change_listeners: list[Callable[[str], None]] = []
        self._hidden_listeners: list[Callable[[ToolSpec], None]] = []
        self._reported: set[tuple[str, str]] = set()
        self.version = _fingerprint([])

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Be told the new version whenever the list of tools changes."""
        self._change_listeners.append(listener)

    def on_hidden(self, listener: Callable[[ToolSpec], None]) -> None:
        """Be told once of every tool whose name another tool has already."""
        self._hidden_listeners.append(listener)

    def offer(self, server: str, offers: Iterable[ToolOffer], *, foreign: bool = False) -> None:
        """What this server offers from now on, instead of what it offered before. `foreign`: the user added it."""
        self._by_server[server] = tuple(offers)
        self._held.discard(server)
        (self._foreign.add if foreign else self._foreign.discard)(server)
        self._rebuild()

    def hold(self, server: str) -> None:
        """Offer nothing of this server until it offers anew; who calls its tools is told that it is held back."""
        self.withdraw(server)
        self._held.add(server)

    def withdraw(self, server: str) -> None:
        self._held.discard(server)
        if self._by_server.pop(server, None):
            self._rebuild()

    def set_switched_off(self, servers: Iterable[str]) -> None:
        """Servers that are disabled by a setting: who calls their tools is told so."""
        self._off = frozenset(servers)

    def find(self, name: str, policy: AgentPolicy | None, caller: Caller = "agent") -> ToolOffer:
        """The tool of this name. The closest names are those the caller may use; the others stay unknown to it."""
        offer = self._by_name.get(name)
        if offer is None:
            self._refuse_held(name)
            self._refuse_switched_off(name)
            close = self._closest(name, policy, caller)
            hint = f"Did you mean {' or '.join(close)}?" if close else None
            raise UnknownTool(f"There is no tool called {name}.", hint=hint)
        return offer

    def wants_provenance(self, name: str) -> bool:
        """Whether its server asks to be told where the content of a call may come from."""
        offer = self._by_name.get(name)
        return offer is not None and offer.provenance

    def reviewed_traits(self, spec: ToolSpec) -> ToolTraits | None:
        """What people wrote down about a tool; None where the user added its server, whatever name that took."""
        return None if spec.server in self._foreign else reviewed_tools().get(spec.name)

    def list_tools(self, policy: AgentPolicy | None, caller: Caller = "agent") -> ToolList:
        if (policy, caller) not in self._lists:
            specs = self._usable_specs(policy, caller)
            self._lists[policy, caller] = ToolList(version=_fingerprint(specs), tools=tuple(specs))
        return self._lists[policy, caller]

    def count(self, server: str) -> int:
        return sum(1 for offer in self._by_name.values() if offer.spec.server == server)

    def _usable_specs(self, policy: AgentPolicy | None, caller: Caller) -> list[ToolSpec]:
        specs = (offer.spec for offer in self._by_name.values())
        return [spec for spec in specs if may_use(caller, spec) and (policy is None or policy.permits(spec.name))]

    def _closest(self, name: str, policy: AgentPolicy | None, caller: Caller) -> list[str]:
        names = [spec.name for spec in self._usable_specs(policy, caller)]
        unprefixed = [known for known in names if known.endswith(f"_{name}")]
        similar = difflib.get_close_matches(name.lower(), names, n=_CLOSEST, cutoff=0.5)
        return list(dict.fromkeys([*unprefixed, *similar]))[:_CLOSEST]

    def _refuse_held(self, name: str) -> None:
        for server in sorted(self._held):
            if name.startswith(f"{server}_"):
                raise SwitchedOff(
                    f"The {server} server is held back until the owner has looked at it.",
                    hint=f"Only they can let it in: annabelle servers diff {server}",
                )

    def _refuse_switched_off(self, name: str) -> None:
        for server in sorted(self._off - self._by_server.keys()):
            if name.startswith(f"{server}_"):
                hint = f"Set {variable_name(server, 'ENABLED')}=true, then: annabelle restart"
                raise SwitchedOff(f"The {server} server is switched off.", hint=hint)

    def _rebuild(self) -> None:
        by_name: dict[str, ToolOffer] = {}
        for server in sorted(self._by_server, key=self._foreign.__contains__):
            for offer in self._by_server[server]:
                if offer.spec.name in by_name:
                    self._report_hidden(offer.spec)
                    continue
                by_name[offer.spec.name] = offer
        self._by_name = dict(sorted(by_name.items()))
        self._lists.clear()
        version = _fingerprint([offer.spec for offer in self._by_name.values()])
        if version != self.version:
            self.version = version
            for listener in self._change_listeners:
                listener(version)

    def _report_hidden(self, spec: ToolSpec) -> None:
        if (spec.server, spec.name) not in self._reported:
            self._reported.add((spec.server, spec.name))
            for listener in self._hidden_listeners:
                listener(spec)


def _fingerprint(specs: list[ToolSpec]) -> str:
    digest = hashlib.sha256()
    for spec in specs:
        digest.update(spec.model_dump_json().encode())
    return digest.hexdigest()[:16]


NATIVE = "hub"

OWN_WORDS = ScanDirections(input=False, output=False)
"""For tools that give back nothing but the hub's own words, or what the doors of another tool have let through."""

NativeHandler = Callable[[JsonObject, CallContext], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class NativeTool:
    """One hub-native tool. Declare it idempotent when the handler keeps a call id from acting twice."""

    name: str
    description: str
    input_schema: JsonObject
    handler: NativeHandler
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    group: str = "Core"
    timeout_seconds: float | None = None
    audience: Audience = "everyone"
    scan: ScanDirections = field(default_factory=lambda: ScanDirections(input=False))
    """Its arguments go nowhere but into the hub. What it gives back may be what others wrote, unless it says not."""

    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            server=NATIVE,
            original_name=self.name,
            description=f"[Annabelle | {self.group}] {self.description}",
            input_schema=self.input_schema,
            annotations=self.annotations,
            group=self.group,
            audience=self.audience,
        )

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Ours to trust, unless the handler says otherwise of what it gives back."""
        result = await self.handler(arguments, context)
        return result if "trust" in result.model_fields_set else result.model_copy(update={"trust": "trusted"})


READS = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
WRITES_ONCE = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)


def text_parameter(longest: int, description: str = "") -> JsonObject:
    said: JsonObject = {"description": description} if description else {}
    return {"type": "string", "minLength": 1, "maxLength": longest, **said}


def number_parameter(least: int, most: int, default: int, description: str = "") -> JsonObject:
    said: JsonObject = {"description": description} if description else {}
    return {"type": "integer", "minimum": least, "maximum": most, "default": default, **said}


def native_tool(
    name: str,
    description: str,
    parameters: JsonObject,
    *,
    required: Sequence[str] = (),
    annotations: ToolAnnotations,
    group: str = "Core",
    timeout_seconds: float | None = None,
    scan: ScanDirections | None = None,
    audience: Audience = "everyone",
    answers: type[AnnabelleError] = RetryByModel,
) -> Callable[[NativeHandler], NativeTool]:
    """Make a hub-native tool from a handler. An error of the kind `answers` becomes a failed result."""
    schema: JsonObject = {"type": "object", "properties": parameters}
    if required:
        schema["required"] = list(required)
    schema["additionalProperties"] = False

    def make_tool(handler: NativeHandler) -> NativeTool:
        async def answer_errors(arguments: JsonObject, context: CallContext) -> ToolResult:
            try:
                return await handler(arguments, context)
            except answers as error:
                return ToolResult.failure(error.body(context.trace_id))

        tool = NativeTool(name, description, schema, answer_errors, annotations, group, timeout_seconds, audience)
        return tool if scan is None else replace(tool, scan=scan)

    return make_tool
