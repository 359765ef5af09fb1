"""Sidebar links and the workspace menu above them."""

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.urls import reverse, reverse_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.auth.current_workspace import (
    current_workspace,
    has_held_emails,
    is_owner,
    uses_alerts,
    uses_receiving,
    workspaces_of,
)
from console.dashboard.auth.passwords import has_password
from console.dashboard.ui.inbox import uses_inbox
from console.dashboard.ui.streams import streams_of

PRODUCT = "Postrider"
# The sections under one item.
RECEIVING = ("receiving_receivedemail", "receiving_inboundroute", "receiving_senderblock")


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    streams = _item(_("Streams"), "campaign", "streams_stream_changelist", key="n")
    received = {
        **_item(_("Received"), "mark_email_unread", "receiving_receivedemail_changelist", key="r"),
        "active": request.path.startswith(tuple(reverse(f"dashboard:{name}_changelist") for name in RECEIVING)),
    }
    alerts = _item(_("Alerts"), "notifications", "alerts_alert_changelist", key="l")
    inbox = _item(_("Inbox"), "inbox", "inbox_caughtmail_changelist", key="i")
    emails = _item(_("Emails"), "mail", "emails_email_changelist", key="e")
    if _shows_held(request):
        emails["active"] = False
    return [
        {
            "items": [
                {
                    **_item(_("Overview"), "space_dashboard", "index", key="o"),
                    "active": request.path == reverse("dashboard:index"),
                },
                emails,
                *([_held_item(request)] if has_held_emails(request) else []),
                _item(_("Bounces"), "report", "bounces", key="b"),
                *([received] if uses_receiving(request) else []),
                *([inbox] if uses_inbox(request) else []),
            ]
        },
        {
            "title": _("Set up"),
            "separator": True,
            "items": [
                _item(_("Templates"), "draft", "templates_app_template_changelist", key="t"),
                _item(_("Domains"), "dns", "domains_domain_changelist", key="d"),
                _item(_("Webhooks"), "webhook", "webhooks_webhook_changelist", key="w"),
                *([streams] if streams_of(request) else []),
                _item(_("Suppressions"), "block", "suppressions_suppression_changelist", key="s"),
                _item(_("API keys"), "key", "workspaces_apikey_changelist", key="k"),
                _item(_("API requests"), "receipt_long", "request_log_apirequest_changelist", key="q"),
                _item(_("Usage"), "data_usage", "usage", key="u"),
                *([alerts] if uses_alerts(request) else []),
            ],
        },
        {"title": _("Workspace"), "separator": True, "items": _workspace_items(request)},
    ]


