"""Registries: values that apps add in AppConfig.ready, since every process starts the same apps."""

from typing import TypeVar

ValueT = TypeVar("ValueT")


class Registry(dict[str, ValueT]):
    def register(self, name: str, value: ValueT) -> None:
        """Add the only value with a name. Raises ValueError for a second one."""
        if name in self:
            raise ValueError(f"{name} is registered already")
        self[name] = value
