"""`/models`: which model is used for what, choosing, fetching and trying one. What `annabelle models` does."""

from __future__ import annotations

import asyncio
from typing import Literal

from fastapi import Request
from pydantic import Field

from annabelle.core.errors import CallerMistake, ConfigMistake, InvalidArguments
from annabelle.core.settings import load_settings
from annabelle.core.settings_file import SettingsFile, find_text
from annabelle.hub.api.endpoint import ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.api.settings import save_settings
from annabelle.hub.context import HubContext
from annabelle.hub.model_downloads import ModelDownload

# The modules of `llm` are imported where they are used: they load the network client of the providers.
router = ApiRouter("models")


class ModelUseView(ApiAnswer):
    purpose: str
    model: str
    setting: str = Field(description="The setting that says so")


class ModelOptionView(ApiAnswer):
    """A model that could answer."""

    name: str = Field(description="What is chosen or fetched")
    kind: Literal["embedded", "provider", "local"]
    state: str = Field(examples=["ready", "to pull", "needs a setting"])
    note: str
    setting: str = Field(default="", description="The setting it lacks")
    size: int | None = Field(default=None, description="Bytes to fetch, if known")


class ModelOverview(ApiAnswer):
    answering: str = Field(description="Which model answers, and why; or why it cannot")
    works: bool
    after_restart: str | None = Field(description="Which one will after a restart, if that is another")
    uses: list[ModelUseView]
    options: list[ModelOptionView]
    downloads: list[ModelDownload]


class NamedModel(ApiBody):
    name: str = Field(min_length=1, max_length=300, examples=["ollama:llama3.2", "auto"])


class ChosenModel(NamedModel):
    key: str | None = Field(default=None, max_length=1000, description="Key of its provider; it is tried first")


class WantedModel(NamedModel):
    url: str | None = Field(default=None, max_length=2000, description="Of a GGUF file that is not in the list")
    sha256: str | None = Field(default=None, description="Its checksum, if its server does not state one")


class ModelCheckView(ApiAnswer):
    works: bool
    text: str = Field(description="Which model answers and why, or why it cannot")


class ModelChange(ModelCheckView):
    restart_needed: bool = True
    overridden: list[str] = Field(description="Settings that the environment sets, too; the environment comes first")
    key: str | None = Field(description="What came of trying the key")


@router.get("/models", **document("Which model is used for what"))
async def show_models(hub: TheHub) -> ModelOverview:
    """Servers of models on this machine are asked what they have."""
    from annabelle.llm import model_catalogue as catalogue  # noqa: PLC0415
    from annabelle.llm.gguf_models import GgufRegistry  # noqa: PLC0415

    home, settings = hub.base.home, hub.base.settings
    downloads = hub.services.upkeep.downloads.list()  # first: a model whose download is over is among the options
    profiles = [one.as_profile(settings) for one in hub.agents.registry.config.agents if one.enabled]
    now, later, local = await asyncio.gather(
        catalogue.check_model(home, settings),
        _describe_next(hub),
        catalogue.list_local_options(settings),
    )
    options = await asyncio.to_thread(catalogue.list_options, settings, GgufRegistry(home))
    return ModelOverview(
        answering=now.text,
        works=now.works,
        after_restart=later if later != now.text else None,
        uses=[ModelUseView.from_row(one) async for one in catalogue.list_uses(home, settings, profiles)],
        options=[ModelOptionView.from_row(one) for one in (*options, *local)],
        downloads=downloads,
    )


@router.post("/models/use", **document("Choose the model that answers", 400, 404, body=ChosenModel))
async def use_model(hub: TheHub, caller: Caller, request: Request) -> ModelChange:
    """A model that is here, a provider, provider:model, or auto. It counts from the next start."""
    from annabelle.llm import model_catalogue as catalogue  # noqa: PLC0415
    from annabelle.llm.gguf_models import GgufRegistry  # noqa: PLC0415

    wanted = await read_body(request, ChosenModel)
    changes = await asyncio.to_thread(catalogue.settings_for, wanted.name, GgufRegistry(hub.base.home))
    outcome = None
    if wanted.key:
        owner = catalogue.find_key_owner(wanted.name)
        if owner is None:
            raise CallerMistake(f"{wanted.name} needs no key, so it was not taken.")
        try:
            outcome = await catalogue.try_key(hub.base.settings, owner, wanted.key)
        except ConfigMistake as mistake:
            raise InvalidArguments(mistake.message, hint=mistake.hint, field="key") from mistake
        changes[owner.key_variable] = wanted.key
    await save_settings(hub, caller, changes)
    in_file = await asyncio.to_thread(SettingsFile(hub.base.home.settings_file).values)
    found = await catalogue.check_model(hub.base.home, await asyncio.to_thread(load_settings, hub.base.home))
    overridden = [name for name in changes if find_text(name, in_file)[0] == "environment"]
    return ModelChange(works=found.works, text=found.text, overridden=overridden, key=outcome)


@router.post("/models/pull", status_code=202, **document("Fetch a model", 404, body=WantedModel))
async def pull_model(hub: TheHub, request: Request) -> ModelDownload:
    """In the background; `GET /models` says how far it is. A broken download goes on where it stopped."""
    from annabelle.llm import model_catalogue as catalogue  # noqa: PLC0415
    from annabelle.llm.gguf_models import GgufRegistry  # noqa: PLC0415

    wanted, registry = await read_body(request, WantedModel), GgufRegistry(hub.base.home)
    if wanted.url is not None:
        try:
            registry.remember(catalogue.build_model(wanted.name, wanted.url, wanted.sha256))
        except ConfigMistake as mistake:
            raise InvalidArguments(mistake.message, field="url") from mistake
    fetch = catalogue.find_fetch(hub.base.settings, registry, wanted.name)
    return hub.services.upkeep.downloads.begin(wanted.name, fetch)


@router.post("/models/pull/cancel", **document("Stop fetching a model", 404, body=NamedModel))
async def cancel_pull(hub: TheHub, request: Request) -> ModelDownload:
    """What is here is kept: fetching it again goes on with it."""
    return hub.services.upkeep.downloads.cancel((await read_body(request, NamedModel)).name)


@router.post("/models/test", **document("Could this model answer?", 400, 404, body=NamedModel))
async def test_model(hub: TheHub, request: Request) -> ModelCheckView:
    """Asks its server for what it has, with its key; no call is made that costs."""
    from annabelle.llm import model_catalogue as catalogue  # noqa: PLC0415

    name = (await read_body(request, NamedModel)).name
    return ModelCheckView.from_row(await catalogue.check_choice(hub.base.home, hub.base.settings, name))


async def _describe_next(hub: HubContext) -> str:
    """The model of the next start, or what is wrong with its settings."""
    from annabelle.llm.model_catalogue import describe_model  # noqa: PLC0415

    try:
        return await describe_model(hub.base.home, await asyncio.to_thread(load_settings, hub.base.home))
    except ConfigMistake as mistake:
        return mistake.message
