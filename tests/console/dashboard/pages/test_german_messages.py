"""Messages of the services on German pages: form errors, refused actions, DNS findings, suspensions, audit entries."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from core.lib.coded_texts import CodedText
from core.workspaces.account_status import lift_suspension, suspend_workspace
from core.workspaces.audit import AuditAction, record_action
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult, to_json
from tests.conftest import Account, make_domain

NULL_MX = "mail.example.com hat einen leeren MX-Eintrag"


@pytest.fixture
def reader(owner: Client) -> Client:
    """Alice's browser, with German pages."""
    owner.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    return owner


def test_a_refused_form_explains_why(reader, alice: Account, settings):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = False
    make_domain(alice.workspace, "mail.example.com")
    key = {"name": "Shop", "scope": "sending_access"}
    template = {"name": "T", "subject": "S", "html": "x"}
    for path, fields, message in (
        ("domains", {"name": "gmail.com"}, "gmail.com ist ein öffentlicher E-Mail-Anbieter."),
        ("domains", {"name": "mail.example.com"}, "mail.example.com ist in diesem Arbeitsbereich bereits eingetragen."),
        ("keys", {**key, "networks": "x"}, "&#x27;x&#x27; ist kein Netz wie 203.0.113.0/24 oder 2001:db8::/32."),
        ("keys", {**key, "requests_per_second": 5000}, "1.000"),
        ("webhooks", {"url": "http://shop.example/", "events": ["sent"]}, "Die URL muss mit https:// beginnen."),
        ("webhooks", {"url": "https://127.0.0.1/", "events": ["sent"]}, "An diese URL können keine Ereignisse"),
        ("templates", {**template, "html": "{{#if a}}"}, "{{#if a}} ist nicht geschlossen: {{/if}} fehlt."),
        ("templates", {**template, "html": "{{}}"}, "Ein Name fehlt."),
        ("templates", {**template, "alias": "1"}, "Ein Alias besteht aus"),
        ("suppressions", {"addresses": "ada@"}, "ist keine E-Mail-Adresse"),
    ):
        assert message in reader.post(f"/dashboard/{path}/add/", fields, follow=True).text, message


def test_a_line_of_an_import_that_is_not_an_address(reader):
    file = SimpleUploadedFile("list.csv", b"ada@example.com\nnonsense\n")
    page = reader.post("/dashboard/suppressions/import/", {"file": file}, follow=True).content.decode()

    assert "&#x27;nonsense&#x27; ist keine E-Mail-Adresse: Das @ fehlt." in page


class TestFindings:
    @pytest.fixture
    def domain(self, alice: Account):
        domain = make_domain(alice.workspace, "mail.example.com")
        valid = RecordCheck(RecordStatus.VALID)
        test_key = RecordCheck(RecordStatus.VALID, note=CodedText("domains.dkim_test"))
        result = VerificationResult(
            keys={domain.dkim_keys.get().selector: test_key},
            spf=RecordCheck(RecordStatus.INVALID, error=CodedText("domains.spf_several", count=2)),
            dmarc=valid,
            return_path=valid,
            mail=RecordCheck(RecordStatus.INVALID, error=CodedText("domains.null_mx", name=domain.name)),
        )
        domain.findings, domain.finding_codes = to_json(result), [text.to_json() for text in result.messages()]
        domain.save()
        return domain

    def test_are_translated(self, reader, domain):
        page = reader.get(f"/dashboard/domains/{domain.id}/").content.decode()

        assert NULL_MX in page
        assert "2 SPF-Einträge" in page
        assert "Entfernen Sie t=y" in page

    def test_of_the_version_before_are_shown_in_english(self, reader, domain):
        """Its codes are those of an older check."""
        domain.findings["spf"]["error"] = "No SPF record found at mail.example.com."
        domain.save()
        page = reader.get(f"/dashboard/domains/{domain.id}/").content.decode()

        assert "No SPF record found at mail.example.com." in page
        assert NULL_MX in page


def test_the_reason_of_a_suspension(reader, alice: Account):
    suspend_workspace(alice.workspace, reason=CodedText("reputation.advice"))
    assert "Bereinigen Sie Ihre Listen" in reader.get("/dashboard/").content.decode()

    lift_suspension(alice.workspace)
    suspend_workspace(alice.workspace, reason="Did not pay.")
    page = reader.get("/dashboard/").content.decode()
    assert "Did not pay." in page
    assert "Bereinigen Sie Ihre Listen" not in page


def test_an_audit_entry_has_the_same_details_in_the_export_of_every_language(reader, alice: Account):
    record_action(alice.workspace, AuditAction.ADDRESS_ERASED, about=CodedText("workspaces.email_count", count="1,234"))

    assert "<bdi>1.234 E-Mails</bdi>" in reader.get("/dashboard/audit/").content.decode()
    export = b"".join(reader.get("/dashboard/audit/export/")).decode()
    assert "1,234 emails" in export
