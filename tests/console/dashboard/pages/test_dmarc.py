"""The DMARC page of a domain: three answers, sources with names, and texts of strangers that stay texts."""

from datetime import UTC, datetime, timedelta

import pytest

from domains.models import KnownSource
from tests.conftest import make_domain
from tests.console.dashboard.conftest import shown_text
from tests.domains.report_builders import OTHER_IP, add_report, add_tls_report, broken, count_sent, foreign, row, spf
from tests.rows import each

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


@pytest.fixture(autouse=True)
def _own_servers(settings):
    settings.SPF_MECHANISMS = "ip4:198.51.100.0/24"


@pytest.fixture
def domain(alice):
    return make_domain(alice.workspace, "alice.example")


def yesterday():
    return datetime.now(UTC).date() - timedelta(days=1)


def url(domain):
    return f"/dashboard/domains/{domain.id}/dmarc/"


def test_a_domain_without_reports_says_when_they_arrive(owner, domain):
    text = shown_text(owner.get(url(domain)))
    assert "No report about your own email yet." in text
    assert "Nobody unknown sends email in the name of this domain." in text
    assert "No DMARC policy was found." in text
    assert url(domain) in owner.get(f"/dashboard/domains/{domain.id}/").text


def test_three_answers_are_visible_at_once(owner, domain):
    count_sent(domain, 1000, day=yesterday())
    add_report(domain, row(domain, 985), broken(domain, 15), foreign(domain, 41), day=yesterday())
    text = shown_text(owner.get(url(domain)))
    assert "98.5% of your email passed DMARC, as 1 organization reports." in text
    assert "1 unknown source sent 41 messages in the name of this domain." in text
    assert "Keep p=none for now." in text
    assert "Google received 1,000 of yours, reported 1,000: 98.5% aligned; 41 others from 1 source." in text
    assert "Reports name p=none for 1 of 14 days." in text


@each(("source", "known"), [(OTHER_IP, (OTHER_IP, "")), ("Esp.Example.net", (None, "esp.example.net"))])
def test_a_source_is_named_on_the_page(owner, domain, source, known):
    add_report(domain, foreign(domain, 41, spf_results=[spf("esp.example.net")]), day=yesterday())
    page = owner.post(url(domain), {"source": source, "label": "Newsletter tool"}, follow=True)
    assert "Newsletter tool" in page.text
    assert "Nobody unknown sends" in page.text
    assert [(one.ip, one.name) for one in KnownSource.objects.all()] == [known]


def test_an_invalid_source_is_a_form_error(owner, domain):
    add_report(domain, foreign(domain), day=yesterday())
    for source in ("", "nonsense", "300.1.1.1", HOSTILE):
        response = owner.post(url(domain), {"source": source, "label": "x"})
        assert "source" in response.context["form"].errors
        assert "<script>alert" not in response.text
    assert not KnownSource.objects.exists()


def test_texts_of_reports_and_labels_are_shown_as_text(owner, domain):
    hostile = foreign(domain, spf_results=[spf(HOSTILE)], header_from=HOSTILE, dkim_results=[spf(HOSTILE)])
    report = add_report(domain, hostile, day=yesterday(), reporter=HOSTILE)
    report.error = HOSTILE
    report.save(update_fields=["error"])
    add_tls_report(domain, {"policy_type": HOSTILE[:32], "failed": 1}, day=yesterday(), reporter=HOSTILE)
    add_tls_report(domain, {"policy_type": "sts", "result_type": HOSTILE, "failed": 1}, day=yesterday())
    KnownSource.objects.create(domain=domain, ip=OTHER_IP, label=HOSTILE)
    page = owner.get(url(domain)).text
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_the_page_of_another_workspace_is_not_found(owner, bob):
    foreign_domain = make_domain(bob.workspace, "bob.example")
    assert owner.get(url(foreign_domain)).status_code == 404
    assert owner.post(url(foreign_domain), {"source": OTHER_IP, "label": "x"}).status_code == 404


def test_the_page_is_german(owner, domain):
    add_report(domain, row(domain, 3), foreign(domain, 2), day=yesterday())
    add_report(domain, foreign(domain, 1998), day=yesterday())
    page = shown_text(owner.get(url(domain), headers={"accept-language": "de"}))
    assert "100,0% Ihrer E-Mails haben DMARC bestanden" in page
    assert "1 unbekannte Quelle hat 2.000 Nachrichten im Namen dieser Domain gesendet." in page
