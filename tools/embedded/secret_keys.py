"""Secrets of the service, generated at the first start and kept in DATA_DIR."""

import base64
import json
import secrets
from collections.abc import Mapping

from tools.embedded.errors import CannotStart
from tools.embedded.given_settings import is_given
from tools.embedded.locations import DataDirectory, write_private

NAMES = ("SECRET_KEY", "APP_KEYS")


def generate_secrets() -> dict[str, str]:
    """Return new values: Django's SECRET_KEY, and a key ring with one 32-byte key."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    return {"SECRET_KEY": secrets.token_urlsafe(48), "APP_KEYS": f"k1:{key}"}


def load_secrets(data: DataDirectory, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets of a DATA_DIR that the environment does not give, generated if missing."""
    if not data.secrets.exists():
        write_private(data.secrets, json.dumps(generate_secrets(), indent=1) + "\n")
    try:
        stored = json.loads(data.secrets.read_text())
        return {name: stored[name] for name in NAMES if not is_given(environment, name)}
    except (ValueError, KeyError) as error:
        raise CannotStart(
            f"Could not read {data.secrets} ({error}). Restore it from a backup: data encrypted with its keys"
            " cannot be decrypted without them."
        ) from None
