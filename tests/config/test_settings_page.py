"""docs/settings.md is up to date with the code and .env.example."""

import re

from config.env import SECRETS
from config.management.commands.document_settings import settings_page
from tests.stack.stack import REPOSITORY

PAGE = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")


def test_the_page_is_current():
    assert settings_page() == PAGE, "Run manage.py document_settings."


def test_the_page_has_every_setting_of_the_example_file():
    names = re.findall(r"^([A-Z_0-9]+)=", (REPOSITORY / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)
    headings = " ".join(re.findall(r"^### (.+)$", PAGE, re.MULTILINE))
    assert [name for name in names if f"`{name}`" not in headings] == []


def test_switches_have_their_default():
    assert "- `DELIVERY_ALLOW_PRIVATE_NETWORKS`: default `false`; true or false" in PAGE


def test_each_secret_names_its_file():
    text = " ".join(PAGE.split())
    for name in SECRETS:
        assert f"`{name}_FILE` is possible" in text
