"""An account's file that was damaged: every call and the readiness say what to run, and show nothing of it."""

from __future__ import annotations

import pytest

from annabelle.core.connections import connection_file
from annabelle.core.errors import ConfigMistake
from annabelle.servers.mail_calendar.config import MailCalendarConfig
from annabelle.servers.mail_calendar.server import build

pytestmark = pytest.mark.req("SRV-MAI", "SRV-ALL")


@pytest.mark.parametrize("kind", ["google", "mail"])
async def test_a_damaged_account_says_what_to_run_in_every_call_and_in_the_status(
    mail_config: MailCalendarConfig, kind: str
) -> None:
    file = connection_file(mail_config.home, kind)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"email": "ada@example.com", "password": "secret-nobody-may-see"')
    server = build(mail_config)
    for tool in ("list_emails", "list_events"):
        with pytest.raises(ConfigMistake, match=f"{kind}.json of the connected accounts can not be read") as refused:
            await server.tools[tool].call({})
        assert refused.value.hint == f"Connect again: annabelle connect {kind}"
        assert "secret" not in f"{refused.value}{refused.value.__cause__}"
    told = str(await server.tools["readiness"].call({}))
    assert f"can not be read. Connect again: annabelle connect {kind}" in told
    assert "secret" not in told
    await server.close()
