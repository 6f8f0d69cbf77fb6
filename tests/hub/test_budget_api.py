"""`POST /costs/budget`: budgets that hold at once and after every start (CST-05)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hub.hubs import HubProcess, wait_for
from support.few_servers import only

pytestmark = pytest.mark.req("CST-05")


def test_a_budget_that_is_not_given_stays_and_both_last_over_a_restart(make_hub: Callable[..., HubProcess]) -> None:
    hub = make_hub(**only()).start()
    assert hub.http.post("/costs/budget", json={"dayUsd": 2.5, "monthUsd": 30}).json()["day"]["capUsd"] == 2.5
    changed = hub.http.post("/costs/budget", json={"dayUsd": None}).json()
    assert (changed["day"]["capUsd"], changed["month"]["capUsd"]) == (None, 30)

    def noted() -> bool:
        found = [one["facts"] for one in hub.http.get("/audit", params={"kind": "config"}).json()["records"]]
        changed = [one["setting"] for one in found if one.get("event") == "changed"]
        return changed == ["BUDGET_DAY_USD", "BUDGET_MONTH_USD", "BUDGET_DAY_USD"]

    wait_for(noted, "three changes in the audit")  # it is written behind the answer
    hub.stop()
    assert hub.start().http.get("/costs/budget").json()["month"]["capUsd"] == 30


def test_what_is_no_amount_or_set_elsewhere_is_refused_and_nothing_changes(make_hub: Callable[..., HubProcess]) -> None:
    hub = make_hub(BUDGET_MONTH_USD="7", **only()).start()
    for wrong in ({"dayUsd": -1}, {"dayUsd": "much"}, {"dayUsd": False}, {"dayUsd": 1, "weekUsd": 2}):
        assert hub.http.post("/costs/budget", json=wrong).status_code == 422
    refused = hub.http.post("/costs/budget", json={"dayUsd": 1, "monthUsd": 8})
    assert refused.status_code == 409
    assert "BUDGET_MONTH_USD is set in the environment" in refused.json()["error"]["message"]
    budgets = hub.http.get("/costs/budget").json()
    assert (budgets["day"]["capUsd"], budgets["month"]["capUsd"]) == (None, 7)
