"""A 1Password without a network: an executable called `op` that knows some vaults and writes down how it was called."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.call import Call, enter_call
from annabelle.servers.onepassword.command import OnePasswordConfig
from annabelle.servers.onepassword.server import build
from support.op_stand_in import StandIn


@pytest.fixture
def op(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path / "op-bin")


@pytest.fixture
def vault(op: StandIn) -> ToolServer:
    """The server in this process, with a stand-in on its PATH."""
    environment = {"PATH": f"{op.folder}:{os.environ['PATH']}", "HOME": str(op.folder)}
    return build(OnePasswordConfig(environment=environment, seconds=10))


@pytest.fixture(autouse=True)
def asked_by_an_agent() -> Iterator[None]:
    enter_call(Call(agent_id="annabelle", user_id="owner", caller="agent"))
    yield
    enter_call(Call())
