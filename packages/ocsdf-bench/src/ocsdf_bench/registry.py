"""Plug-ins by name: built-in modules, entry points and single files."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class UnknownNameError(LookupError):
    """A name that no plug-in has; the message names the nearest one."""


class Registry(Generic[T]):
    """Entries of one kind. A module of ``package`` or an entry point of ``group`` adds its own on import.

    Parameters
    ----------
    kind : str
        Singular noun used in messages: "detector".
    package : str
        Package whose modules are imported on first use.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._entries: dict[str, T] = {}
        self._loaded = False

    def add(self, entry: T) -> T:
        """Register ``entry`` under ``entry.name``; a name is taken once."""
        known = self._entries.get(entry.name)
        if known is not None and known is not entry:
            raise ValueError(f"{self.kind} {entry.name!r} is already registered; give yours another name.")
        self._entries[entry.name] = entry
        return entry

    def __getitem__(self, name: str) -> T:
        self._load()
        if name not in self._entries:
            near = difflib.get_close_matches(str(name).lower(), [n.lower() for n in self._entries], 1, 0.5)
            match = next((n for n in self._entries if near and n.lower() == near[0]), None)
            hint = f" Did you mean {match!r}?" if match else ""
            shown = f"`ocsdf-bench list {self.kind}s` shows all {len(self._entries)}."
            raise UnknownNameError(f"no {self.kind} {name!r}.{hint} {shown}")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._entries

    def __iter__(self) -> Iterator[T]:
        self._load()
        return iter(self._entries.values())

    def names(self) -> list[str]:
        self._load()
        return list(self._entries)

    def modules(self) -> list[str]:
        """Names of the built-in modules, without importing them."""
        package = importlib.import_module(self.package)
        return [module.name for module in pkgutil.iter_modules(package.__path__, self.package + ".")]

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True  # before the imports: a module may look a name up while it is imported
        for name in self.modules():
            importlib.import_module(name)
        for point in entry_points(group=self.package):
            self.add(point.load())
