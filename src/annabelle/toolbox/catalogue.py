"""Every tool there is, by the name it is called with (RTR-01)."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from annabelle.core.contract import ToolList
from annabelle.core.errors import SwitchedOff, UnknownTool
from annabelle.core.ports import ToolClient
from annabelle.core.scans import Scan
from annabelle.core.tools import ToolSpec
from annabelle.policy.tools.reviewed import reviewed_tools
from annabelle.policy.tools.traits import Traits
from annabelle.toolbox.audience import Caller, may_use
from annabelle.toolbox.manifest import variable
from annabelle.toolbox.policy import AgentPolicy

_CLOSEST = 3


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool, who serves it and how long a call may take."""

    spec: ToolSpec
    client: ToolClient
    timeout_seconds: float
    provenance: bool = False
    takes_secrets: bool = False
    scan: Scan = field(default_factory=Scan)
    vouched: bool = False


class Catalogue:
    """Names are unique: where two tools would share one, the first keeps it and `on_hidden` is told of the other.

    Our own servers come before those the user added, however long each took to start: no external server can take the
    name of a built-in tool by being quicker.
    """

    def __init__(self, on_change: Callable[[str], None], on_hidden: Callable[[ToolSpec], None]) -> None:
        self._by_server: dict[str, tuple[Offer, ...]] = {}
        self._foreign: set[str] = set()
        self._off: frozenset[str] = frozenset()
        self._held: set[str] = set()
        self._by_name: dict[str, Offer] = {}
        self._lists: dict[tuple[AgentPolicy | None, Caller], ToolList] = {}
        self._on_change, self._on_hidden = on_change, on_hidden
        self._told: set[tuple[str, str]] = set()
        self.version = _fingerprint([])

    def offer(self, server: str, offers: Iterable[Offer], *, foreign: bool = False) -> None:
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

    def switched_off(self, servers: Iterable[str]) -> None:
        """Servers that are disabled by a setting: who calls their tools is told so."""
        self._off = frozenset(servers)

    def find(self, name: str, policy: AgentPolicy | None, caller: Caller = "agent") -> Offer:
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

    def reviewed(self, spec: ToolSpec) -> Traits | None:
        """What people wrote down about a tool; None where the user added its server, whatever name that took."""
        return None if spec.server in self._foreign else reviewed_tools().get(spec.name)

    def listing(self, policy: AgentPolicy | None, caller: Caller = "agent") -> ToolList:
        if (policy, caller) not in self._lists:
            specs = self._usable(policy, caller)
            self._lists[policy, caller] = ToolList(version=_fingerprint(specs), tools=tuple(specs))
        return self._lists[policy, caller]

    def count(self, server: str) -> int:
        return sum(1 for offer in self._by_name.values() if offer.spec.server == server)

    def _usable(self, policy: AgentPolicy | None, caller: Caller) -> list[ToolSpec]:
        specs = (offer.spec for offer in self._by_name.values())
        return [spec for spec in specs if may_use(caller, spec) and (policy is None or policy.permits(spec.name))]

    def _closest(self, name: str, policy: AgentPolicy | None, caller: Caller) -> list[str]:
        names = [spec.name for spec in self._usable(policy, caller)]
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
                hint = f"Set {variable(server, 'ENABLED')}=true, then: annabelle restart"
                raise SwitchedOff(f"The {server} server is switched off.", hint=hint)

    def _rebuild(self) -> None:
        by_name: dict[str, Offer] = {}
        for server in sorted(self._by_server, key=self._foreign.__contains__):
            for offer in self._by_server[server]:
                if offer.spec.name in by_name:
                    self._tell_hidden(offer.spec)
                    continue
                by_name[offer.spec.name] = offer
        self._by_name = dict(sorted(by_name.items()))
        self._lists.clear()
        version = _fingerprint([offer.spec for offer in self._by_name.values()])
        if version != self.version:
            self.version = version
            self._on_change(version)

    def _tell_hidden(self, spec: ToolSpec) -> None:
        if (spec.server, spec.name) not in self._told:
            self._told.add((spec.server, spec.name))
            self._on_hidden(spec)


def _fingerprint(specs: list[ToolSpec]) -> str:
    digest = hashlib.sha256()
    for spec in specs:
        digest.update(spec.model_dump_json().encode())
    return digest.hexdigest()[:16]
