"""The tools of the memory as skills made elsewhere know them: names, parameters, what must be given, defaults."""

from __future__ import annotations

from typing import Any

import pytest

from annabelle.servers.kit import ToolServer
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.lazy_memory import LazyMemory
from annabelle.servers.memory.server import assemble

# `*` must be given; what stands after `=` is the default. agent_id is the calling agent's own when it is left out.
CATALOGUE = """
store_fact: agent_id fact* category* source
list_facts: agent_id category limit=50
delete_fact: fact_id*
update_fact: fact_id* fact* category
store_conversation: agent_id session_id user_message* agent_response* tags
search_conversations: agent_id query* limit=10 date_from date_to
get_profile: agent_id
update_profile: agent_id updates* reason
retrieve_memories: agent_id query* limit=5 include_conversations=True
get_memory_stats: agent_id
export_memory: agent_id format=markdown include_conversations=True
import_memory: agent_id file_path*
backfill_embeddings: agent_id batch_size=50
create_contact: agent_id name* email* company role type=work notes
list_contacts: agent_id email company type name limit=50
update_contact: contact_id* name email company role type notes
create_project: agent_id name* status=active type=work description primary_contact_id participants company priority
list_projects: agent_id status type company contact_id priority limit=50
update_project: project_id* name status type description primary_contact_id participants company priority
link_project_source: project_id* mcp_name* external_project_id external_project_name source_type=manual
unlink_project_source: project_id* mcp_name*
list_project_sources: project_id mcp_name limit=50
update_project_source_status: project_source_id* last_status* last_checked_at
query_timeline: agent_id date_from* date_to categories query limit=50
"""
CHOICES = {
    "category": ["preference", "background", "pattern", "project", "contact", "decision"],
    "format": ["markdown", "json"],
    "last_status": ["ok", "warning", "error", "unknown"],
    "priority": ["high", "medium", "low"],
    "source_type": ["auto", "manual"],
    "status": ["active", "paused", "completed"],
}
# For the tools that came since: who may use each.
LATER = {
    "everyone": {"explain_fact", "profile_history", "rollback_profile"},
    "people": {"restore_fact", "undo_change", "list_changes", "list_backups", "restore_backup"},
    "hub": {
        "tidy_plan",
        "apply_tidy",
        "list_unextracted",
        "mark_extracted",
        "forget_matches",
        "forget_fact_texts",
        "forget_text",
    },
}
REMOVING = {"delete_fact", "unlink_project_source", "restore_backup", "forget_text"}
READING = ("list_", "get_", "search_", "retrieve_", "query_", "explain_", "profile_history", "tidy_plan")
READING_FOR_THE_HUB = {"forget_matches", "forget_fact_texts"}

WANTED = dict(line.split(": ") for line in CATALOGUE.strip().splitlines())


@pytest.fixture
def server(sqlite_config: MemoryConfig) -> ToolServer:
    return assemble(LazyMemory(sqlite_config))


def described(schema: dict[str, Any], parameter: str) -> str:
    """A parameter the way it is written above."""
    default = schema["properties"][parameter].get("default")
    return (
        parameter
        + "*" * (parameter in schema.get("required", ()))
        + (f"={default}" if default not in (None, "") else "")
    )


def choices(field: dict[str, Any]) -> list[str] | None:
    return next((one["enum"] for one in (field, *field.get("anyOf", ())) if "enum" in one), None)


@pytest.mark.req("SRV-MEM", "MEM-02")
@pytest.mark.parametrize("name", WANTED)
def test_a_tool_of_the_catalogue_takes_the_parameters_written_there(server: ToolServer, name: str) -> None:
    schema: dict[str, Any] = server.tools[name].input_schema()
    wanted = WANTED[name].split()
    known = [described(schema, parameter) for parameter in schema["properties"]]
    assert [one for one in wanted if one not in known] == []
    assert {one for one in known if "*" in one} <= set(wanted), "nothing else has to be given"
    assert server.tools[name].audience == "everyone"


@pytest.mark.req("SRV-MEM", "MEM-06")
def test_a_choice_is_between_the_values_of_the_catalogue(server: ToolServer) -> None:
    for name in WANTED:
        fields: dict[str, Any] = server.tools[name].input_schema()["properties"]  # type: ignore[assignment]
        for parameter in CHOICES.keys() & fields.keys():
            assert choices(fields[parameter]) == CHOICES[parameter], (name, parameter)
        if "type" in fields:
            of_contacts = ["ignored"] if "contact" in name else []
            assert choices(fields["type"]) == ["work", "personal", *of_contacts], name


@pytest.mark.req("SRV-MEM", "MEM-11")
def test_there_are_no_other_tools_and_each_is_for_those_it_is_meant_for(server: ToolServer) -> None:
    found: dict[str, set[str]] = {"everyone": set(), "people": set(), "hub": set()}
    for name, tool in server.tools.items():
        if name not in WANTED:
            found[tool.audience].add(name)
    assert found == LATER
    assert not any("skill" in name for name in server.tools), "skills are the hub's"


@pytest.mark.req("SRV-MEM")
def test_what_a_tool_does_to_the_memory_is_told_truly(server: ToolServer) -> None:
    hints = {name: tool.annotations for name, tool in server.tools.items()}
    assert {name for name, hint in hints.items() if hint.destructive} == REMOVING
    reading = {name for name in hints if name.startswith(READING)} | READING_FOR_THE_HUB
    assert {name for name, hint in hints.items() if hint.read_only} == reading
    assert not any(hint.open_world for hint in hints.values())
