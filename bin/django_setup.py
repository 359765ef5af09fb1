"""Sets Django up for scripts that read the code of the service and open nothing."""

import os
import sys
from pathlib import Path

import django

REPOSITORY = Path(__file__).resolve().parent.parent
# Settings without a default.
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "MODE": "embedded",
    "DATABASE_URL": "postgres://unset/unset",
    "REDIS_URL": "redis://unset",
    "SECRET_KEY": "scripts-0123456789abcdefghijklmnopqrstuvwxyz-",
    "APP_KEYS": "scripts:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
}


def set_up_django() -> None:
    sys.path.insert(0, str(REPOSITORY))
    os.environ.update(ENVIRONMENT)
    django.setup()
