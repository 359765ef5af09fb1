"""The service's own secrets: made at the first start, kept ever after."""

import base64
import json
import secrets
from collections.abc import Mapping

from embedded.errors import CannotStart
from embedded.locations import DataDirectory, write_private

NAMES = ("SECRET_KEY", "APP_KEYS")


def make_secrets() -> dict[str, str]:
    """Return new values: Django's key, and a key ring with one key of 32 bytes."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    return {"SECRET_KEY": secrets.token_urlsafe(48), "APP_KEYS": f"k1:{key}"}


def keep_secrets(data: DataDirectory, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets of a DATA_DIR; what the environment sets goes before what is kept."""
    if not data.secrets.exists():
        write_private(data.secrets, json.dumps(make_secrets(), indent=1) + "\n")
    try:
        kept = json.loads(data.secrets.read_text())
        return {name: environment.get(name) or kept[name] for name in NAMES}
    except (ValueError, KeyError) as error:
        raise CannotStart(
            f"{data.secrets} cannot be read ({error}): restore it, since what was sealed with its"
            " keys opens with no others."
        ) from None
