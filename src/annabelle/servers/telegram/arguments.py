"""Arguments that several tools take."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MAX_MESSAGE_ID = 2**31 - 1

ChatId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        description='The chat: an id as list_chats shows it, @username, a contact\'s +phone, or "me"',
    ),
]
MessageId = Annotated[int, Field(ge=1, le=MAX_MESSAGE_ID, description="Id of the message in this chat")]
