"""`POST /v1/admin/configuration/check` validates a configuration and changes nothing."""

import pytest

from core.workspaces.models import ApiKey, Workspace
from domains.models import Domain
from templates_app.models import Template
from tests.conftest import Api, code_of, field_codes, make_key
from tests.rows import each
from webhooks.models import Webhook

CHECK = "/admin/configuration/check"
TEMPLATE = {"alias": "welcome", "name": "Welcome", "subject": "Hi {{ name }}", "htmlContent": "<p>Hi</p>"}
VALID = {
    "name": "Shop",
    "plan": "pro",
    "group": "customers",
    "ownerEmail": "ada@example.com",
    "domains": [{"name": "Mail.Example.com.", "tls": "required"}, {"name": "bücher.example"}],
    "templates": [TEMPLATE],
    "streams": [{"id": "newsletter", "name": "Newsletter", "kind": "bulk", "archived": True}],
    "alerts": [{"metric": "quota_used", "threshold": 80}],
    "webhooks": [{"url": "https://shop.example.com/x", "events": ["email.sent", "bounced"], "active": False}],
    "routes": [
        {
            "name": "Support",
            "domain": "Bücher.example",
            "match": "Support*",
            "webhooks": ["https://shop.example.com/x"],
        },
        {"name": "Trial", "domain": "shared", "match": "*", "storeDays": 0, "action": "discard"},
    ],
    "blocks": [{"sender": "bücher.example"}, {"sender": "Eve@example.com"}],
    "apiKeys": [{"name": "Website", "scope": "sending_access"}],
}


@pytest.fixture(autouse=True)
def _receiving(settings):
    settings.RECEIVING_DOMAIN = "in.demo.example"


def test_a_valid_configuration_is_accepted_with_the_names_of_its_domains(platform: Api):
    counts = [model.objects.count() for model in (Workspace, Domain, Template, Webhook, ApiKey)]
    response = platform.post(CHECK, VALID)
    assert (response.status_code, response.json()) == (
        200,
        {
            "domainNames": ["mail.example.com", "xn--bcher-kva.example"],
            "routeDomains": ["xn--bcher-kva.example", "shared"],
            "blockedSenders": ["xn--bcher-kva.example", "eve@example.com"],
        },
    )
    assert counts == [model.objects.count() for model in (Workspace, Domain, Template, Webhook, ApiKey)]


def test_a_route_for_shared_needs_a_shared_domain(platform: Api, settings):
    settings.RECEIVING_DOMAIN = ""
    (error,) = platform.post(CHECK, VALID).json()["errors"]
    assert (error["field"], error["code"]) == ("routes[1].domain", "receiving_not_active")


def test_all_errors_are_reported_together(platform: Api):
    response = platform.post(
        CHECK,
        {
            "plan": "gold",
            "domians": [],
            "domains": [{"name": "gmail.com"}, {"tls": "maybe"}],
            "templates": [TEMPLATE, {**TEMPLATE, "alias": "1"}, {**TEMPLATE, "htmlContent": "<p>\n{{#if a}}"}],
            "webhooks": [{"url": "ftp://example.com", "events": ["opend"]}],
            "apiKeys": [
                {"name": "Website"},
                {"name": "Office", "scope": "read_only", "limits": {"networks": ["192.0.2.0/24", "here"]}},
                {"name": "Blog", "scope": "full_access", "limits": {"domains": ["blog.example"]}},
                {"name": "CI", "scope": "read_only", "test": True},
            ],
            "routes": [
                {"name": "Support", "domain": "shared", "match": "a*b*c*d*"},
                {"name": "Support", "domain": "shared", "match": "*", "webhookIds": [], "storeDays": -1},
            ],
            "blocks": [{"sender": "@"}, {}],
            "alerts": [{"metric": "quota_used", "stream": "main", "threshold": 101}, {"metric": "opens"}],
        },
    )
    assert field_codes(response) == {
        "plan": "invalid_choice",
        "domians": "unknown_field",
        "domains[0].name": "invalid_domain",
        "domains[1].name": "required",
        "domains[1].tls": "invalid_choice",
        "templates[1].alias": "invalid",
        "templates[2].htmlContent": "template_syntax_error",
        "webhooks[0].url": "forbidden_target",
        "webhooks[0].events[0]": "invalid_choice",
        "routes[0].match": "invalid_pattern",
        "routes[1].webhookIds": "unknown_field",
        "routes[1].storeDays": "min_value",
        "blocks[0].sender": "invalid_sender",
        "blocks[1].sender": "required",
        "alerts[0].stream": "quota_of_a_stream",
        "alerts[0].threshold": "max_value",
        "alerts[1].metric": "invalid_choice",
        "alerts[1].threshold": "required",
        "apiKeys[0].scope": "required",
        "apiKeys[1].limits.networks[1]": "invalid_entry",
        "apiKeys[2].limits.domains": "requires_sending_access",
        "apiKeys[3].test": "requires_sending_access",
    }


def test_a_template_needs_an_alias(platform: Api):
    template = {name: value for name, value in TEMPLATE.items() if name != "alias"}
    assert field_codes(platform.post(CHECK, {"templates": [template]})) == {"templates[0].alias": "required"}


@each(
    ("section", "limit"),
    [
        ("domains", 100),
        ("templates", 5),
        ("streams", 20),
        ("alerts", 20),
        ("webhooks", 100),
        ("routes", 100),
        ("blocks", 1000),
        ("apiKeys", 100),
    ],
)
def test_the_entries_of_a_section_are_limited(platform: Api, section, limit):
    (entry,) = VALID[section][:1]
    assert platform.post(CHECK, {section: [entry] * limit}).status_code == 200
    assert field_codes(platform.post(CHECK, {section: [entry] * (limit + 1)})) == {section: "max_length"}


@each(
    ("fields", "errors"),
    [
        ({"id": "News"}, {"streams[0].id": "invalid"}),
        ({"id": "news", "kind": "bulk", "unsubscribe": "none"}, {"streams[0].unsubscribe": "invalid_stream"}),
        ({"id": "news", "color": "red"}, {"streams[0].color": "unknown_field"}),
        ({"id": "main", "trackOpens": False}, {}),
        ({"id": "main", "archived": True}, {"streams[0].archived": "invalid_stream"}),
        ({"id": "main", "kind": "bulk"}, {"streams[0].kind": "invalid_stream"}),
        ({"id": "main", "scope": "stream"}, {"streams[0].scope": "invalid_stream"}),
    ],
)
def test_streams_are_checked(platform: Api, fields, errors):
    response = platform.post(CHECK, {"streams": [{"name": "News", **fields}]})
    assert (field_codes(response) if errors else response.json()["domainNames"]) == (errors or [])


@each("scope", ["read_only", "full_access", "workspace_admin"])
def test_keys_that_may_read_check_a_configuration(alice, scope):
    assert Api(make_key(alice.workspace, scope)).post(CHECK, VALID).status_code == 200


def test_a_sending_key_checks_no_configuration(alice):
    assert code_of(Api(make_key(alice.workspace, "sending_access")).post(CHECK, VALID)) == (403, "insufficient_scope")