def shortcuts(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the links of the sidebar, each with its shortcut key; none without a workspace."""
    if not workspaces_of(request):
        return []
    return [item for section in sidebar(request) for item in section["items"]]


# Title → the models under it, as admin URLs name them, with their icons.
STAFF_SECTIONS = {
    gettext_lazy("Accounts"): {
        "workspaces_workspace": "deployed_code",
        "workspaces_user": "person",
        "workspaces_membership": "group",
        "workspaces_apikey": "key",
        "provisioning_managementkey": "key",
        "workspaces_auditentry": "history",
        "privacy_erasure": "delete",
        "privacy_subjectexport": "download",
    },
    gettext_lazy("Email"): {
        "emails_email": "mail",
        "templates_app_template": "draft",
        "domains_domain": "dns",
        "domains_trackinghost": "link",
        "domains_receivingdomain": "move_to_inbox",
        "receiving_receivedemail": "mark_email_unread",
        "receiving_inboundroute": "rule",
        "receiving_receivingusage": "data_usage",
        "streams_stream": "campaign",
        "alerts_alert": "notifications",
        "webhooks_webhook": "webhook",
        "webhooks_webhookdelivery": "outbox",
    },
    gettext_lazy("Service"): {
        "inbound_mailreport": "undo",
        "inbound_providerreport": "move_to_inbox",
        "system_mail_systemmail": "stacked_email",
        "system_mail_canaryrun": "monitoring",
        "inbox_caughtmail": "inbox",
    },
}


def staff_sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the models that this member of staff may view, by section; unlisted models come last."""
    models = _models_for(request)
    home = reverse("admin:index")
    operations = {"title": _("Operations"), "icon": "monitoring", "link": home, "active": request.path == home}
    queue = {"title": _("Queue"), "icon": "hourglass_top", "link": reverse("admin:queue")}
    receivers = {"title": _("Receivers"), "icon": "dns", "link": reverse("admin:receivers")}
    first: list[dict[str, Any]] = [operations, queue] if request.user.has_perm("emails.view_email") else [operations]
    if request.user.has_perm("emails.view_receiverpace"):
        first.append(receivers)
    first.append({"title": _("Outbound connections"), "icon": "link", "link": reverse("admin:connections")})
    sections: list[dict[str, Any]] = [{"items": first}]
    for title, icons in STAFF_SECTIONS.items():
        items = [{**models.pop(name), "icon": icon} for name, icon in icons.items() if name in models]
        sections += [{"title": title, "separator": True, "items": items}] if items else []
    return [*sections, {"title": _("More"), "separator": True, "items": list(models.values())}] if models else sections


def _models_for(request: HttpRequest) -> dict[str, dict[str, Any]]:
    """Return the models of the admin's app list, which checks permissions, as sidebar items."""
    items = {}
    for app in admin.site.get_app_list(request):
        for model in app["models"]:
            name, url = f"{app['app_label']}_{model['object_name'].lower()}", model["admin_url"]
            if url:
                items[name] = {"title": model["name"], "icon": "table", "link": url}
    return items


def account_links(request: HttpRequest) -> list[dict[str, Any]]:
    return [*_account_items(request, "dashboard"), {"title": _("Keyboard shortcuts"), "link": "#shortcuts"}]


def staff_account_links(request: HttpRequest) -> list[dict[str, Any]]:
    return _account_items(request, "admin")


def _account_items(request: HttpRequest, site: str) -> list[dict[str, Any]]:
    user: Any = request.user
    items = [
        {"title": _("Security"), "link": reverse(f"{site}:security")},
        {"title": _("Language and time zone"), "link": reverse(f"{site}:preferences")},
    ]
    if user.is_authenticated and has_password(user):
        items.append({"title": _("Change password"), "link": reverse(f"{site}:password_change")})
    return items


def _workspace_items(request: HttpRequest) -> list[dict[str, Any]]:
    members = _item(_("Members"), "group", "workspaces_membership_changelist", key="m")
    audit = _item(_("Audit log"), "history", "workspaces_auditentry_changelist", key="a")
    return [members, audit] if is_owner(request) else [members]


def workspace_name(request: HttpRequest) -> str:
    return current_workspace(request).name if workspaces_of(request) else PRODUCT


def workspace_menu(request: HttpRequest) -> list[dict[str, Any]] | None:
    """Return the menu for switching workspaces; None for an account with only one."""
    workspaces = workspaces_of(request)
    if len(workspaces) < 2:
        return None
    current, token = current_workspace(request), get_token(request)
    return [
        {
            "title": workspace.name,
            "link": reverse("dashboard:index"),
            "icon": "check" if workspace == current else "deployed_code",
            "attrs": {
                "hx-post": reverse("dashboard:switch_workspace"),
                "hx-vals": json.dumps({"workspace": workspace.id}),
                "hx-headers": json.dumps({"X-CSRFToken": token}),
                "hx-swap": "none",
            },
        }
        for workspace in workspaces
    ]


def _held_item(request: HttpRequest) -> dict[str, Any]:
    """Return the link to the emails that wait for approval."""
    item = _item(_("Waiting for approval"), "approval", "emails_email_changelist", key="p")
    return {**item, "link": f"{item['link']}?held=approval", "active": _shows_held(request)}


def _shows_held(request: HttpRequest) -> bool:
    """Return whether the page is the list of emails that wait for approval."""
    is_list = request.path == reverse("dashboard:emails_email_changelist")
    return is_list and request.GET.get("held") == "approval"


def _item(title: str, icon: str, name: str, *, key: str) -> dict[str, Any]:
    """Return a link of the sidebar. key: opens it after "g"."""
    return {"title": title, "icon": icon, "link": reverse_lazy(f"dashboard:{name}"), "key": key}
