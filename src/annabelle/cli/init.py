"""`annabelle init`: guides through the first start; every step can be skipped, repeated and given by an option."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from annabelle.cli.hub_process import running_hub
from annabelle.cli.models import download, make_progress
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_line, print_paragraph
from annabelle.cli.spinner import Spinner
from annabelle.cli.terminal_input import ask_line, check_line, read_answer
from annabelle.core.connections import KINDS, read_state
from annabelle.core.errors import AnnabelleError, CallerMistake, ConfigMistake
from annabelle.core.home import Home
from annabelle.core.settings import Settings, load_settings
from annabelle.core.settings_file import SettingsFile, check_value, find_setting, find_zone
from annabelle.llm.gguf_models import PACKAGED, GgufModel, GgufRegistry
from annabelle.llm.model_catalogue import describe_model, find_key_owner, find_listed, settings_for, try_key
from annabelle.llm.model_discovery import (
    LocalModel,
    find_local_models,
    list_recommended,
    machine_memory_gb,
    pull_with_ollama,
)
from annabelle.llm.providers import PROVIDERS, ModelProvider

app = command_app()

_ZONES = Path("/etc/localtime")
_TO_TRY = ("what files do I have?", "put oat milk on my shopping list", "remember that my dog is called Rex")
_SKIPPED = "Skipped; nothing changed."


@app.command()
def init(
    model: Annotated[
        str | None,
        typer.Option(help="packaged, auto, a provider (groq, ollama, …), provider:model, or a model to fetch."),
    ] = None,
    key_stdin: Annotated[
        bool, typer.Option("--key-stdin", help="Read the key of the provider in --model from standard input.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="What Annabelle calls you.")] = None,
    time_zone: Annotated[str | None, typer.Option(help="Your time zone, as in Europe/Berlin.")] = None,
    language: Annotated[str | None, typer.Option(help="The language Annabelle answers in, as in German.")] = None,
    json: Json = False,
) -> None:
    """Set up Annabelle: a model, your name, time zone, language and accounts.

    In a terminal it asks for whatever is not given, and every step can be skipped. Elsewhere it asks for nothing.
    """
    home = Home.from_environment().prepare()
    setup = Setup(home, asks=not json and not key_stdin and sys.stdin.isatty() and sys.stdout.isatty(), quiet=json)
    given = {"USER_NAME": name, "USER_TIMEZONE": time_zone, "USER_LANGUAGE": language}
    for setting, value in given.items():
        if value is not None:
            setup.save(setting, value)
    if model is not None or key_stdin:
        setup.use_model(model or "", sys.stdin.readline().strip() if key_stdin else None)
    setup.guide(given=[setting for setting, value in given.items() if value is not None], model=model is not None)


@dataclass(frozen=True, slots=True)
class _Option:
    """One line of a menu and what it does."""

    text: str
    choose: Callable[[], None]


@dataclass(slots=True)
class Setup:
    """The steps. Each writes its settings at once, so leaving later loses nothing."""

    home: Home
    asks: bool
    quiet: bool = False
    _saved: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def _settings(self) -> Settings:
        return load_settings(self.home)

    def guide(self, given: Sequence[str] = (), *, model: bool = False) -> None:
        """Ask for what is not given, and tell how it stands."""
        try:
            if self.asks:
                print_paragraph("Enter takes what stands in brackets, s skips a step, Ctrl-C leaves. Nothing is final.")
                if not model:
                    self._run_step("Which model answers?", self._ask_model)
                self._run_step("About you", lambda: self._ask_person(given))
                self._run_step("Your accounts", self._show_accounts)
            self._finish()
        except (KeyboardInterrupt, typer.Abort) as left:
            print_line("Left. What was set so far stays; annabelle init goes on.")
            raise typer.Abort from left

    def _run_step(self, title: str, step: Callable[[], None]) -> None:
        """Run a step that asks. A mistake is told and leaves the step; what was set stays."""
        print_line("")
        print_line(title)
        try:
            step()
        except AnnabelleError as error:
            print_paragraph(" ".join(filter(None, (error.message, error.hint))))

    def save(self, setting: str, value: str) -> None:
        """Set or, with an empty value, unset a setting."""
        setting, known = find_setting(setting)
        text = check_value(setting, known, check_line(setting, value)) if value else ""
        SettingsFile(self.home.settings_file).change({setting: text})
        self._saved[setting] = value

    # The model

    def _ask_model(self) -> None:
        with Spinner("Looking for models"):
            local = asyncio.run(find_local_models(self._settings))
        options = [_Option(_describe_local(one), lambda one=one: self._use_local(one)) for one in _best_local(local)]
        options.append(_Option("A service with a key: Groq, Anthropic, OpenAI or OpenRouter", self._ask_service))
        fetchable = self._fetchable(with_ollama="ollama" in local)
        if fetchable:
            options.append(_Option("Fetch a model and run it on this machine", lambda: self._ask_pull(fetchable)))
        packaged = _Option(
            "The packaged model: at once, offline, everyday requests in English", lambda: self.use_model("packaged")
        )
        self._choose([*options, packaged], default=1 if _can_use_tools(local) else len(options) + 1)

    def use_model(self, named: str, key: str | None = None) -> None:
        """By the word of an option: a name of a model is fetched if it is not there."""
        provider = PROVIDERS.get(named.partition(":")[0])  # pyright: ignore[reportArgumentType, reportCallIssue]
        if key is not None:
            if find_key_owner(named) is None:
                raise CallerMistake(
                    "The key was not taken, because no provider is named that it belongs to.",
                    hint="Name it, as in: annabelle init --model groq --key-stdin",
                )
            if not key:
                raise CallerMistake("There is no key on standard input.", hint="Nothing was changed.")
        registry = GgufRegistry(self.home)
        wanted = PACKAGED if named == "packaged" else named
        if named not in ("packaged", "auto") and provider is None and not _is_there(registry, named):
            download(registry, find_listed(registry, named), quiet=self.quiet)
        settings = settings_for(wanted, registry)
        if key is not None and provider is not None:
            self._save_key(provider, key)
        for setting, value in settings.items():
            self.save(setting, value)

    def _use_local(self, model: LocalModel) -> None:
        self.use_model(f"{model.provider.name}:{model.name}")

    def _ask_service(self) -> None:
        services = [provider for provider in PROVIDERS.values() if provider.needs_key]

        def use(provider: ModelProvider) -> None:
            print_line("It is not shown while you type or paste it; s skips.")
            key = ask_line(f"Key of {provider.label}", "--key-stdin", secret=True)
            if key.strip().lower() == "s":
                print_line(_SKIPPED)
                return
            self._save_key(provider, key)
            self.use_model(provider.name)

        self._choose([_Option(one.label, lambda one=one: use(one)) for one in services], default=1)

    def _save_key(self, provider: ModelProvider, key: str) -> None:
        with Spinner(f"Asking {provider.label} whether the key works"):
            outcome = asyncio.run(try_key(self._settings, provider, key))
        self.save(provider.key_variable, key)
        if not self.quiet:
            print_paragraph(outcome)

    def _fetchable(self, *, with_ollama: bool) -> list[_Option]:
        registry, memory = GgufRegistry(self.home), machine_memory_gb()
        models = [one for one in registry.models() if one.name != PACKAGED and not registry.file_of(one).exists()]
        options = [_Option(_describe_gguf(one), lambda one=one: self.use_model(one.name)) for one in models]
        fitting = [one for one in list_recommended() if with_ollama and one.memory_gb < memory]
        return [
            *(
                _Option(
                    f"{one.name} with Ollama, about {one.memory_gb:.0f} GB of memory. {one.note}",
                    lambda one=one: self._pull_with_ollama(one.name),
                )
                for one in fitting
            ),
            *options,
        ]

    def _ask_pull(self, options: Sequence[_Option]) -> None:
        free = shutil.disk_usage(self.home.root).free / 1e9
        print_line(f"This machine has {machine_memory_gb():.0f} GB of memory, and {free:.0f} GB of disk are free.")
        self._choose(options, default=1)

    def _pull_with_ollama(self, name: str) -> None:
        with make_progress(quiet=self.quiet) as progress:
            task = progress.add_task(name, total=None)
            asyncio.run(
                pull_with_ollama(
                    self._settings, name, lambda done, total: progress.update(task, completed=done, total=total)
                )
            )
        self.use_model(f"ollama:{name}")

    # The person

    def _ask_person(self, given: Sequence[str]) -> None:
        questions = {
            "USER_NAME": ("What shall Annabelle call you?", self._settings.user_name),
            "USER_TIMEZONE": ("Your time zone?", _known_zone(self._settings)),
            "USER_LANGUAGE": (
                "The language of answers? Empty means that of your message",
                self._settings.user_language,
            ),
        }
        for setting, (question, known) in questions.items():
            if setting not in given:
                self._ask_setting(setting, question, known)

    def _ask_setting(self, setting: str, question: str, known: str) -> None:
        while True:
            answer = _ask(f"{question} [{known}] " if known else f"{question} ")
            if answer.lower() == "s":
                return
            try:
                if answer or known:
                    self.save(setting, answer or known)
            except AnnabelleError as error:
                print_paragraph(" ".join(filter(None, (error.message, error.hint))))
            else:
                return

    # Accounts

    def _show_accounts(self) -> None:
        for kind in KINDS:
            state = read_state(self.home, kind)
            done = f"connected: {clean(state.account)}" if state.account else f"annabelle connect {kind}"
            print_line(f"  {kind}: {done}")
        print_line(
            "Mail, calendar and Telegram work once their account is connected; each command can be run at any time."
        )

    def _finish(self) -> None:
        answering = asyncio.run(describe_model(self.home, self._settings))
        running = running_hub(self.home) is not None
        if self.quiet:
            print_json({"answering": answering, "changed": sorted(self._saved), "restart_needed": running})
            return
        print_line("")
        print_paragraph(answering)
        if running:
            print_line("It counts from the next start: annabelle restart")
        print_line("Three things to try:")
        for text in _TO_TRY:
            print_line(f"  › {text}")

    def _choose(self, options: Sequence[_Option], default: int) -> None:
        for number, option in enumerate(options, start=1):
            print_line(f"  {number}  {option.text}")
        while True:
            answer = _ask(f"Choice [{default}] ").lower() or str(default)
            if answer == "s":
                print_line(_SKIPPED)
                return
            if answer.isdecimal() and 0 < int(answer) <= len(options):
                options[int(answer) - 1].choose()
                return
            print_line(f"Please type a number from 1 to {len(options)}, or s to skip.")


def _ask(question: str) -> str:
    answer = read_answer(question)
    if answer is None:
        raise typer.Abort
    return answer.strip()


def _best_local(local: dict[str, list[LocalModel]]) -> list[LocalModel]:
    """The few of each server that are worth a line."""
    return [model for models in local.values() for model in models[:4]]


def _can_use_tools(local: dict[str, list[LocalModel]]) -> bool:
    found = _best_local(local)
    return bool(found) and found[0].tools


def _describe_local(model: LocalModel) -> str:
    can = "can use tools" if model.tools else "does not say that it can use tools"
    return f"{clean(model.name)} at {model.provider.label}, which runs here ({can})"


def _describe_gguf(model: GgufModel) -> str:
    size = f", {model.size / 1e9:.1f} GB" if model.size else ""
    return f"{model.name}{size}. {model.note}"


def _is_there(registry: GgufRegistry, name: str) -> bool:
    return name == PACKAGED or any(model.name == name for model in registry.downloaded())


def _known_zone(settings: Settings) -> str:
    if "user_timezone" in settings.model_fields_set:
        return settings.user_timezone
    return find_system_zone()


def find_system_zone() -> str:
    """The machine's time zone by name; UTC where it does not say."""
    named = os.environ.get("TZ", "")
    try:
        linked = str(_ZONES.resolve()).partition("zoneinfo/")[2]
        return find_zone(named or linked or "UTC")
    except (OSError, ConfigMistake):
        return "UTC"
