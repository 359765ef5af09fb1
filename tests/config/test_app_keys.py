"""Warnings about APP_KEYS entries that stored data needs but that are missing."""

import pytest
from django.core.checks import run_checks
from django.db import OperationalError

from config.start import app_keys
from config.start.app_keys import missing_keys
from core.lib import keyring
from domains.models import DkimKey
from tests.conftest import make_domain, make_key
from tests.stack.stack import free_port, running_stack, wait_for
from webhooks.services import create_webhook, update_webhook

OLD, NEW = ("old-key", bytes(range(32))), ("new-key", bytes(range(32, 64)))


@pytest.fixture
def rotated(alice, settings):
    """An installation with data of an entry that is no longer in APP_KEYS."""
    settings.APP_KEYS = [OLD]
    keyring._derived.cache_clear()
    make_key(alice.workspace)
    make_domain(alice.workspace, "alice.example")
    create_webhook(alice.workspace, url="https://example.com/hook", events=["sent"])
    settings.APP_KEYS = [NEW]
    keyring._derived.cache_clear()
    yield alice
    keyring._derived.cache_clear()


def test_a_missing_entry_is_named_with_its_uses(rotated):
    (message,) = missing_keys()
    assert "'old-key'" in message
    assert "API keys, webhook secrets, DKIM keys" in message


def test_the_headers_of_webhooks_need_their_entry(rotated, settings):
    (webhook,) = rotated.workspace.webhooks.all()
    settings.APP_KEYS = [OLD]
    keyring._derived.cache_clear()
    update_webhook(webhook, changes={"headers": {"X-Team": "mail"}})
    settings.APP_KEYS = [NEW]
    keyring._derived.cache_clear()
    (message,) = missing_keys()
    assert "webhook secrets, webhook headers, DKIM keys" in message


def test_an_entry_that_is_present_causes_no_warning(rotated, settings):
    settings.APP_KEYS = [NEW, OLD]
    assert missing_keys() == []


def test_an_entry_of_revoked_api_keys_only_causes_no_warning(rotated):
    rotated.workspace.api_keys.update(revoked_at="2026-01-01T00:00:00Z")
    rotated.workspace.webhooks.all().delete()
    DkimKey.objects.all().delete()
    assert missing_keys() == []


def test_commands_that_check_the_database_warn(rotated):
    (warning,) = run_checks(tags=["app_keys"], databases=["default"])
    assert (warning.id, warning.is_serious()) == ("postrider.W001", False)
    assert run_checks(tags=["app_keys"]) == []


def test_an_unreachable_database_does_not_prevent_a_start(rotated, monkeypatch):
    def fail(_):
        raise OperationalError("no route to host")

    monkeypatch.setattr(app_keys.KeyUse, "key_ids", fail)
    assert missing_keys() == []


@pytest.mark.stack
def test_every_program_warns_once_at_its_start(tmp_path):
    with running_stack(tmp_path, INBOUND_PORT=str(free_port())) as stack:
        stack.query("UPDATE workspaces_apikey SET secret_hash = 'lost:x' WHERE true RETURNING id")
        stack.start("web", "workers", "inbound")
        for name in ("web", "workers", "inbound"):
            log = tmp_path / f"{name}.log"
            wait_for(lambda log=log: "the entry 'lost'" in log.read_text(), seconds=60, what=f"a warning of {name}")
            assert log.read_text().count("the entry 'lost'") == 1
