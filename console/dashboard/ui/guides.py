"""Guides: the page of the documentation that each page of the dashboard links to."""

from django.http import HttpRequest

from console.documentation.pages import URL

# URL name of a page, without the action of a section's page → page of the documentation.
GUIDES = {
    "index": "",
    "usage": "specification#plans-and-quota",
    "bounces": "guides/bounce-causes",
    "security": "security",
    "emails_email": "guides/sending",
    "receiving_receivedemail": "guides/receiving",
    "receiving_inboundroute": "guides/receiving#routes",
    "receiving_senderblock": "guides/receiving#routes",
    "inbox_caughtmail": "guides/testing",
    "templates_app_template": "guides/templates",
    "domains_domain": "domains",
    "webhooks_webhook": "webhooks",
    "webhooks_webhookdelivery": "webhooks#retries",
    "streams_stream": "guides/streams",
    "alerts_alert": "guides/alerts",
    "suppressions_suppression": "guides/bounces",
    "workspaces_apikey": "guides/keys",
    "request_log_apirequest": "guides/keys#find-a-request",
    "workspaces_membership": "specification#dashboard",
    "workspaces_auditentry": "specification#dashboard",
}


def guide_url(request: HttpRequest) -> str:
    """Return the URL of the requested page's guide; empty for a page without one."""
    name = (request.resolver_match and request.resolver_match.url_name) or ""
    page = GUIDES.get(name, GUIDES.get(name.rpartition("_")[0]))
    return "" if page is None else f"{URL}{page}"
