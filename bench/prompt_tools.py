"""The 139 tools of a full house, as the benchmark of the prompt registers them: name, what it does, parameters."""

from __future__ import annotations

from typing import Final

# `server name: description`, and below it the parameters: `*` must be given, `=x` is the default, `a|b` a choice,
# `[]` a list, `(1..9)` a range, `/null` may be null, `{…}` an object.
TOOLS: Final = """\
filer filer_create_file: Create a text file in the workspace; one that exists is refused unless overwrite is set.
  path*:str, content*:str, overwrite:bool=false
filer filer_read_file: Read a text file from the workspace or from a folder that was granted.
  path*:str
filer filer_list_files: List the files and folders at a path, with size and time of change.
  path:str=".", recursive:bool=false
filer filer_update_file: Replace the content of a file; the old version is kept as a backup.
  path*:str, content*:str, create_backup:bool=true
filer filer_delete_file: Delete a file in the workspace.
  path*:str
filer filer_move_file: Move or rename a file within the places that may be written.
  source*:str, destination*:str
filer filer_copy_file: Copy a file to another place.
  source*:str, destination*:str
filer filer_search_files: Search for files by name or by what is in them.
  query*:str, search_in:workspace|granted|all="workspace", search_type:filename|content="filename", file_types:str[]
filer filer_check_grant: Say whether a path outside the workspace may be read or written.
  path*:str
filer filer_request_grant: Ask the user for access to a path outside the workspace.
  path*:str, permission*:read|read-write, reason*:str
filer filer_list_grants: List the paths outside the workspace that the user has granted.
filer filer_get_workspace_info: Say where the workspace is, how many files are in it and how large it is.
filer filer_get_audit_log: Show what was done with files: when, by whom and how it ended.
  path_filter:str, operation_filter:str, date_from:str, limit:num=100
codexec codexec_execute_code: Run a piece of code once in a sandbox and return its output, errors and files it made.
  language*:python|node|bash, code*:str, timeout_ms:int/null, working_dir:str/null
codexec codexec_start_session: Start an interpreter that keeps its variables between calls.
  language*:python|node, name:str/null, working_dir:str/null
codexec codexec_send_to_session: Run code in a session that was started before, or in a new one of the language.
  session_id:str/null, language:python|node/null, code*:str, timeout_ms:int/null
codexec codexec_close_session: End an interpreter session and free what it holds.
  session_id*:str
codexec codexec_list_sessions: List the interpreter sessions that are open, with language and age.
codexec codexec_install_package: Install a package for Python or Node so that code can use it.
  language*:python|node, package*:str, session_id:str/null
codexec codexec_save_script: Keep a script under a name for later use.
  name*:str, description*:str, language*:python|node|bash, code*:str, tags:str[]/null, packages:str[]/null
codexec codexec_get_script: Show a script that was saved, with its code and what it needs.
  name*:str
codexec codexec_list_scripts: List saved scripts, of one language or with one tag.
  language:python|node|bash/null, tag:str/null
codexec codexec_search_scripts: Find saved scripts by words in name, description or code.
  query*:str
codexec codexec_run_script: Run a saved script with arguments.
  name*:str, args:str[]/null, timeout_ms:int/null, working_dir:str/null
codexec codexec_save_and_run_script: Save a script under a name and run it at once.
  name*:str, description*:str, language*:python|node|bash, code*:str, tags:str[]/null, packages:str[]/null,
  args:str[]/null, timeout_ms:int/null, working_dir:str/null
codexec codexec_delete_script: Delete a saved script.
  name*:str
memory memory_store_fact: Remember one thing about the user: a preference, a date, a decision, a person.
  agent_id:str="main", fact*:str, category*:preference|background|pattern|project|contact|decision, source:str
memory memory_list_facts: List what is remembered, of one category or of all, newest first.
  agent_id:str="main", category:preference|background|pattern|project|contact|decision, limit:num=50
memory memory_delete_fact: Forget one fact by its number.
  fact_id*:num
memory memory_update_fact: Correct a fact; the old wording is kept in its history.
  fact_id*:num, fact*:str, category:preference|background|pattern|project|contact|decision
memory memory_store_conversation: Keep an exchange of user and assistant so that it can be found again.
  agent_id:str="main", session_id:str, user_message*:str, agent_response*:str, tags:str[]
memory memory_search_conversations: Search what was said in earlier conversations, by words and by meaning.
  agent_id:str="main", query*:str, limit:num=10, date_from:str, date_to:str
memory memory_get_profile: Read the profile: what matters about the user in every conversation, and who the agent is.
  agent_id:str="main"
memory memory_update_profile: Change fields of the profile; the other fields stay as they are.
  agent_id:str="main", updates*:obj, reason:str
memory memory_retrieve_memories: Bring to mind what is known about something: facts and what was said earlier.
  agent_id:str="main", query*:str, limit:num=5, include_conversations:bool=true
memory memory_get_memory_stats: Count facts, conversations, contacts and projects in memory.
  agent_id:str="main"
memory memory_export_memory: Write the whole memory into files a person can read.
  agent_id:str="main", format:markdown|json="markdown", include_conversations:bool=true
memory memory_import_memory: Read a memory that was exported before.
  agent_id:str="main", file_path*:str
memory memory_store_skill: Store a skill: instructions that run by hand, on a schedule or on an event.
  agent_id:str="main", name*:str, description:str, trigger_type*:cron|manual|event, trigger_config:obj,
  instructions*:str, required_tools:str[], execution_plan:{id:str, toolName:str, parameters?:obj,
  dependsOn?:str[]}[], max_steps:num=10, notify_on_completion:bool=true, notify_interval_minutes:int(0..)=0,
  enabled:bool=true
memory memory_list_skills: List stored skills with how they are triggered and whether they are on.
  agent_id:str, enabled:bool, trigger_type:cron|manual|event
memory memory_get_skill: Show one skill with its instructions and how its last run ended.
  skill_id*:num
memory memory_update_skill: Change a stored skill, or switch it on or off.
  skill_id*:num, name:str, description:str, enabled:bool, trigger_type:cron|manual|event, trigger_config:obj,
  instructions:str, required_tools:str[], execution_plan:{id:str, toolName:str, parameters?:obj, dependsOn?:str[]}[],
  max_steps:num, notify_on_completion:bool, notify_interval_minutes:int(0..), last_run_at:str, last_run_status:str,
  last_run_summary:str, last_notified_at:str
memory memory_delete_skill: Delete a stored skill.
  skill_id*:num
memory memory_backfill_extract_facts: Read facts out of older conversations that were not looked at yet.
  agent_id:str="main", batch_size:num(..50)=10
memory memory_synthesize_facts: Merge facts that say the same and point out those that contradict each other.
  agent_id:str="main", category:preference|background|pattern|project|contact|decision,
  max_facts_per_category:num(..200)=100
memory memory_backfill_embeddings: Make vectors for facts and conversations that have none.
  agent_id:str="main", batch_size:num(..200)=50
memory memory_create_contact: Add a person with address, company and role.
  agent_id:str="main", name*:str, email*:str, company:str, role:str, type:work|personal|ignored="work", notes:str
memory memory_list_contacts: List people by name, address, company or kind.
  agent_id:str="main", email:str, company:str, type:work|personal|ignored, name:str, limit:num=50
memory memory_update_contact: Change what is known of a contact.
  contact_id*:num, name:str, email:str, company:str, role:str, type:work|personal|ignored, notes:str
memory memory_create_project: Add a project with its people, status and priority.
  agent_id:str="main", name*:str, status:active|paused|completed="active", type:work|personal="work",
  description:str, primary_contact_id:num, participants:num[], company:str, priority:high|medium|low
memory memory_list_projects: List projects by status, kind, company, contact or priority.
  agent_id:str="main", status:active|paused|completed, type:work|personal, company:str, contact_id:num,
  priority:high|medium|low, limit:num=50
memory memory_update_project: Change a project.
  project_id*:num, name:str, status:active|paused|completed, type:work|personal, description:str,
  primary_contact_id:num/null, participants:num[], company:str, priority:high|medium|low/null
memory memory_link_project_source: Link a project with the place where its work happens at another service.
  project_id*:num, mcp_name*:str, external_project_id:str, external_project_name:str,
  source_type:auto|manual="manual"
memory memory_unlink_project_source: Remove the link between a project and a service.
  project_id*:num, mcp_name*:str
memory memory_list_project_sources: List which services projects are linked with.
  project_id:num, mcp_name:str, limit:num=50
memory memory_update_project_source_status: Note how a linked service is doing.
  project_source_id*:num, last_status*:ok|warning|error|unknown, last_checked_at:str
memory memory_query_timeline: Show what happened in a span of time: facts, conversations, changes.
  agent_id:str="main", date_from*:str, date_to:str,
  categories:facts|conversations|profile_changes|skills|contacts|projects[], query:str, limit:num=50
searcher searcher_web_search: Search the web and return titles, addresses and snippets.
  query*:str, count:num(1..20)=10, freshness:str, safesearch:off|moderate|strict="moderate"
searcher searcher_news_search: Search the news of the last hours or days.
  query*:str, count:num(1..20)=10, freshness:str
searcher searcher_image_search: Search for pictures and return their addresses.
  query*:str, count:num=5, safesearch:off|strict="strict"
searcher searcher_web_fetch: Fetch a page and return its readable text.
  url*:str, maxLength:num(1000..100000)=20000, includeLinks:bool=true, timeout:num(1000..30000)=10000
gmail gmail_list_emails: List mails by a search in Gmail's syntax, newest first, with sender, subject and snippet.
  query:str, max_results:num(1..100), label_ids:str[], page_token:str
gmail gmail_get_email: Read one mail with its text and headers.
  message_id*:str
gmail gmail_send_email: Send a mail at once.
  to*:str, subject*:str, body*:str, cc:str, bcc:str, is_html:bool
gmail gmail_reply_email: Answer a mail in its thread.
  message_id*:str, body*:str, is_html:bool
gmail gmail_delete_email: Move a mail to the bin.
  message_id*:str
gmail gmail_mark_read: Mark a mail as read or unread.
  message_id*:str, read*:bool
gmail gmail_modify_labels: Add labels to a mail or take them away.
  message_id*:str, add_label_ids:str[], remove_label_ids:str[]
gmail gmail_get_new_emails: Return the mails that came since the last look.
  clear:bool/str
gmail gmail_list_drafts: List the drafts.
gmail gmail_create_draft: Write a draft without sending it.
  to*:str, subject*:str, body*:str, cc:str, bcc:str, is_html:bool
gmail gmail_update_draft: Replace the content of a draft.
  draft_id*:str, to*:str, subject*:str, body*:str, cc:str, bcc:str, is_html:bool
gmail gmail_send_draft: Send a draft.
  draft_id*:str
gmail gmail_delete_draft: Delete a draft.
  draft_id*:str
gmail gmail_list_labels: List the labels of the mailbox.
gmail gmail_create_label: Create a label.
  name*:str
gmail gmail_delete_label: Delete a label; the mails stay.
  label_id*:str
gmail gmail_list_attachments: List the attachments of a mail.
  message_id*:str
gmail gmail_get_attachment: Download an attachment into the workspace.
  message_id*:str, attachment_id*:str
gmail gmail_list_calendars: List the calendars the user has.
gmail gmail_list_events: List calendar events in a span of time.
  calendar_id:str, time_min:str, time_max:str, query:str, max_results:num(1..250), page_token:str
gmail gmail_get_event: Show one calendar event with its guests.
  event_id*:str, calendar_id:str
gmail gmail_create_event: Create a calendar event and invite guests.
  summary*:str, description:str, location:str, start_date_time:str, start_date:str, end_date_time:str, end_date:str,
  time_zone:str, attendees:str[], recurrence:str[], reminders:{method:email|popup, minutes:num(0..)}[],
  calendar_id:str
gmail gmail_update_event: Change a calendar event or answer an invitation.
  event_id*:str, summary:str, description:str, location:str, start_date_time:str, start_date:str, end_date_time:str,
  end_date:str, time_zone:str, attendees:str[], response_status:accepted|declined|tentative, calendar_id:str
gmail gmail_delete_event: Delete a calendar event.
  event_id*:str, calendar_id:str
gmail gmail_quick_add_event: Create an event from a sentence.
  text*:str, calendar_id:str
gmail gmail_find_free_time: Find when the user is free in a span of time.
  time_min*:str, time_max*:str, calendar_ids:str[]
gmail gmail_list_filters: List the mail filters.
gmail gmail_get_filter: Show one mail filter.
  filter_id*:str
gmail gmail_create_filter: Create a rule for mail that arrives.
  criteria*:{from?:str, to?:str, subject?:str, query?:str, has_attachment?:bool, size?:num,
  size_comparison?:larger|smaller}, action*:{add_label_ids?:str[], remove_label_ids?:str[], forward?:str}
gmail gmail_delete_filter: Delete a mail filter.
  filter_id*:str
telegram telegram_mark_read: Mark the messages of a chat as read.
  chat_id*:str, message_id:num
telegram telegram_list_contacts: List the contacts in Telegram.
telegram telegram_send_message: Send a message to a chat.
  chat_id*:str, message*:str, reply_to:num
telegram telegram_get_messages: Read the latest messages of a chat.
  chat_id*:str, limit:num(1..100)=20, offset_id:num
telegram telegram_search_messages: Search messages in one chat or in all.
  query*:str, chat_id:str, limit:num(1..100)=20
telegram telegram_delete_messages: Delete messages from a chat for everyone.
  chat_id*:str, message_ids*:num[]
telegram telegram_list_chats: List chats with the time of their last message.
  limit:num(1..200)=50
telegram telegram_get_chat: Show what is known of a chat.
  chat_id*:str
telegram telegram_create_group: Create a group with these members.
  title*:str, user_ids*:str[]
telegram telegram_add_contact: Add a contact by phone number.
  phone*:str, first_name*:str, last_name:str
telegram telegram_search_users: Search for people by name or user name.
  query*:str, limit:num(1..50)=10
telegram telegram_send_media: Send a picture, video or file to a chat.
  chat_id*:str, file_path*:str, caption:str
telegram telegram_download_media: Save the media of a message as a file.
  chat_id*:str, message_id*:num, output_path*:str
telegram telegram_get_me: Say which account is in use.
telegram telegram_get_new_messages: Return the messages that came since the last look.
  peek:bool
telegram telegram_subscribe_chat: Watch a chat for new messages, or stop watching it.
  chat_id:str, action*:subscribe|unsubscribe|list|clear
onepassword onepassword_list_vaults: List the vaults that may be read.
onepassword onepassword_list_items: List the items of a vault without their secrets.
  vault*:str, categories:str[]
onepassword onepassword_get_item: Show an item with its fields; secrets are hidden.
  item*:str, vault:str
onepassword onepassword_read_secret: Read one secret by its reference.
  reference*:str
web web_browser_close: Close the browser.
web web_browser_resize: Change the size of the browser window.
  width*:num, height*:num
web web_browser_console_messages: Return what the page wrote to its console.
  level*:error|warning|info|debug="info", filename:str
web web_browser_handle_dialog: Accept or dismiss a dialog of the page.
  accept*:bool, promptText:str
web web_browser_evaluate: Run JavaScript on the page or on an element.
  function*:str, element:str, ref:str
web web_browser_file_upload: Choose files in a file dialog of the page.
  paths:str[]
web web_browser_fill_form: Fill several fields of a form.
  fields*:{name:str, type:textbox|checkbox|radio|combobox|slider, ref:str, value:str}[]
web web_browser_install: Install the browser that is needed.
web web_browser_press_key: Press a key.
  key*:str
web web_browser_type: Type text into a field of the page.
  element:str, ref*:str, text*:str, submit:bool, slowly:bool
web web_browser_navigate: Open an address.
  url*:str
web web_browser_navigate_back: Go back to the page before.
web web_browser_network_requests: List the requests the page made.
  includeStatic*:bool=false, filename:str
web web_browser_run_code: Run a piece of browser automation code.
  code*:str
web web_browser_take_screenshot: Take a picture of the page or of an element.
  type*:png|jpeg="png", filename:str, element:str, ref:str, fullPage:bool
web web_browser_snapshot: Describe the page as a tree of its elements, with references for the other tools.
  filename:str
web web_browser_click: Click on an element of the page.
  element:str, ref*:str, doubleClick:bool, button:left|right|middle, modifiers:Alt|Control|ControlOrMeta|Meta|Shift[]
web web_browser_drag: Drag one element onto another.
  startElement*:str, startRef*:str, endElement*:str, endRef*:str
web web_browser_hover: Move the pointer over an element.
  element:str, ref*:str
web web_browser_select_option: Choose options in a list.
  element:str, ref*:str, values*:str[]
web web_browser_tabs: List, open, close or choose a tab.
  action*:list|new|close|select, index:num
web web_browser_wait_for: Wait for a text to appear or go, or for some seconds.
  time:num, text:str, textGone:str
orchestrator get_status: Say how Annabelle is doing: servers, agents, tools.
orchestrator queue_task: Put a task into the queue to run in the background.
  name*:str, action*:{type:tool_call|workflow, toolName?:str, parameters?:obj}
orchestrator get_job_status: Say how a queued task is doing.
  taskId*:str
orchestrator trigger_backfill: Start the upkeep of memory now.
orchestrator spawn_subagent: Give a task to a helper with its own context and a limited set of tools.
  task*:str, allowedTools:str[], deniedTools:str[], timeoutMinutes:num, model:str
orchestrator get_tool_catalog: List all tools by server, with a line each.
  mcp_name:str
"""
