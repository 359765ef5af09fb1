import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.counters import counters
from events.models import Event
from tests.console.dashboard.routes import paths_of
from tests.console.dashboard.scenario import fill_workspace

REFRESHED = (
    "index", "emails_email_changelist", "emails_email_change", "webhooks_webhook_change",
    "webhooks_webhookdelivery_change", "domains_domain_change", "inbox_caughtmail_changelist",
)  # fmt: skip


@pytest.fixture
def objects(alice):
    return fill_workspace(alice)


def version_of(page: str) -> str:
    return re.search(r'"X-Page-Version": "(\w{16})"', page)[1]


def test_an_unchanged_page_is_a_204_of_a_few_queries(owner, objects):
    paths = paths_of(objects)
    for name in REFRESHED:
        page = owner.get(paths[name])
        for selector in page.context["refresh"].selectors.split(","):
            assert page.text.count(f'id="{selector[1:]}"') == 1, (name, selector)

        with CaptureQueriesContext(connection) as queries:
            again = owner.get(paths[name], headers={"x-page-version": version_of(page.text)})

        assert (again.status_code, again.content) == (204, b""), name
        # Session, user and workspaces, then the object and at most one query for its data.
        assert len(queries) <= 5, (name, [query["sql"] for query in queries])


def test_a_change_changes_the_version_and_another_version_gets_the_page(owner, alice, objects):
    email = objects["emails_email"]
    paths = ["/dashboard/", "/dashboard/emails/", f"/dashboard/emails/{email.id}/"]
    before = [version_of(owner.get(path).content.decode()) for path in paths]
    assert before == [version_of(owner.get(path).content.decode()) for path in paths]

    type(email).objects.filter(id=email.id).update(status="failed")
    Event.objects.create(email=email, kind="opened", payload={}, created_at=email.created_at)
    counters.add([(counters.CounterKey(alice.workspace.id, email.created_at, "status.sent"), 1)])

    after = [version_of(owner.get(path).content.decode()) for path in paths]
    assert not set(before) & set(after)
    assert owner.get("/dashboard/emails/", headers={"x-page-version": "x"}).status_code == 200
    for path in ("/dashboard/emails/?tag=shop", "/dashboard/inbox/?search=x"):
        assert owner.get(path).context["refresh"] is None
