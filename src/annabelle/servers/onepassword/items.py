"""What `op` says of vaults, items and fields. What is not needed is not read."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)


class OpVault(_Told):
    id: str
    name: str
    items: int | None = None


class OpUrl(_Told):
    href: str = ""


class OpSection(_Told):
    id: str = ""
    label: str = ""


class OpField(_Told):
    id: str = ""
    type: str = "STRING"
    purpose: str = ""
    label: str = ""
    value: str | None = Field(default=None, repr=False)
    totp: str | None = Field(default=None, repr=False)
    section: OpSection | None = None

    @property
    def name(self) -> str:
        return self.label or self.id or self.type.lower()


class OpFile(_Told):
    name: str = ""


class OpOverview(_Told):
    """An item as a list shows it."""

    id: str
    title: str = ""
    category: str = ""
    vault: OpVault | None = None
    tags: list[str] = []
    urls: list[OpUrl] = []
    additional_information: str = ""


class OpItem(OpOverview):
    fields: list[OpField] = Field(default=[], repr=False)
    files: list[OpFile] = []


VAULTS = TypeAdapter(list[OpVault])
OVERVIEWS = TypeAdapter(list[OpOverview])
ITEM = TypeAdapter(OpItem)
