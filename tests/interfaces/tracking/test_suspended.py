"""Links of a suspended workspace: a page before the target; unsubscribing works as before."""

import pytest

from core.lib.ids import to_uuid
from core.lib.tokens import make_token
from core.workspaces.account_status import lift_suspension, suspend_workspace
from emails.links import OLD_CLICK
from interfaces.tracking.suspensions import suspended_workspaces
from suppressions.models import Suppression
from tests.conftest import make_account
from tests.interfaces.tracking.conftest import TARGET, Reader, make_reader
from tests.interfaces.tracking.test_without_database import call, database_url, web
from tests.rows import each
from tests.stack.stack import wait_for


@pytest.fixture
def suspended(reader: Reader) -> Reader:
    suspend_workspace(reader.workspace, reason="complaints")
    suspended_workspaces.read()
    return reader


def test_a_click_shows_a_page_with_the_target(suspended: Reader):
    response = suspended.clicks()
    page = response.content.decode()
    assert (response.status_code, response.get("Location")) == (200, None)
    assert "This sender is suspended" in page
    assert f'href="{TARGET.replace("&", "&amp;")}"' in page
    assert suspended.kinds() == ["clicked"]


def test_a_click_makes_no_query(suspended: Reader, visitor, django_assert_num_queries):
    with django_assert_num_queries(0):
        visitor.get(suspended.click_path())


@each("target", ['https://a.example/"><script>alert(1)</script>', "https://a.example/%0d%0aX: y"])
def test_a_hostile_target_is_escaped(suspended: Reader, target):
    page = suspended.clicks(target).content.decode()
    assert "<script" not in page


def test_the_recipient_can_unsubscribe(suspended: Reader, visitor):
    assert visitor.post(suspended.unsubscribe_path).status_code == 200
    assert Suppression.objects.get().email == "ada@example.com"


def test_other_workspaces_redirect(suspended: Reader, bob):
    assert make_reader(bob.workspace).clicks().status_code == 302


def test_a_lifted_suspension_redirects_again(suspended: Reader):
    lift_suspension(suspended.workspace)
    suspended_workspaces.read()
    assert suspended.clicks()["Location"] == TARGET


def test_links_of_older_versions_redirect(suspended: Reader):
    payload = to_uuid(suspended.recipient.id).bytes + TARGET.encode()
    response = suspended.visits(f"/t/c/{make_token(payload, purpose=OLD_CLICK)}")
    assert (response.status_code, response["Location"]) == (302, TARGET)
    assert suspended.kinds() == ["clicked"]


@pytest.mark.stack
@pytest.mark.django_db(transaction=True)
def test_a_web_process_notices_suspensions_within_seconds(tmp_path):
    reader = make_reader(make_account("alice").workspace)
    suspend_workspace(reader.workspace, reason="complaints")
    with web(tmp_path, database_url()) as url:
        status, _, page, seconds = call(url + reader.click_path())
        assert (status, b"This sender is suspended" in page) == (200, True)
        assert seconds < 1
        lift_suspension(reader.workspace)
        wait_for(lambda: call(url + reader.click_path())[0] == 302, seconds=60, what="the link leads to its target")
