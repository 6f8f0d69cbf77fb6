"""The calculator, which works everywhere."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.errors import InvalidArguments, RetryByModel, TooLarge
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-EXE")


@pytest.mark.parametrize(
    ("code", "value", "kind"),
    [
        ("2 ** 100", "1267650600228229401496703205376", "int"),
        ("import math\nround(math.sqrt(2), 6)", "1.414214", "float"),
        ("from decimal import Decimal\nDecimal('0.1') + Decimal('0.2')", "Decimal('0.3')", "Decimal"),
        ("import datetime\n(datetime.date(2026, 12, 24) - datetime.date(2026, 11, 15)).days", "39", "int"),
        ("words = 'b a'.split()\nsorted(words)", "['a', 'b']", "list"),
        ("'grüße'.upper()", "GRÜSSE", "str"),
    ],
)
async def test_it_calculates(call: CallTool, code: str, value: str, kind: str) -> None:
    result = await call("calculate", code=code)
    assert (result.value, result.type) == (value, kind)
    assert result.to_text() == value


async def test_what_is_printed_comes_along(call: CallTool) -> None:
    result = await call("calculate", code="print('a')\nx = 1")
    assert (result.printed, result.value) == ("a\n", None)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("open('/etc/passwd').read()", "PermissionError"),
        ("import socket", "ModuleNotFoundError"),
        ("import os\nos.environ", "not supported"),
        ("x = 'a' * 10**10", "MemoryError"),
    ],
)
async def test_what_it_can_not_do_is_said(call: CallTool, code: str, said: str) -> None:
    with pytest.raises(RetryByModel, match=said):
        await call("calculate", code=code)


async def test_wrong_code_is_named(call: CallTool) -> None:
    with pytest.raises(InvalidArguments, match="not valid Python"):
        await call("calculate", code="1 +")


async def test_an_endless_calculation_is_stopped_and_the_next_one_works(
    call: CallTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annabelle.servers.codexec.calculate._SECONDS", 0.3)
    with pytest.raises(RetryByModel, match="Timeout"):
        await call("calculate", code="while True: pass")
    assert (await call("calculate", code="1 + 1")).value == "2"


async def test_a_result_too_long_to_be_written_is_an_answer(call: CallTool) -> None:
    with pytest.raises((TooLarge, RetryByModel)):
        await call("calculate", code="10 ** 100000")
    assert len((await call("calculate", code="'x' * 1_000_000")).value) < 10_200


async def test_a_result_too_deep_to_be_written_is_an_answer(call: CallTool) -> None:
    with pytest.raises(TooLarge, match="too long to be shown"):
        await call("calculate", code="x = []\nfor _ in range(20_000):\n    x = [x]\nx")


async def test_calculations_share_nothing(call: CallTool) -> None:
    await call("calculate", code="x = 1")
    with pytest.raises(RetryByModel, match="NameError"):
        await call("calculate", code="x")
    results = await asyncio.gather(*(call("calculate", code=f"{n} * 2") for n in range(6)))
    assert [result.value for result in results] == ["0", "2", "4", "6", "8", "10"]
