"""The file of profiles: the URL and API key of each, in ~/.config/postrider, readable by its owner only."""

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import click

DEFAULT_PROFILE = "default"
OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class Profile:
    url: str
    api_key: str = field(repr=False)


def profiles_path() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "postrider" / "profiles.json"


def read_profile(name: str) -> Optional[Profile]:
    """Return a stored profile, or None. Raises click.ClickException for a named one that does not exist."""
    values = _read_profiles().get(name)
    if values is None and name != DEFAULT_PROFILE:
        raise click.ClickException(f"There is no profile {name!r}. Run `postrider login --profile {name}`.")
    return Profile(values["url"], values["apiKey"]) if values else None


def store_profile(name: str, profile: Profile) -> Path:
    """Add or replace a profile, and return the path of the file."""
    path = profiles_path()
    profiles = {**_read_profiles(), name: {"url": profile.url, "apiKey": profile.api_key}}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp creates the file with mode 0600; a rename replaces the old file at once.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".profiles-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(profiles, file, indent=2)
    Path(temporary).replace(path)
    return path


def normalized_url(url: str) -> str:
    """Return a form in which equal addresses of a service are equal."""
    return url.rstrip("/").removesuffix("/v1").lower()


def _read_profiles() -> Mapping[str, Any]:
    path = profiles_path()
    try:
        mode, text = path.stat().st_mode, path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    if mode & OTHERS:
        raise click.ClickException(f"Other users can read the keys in {path}. Run `chmod 600 {path}`.")
    try:
        profiles = json.loads(text)
    except ValueError:
        profiles = None
    if not isinstance(profiles, dict) or not all(_is_profile(values) for values in profiles.values()):
        raise click.ClickException(f"{path} is not valid. Delete it and run `postrider login`.")
    return profiles


def _is_profile(values: Any) -> bool:
    return isinstance(values, dict) and all(isinstance(values.get(name), str) for name in ("url", "apiKey"))
