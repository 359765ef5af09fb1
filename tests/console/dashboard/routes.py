"""The routes of the dashboard and the staff admin, and the only list of those that are not pages."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import URLPattern, URLResolver, reverse

from console.dashboard.site import dashboard_site
from core.workspaces.models import Membership
from emails.models import ReceiverPace


def routes(patterns: Any, prefix: str = "/dashboard/") -> dict[str, str]:
    """Return the routes of the site by name, with <str:object_id> as the placeholder of an object."""
    found = {}
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            found |= routes(pattern.url_patterns, prefix + str(pattern.pattern))
        elif isinstance(pattern, URLPattern) and pattern.name:
            found[pattern.name] = prefix + str(pattern.pattern)
    return found


ROUTES = routes(dashboard_site.get_urls())
# A GET is answered with 405.
POST_ONLY = {
    "domains_domain_tls",
    "domains_domain_verify",
    "end_sessions",
    "logout",
    "emails_email_bulk",
    "emails_email_display",
    "receiving_receivedemail_redeliver",
    "resend_confirmation",
    "send_test_email",
    "streams_stream_unarchive",
    "suppressions_suppression_remove",
    "switch_workspace",
    "templates_app_template_check",
    "templates_app_template_duplicate",
    "templates_app_template_preview",
    "templates_app_template_restore",
    "templates_app_template_test",
    "webhooks_webhook_enable",
    "webhooks_webhook_test",
    "webhooks_webhookdelivery_replay",
    "workspaces_membership_withdraw",
}
# A file, a frame, a fragment, a redirect, or a URL name that unfold requires.
NOT_A_PAGE = {
    "approval_preview",
    "domains_domain_zone",
    "emails_email_attachment",
    "emails_email_erase",
    "emails_email_erasure",
    "emails_email_export",
    "emails_email_export_person",
    "emails_email_message",
    "emails_email_panel",
    "emails_email_preview",
    "emails_email_source",
    "emails_email_subject_export",
    "emails_email_subject_export_file",
    "inbox_caughtmail_preview",
    "inbox_caughtmail_source",
    "jsi18n",
    # Redirects; their pages are in tests/console/dashboard/auth/oidc/.
    "oidc",
    "oidc_callback",
    "oidc_link",
    "palette",
    "receiving_receivedemail_attachment",
    "receiving_receivedemail_message",
    "receiving_receivedemail_preview",
    "receiving_receivedemail_source",
    "receiving_receivedemail_text",
    "search",
    "suppressions_suppression_export",
    "workspaces_auditentry_export",
}
# Pages for visitors; some need the token of a link.
SIGNED_OUT = {
    "login",
    "signup",
    "reset",
    "new_password",
    "invitation",
    "confirm_email",
    "sign_in_link",
    "shared_records",
    "approval",
}
PAGES = {name: route for name, route in ROUTES.items() if name not in POST_ONLY | NOT_A_PAGE | SIGNED_OUT}


def paths_of(objects: dict[str, Any]) -> dict[str, str]:
    """Return the path of every page for a signed-in user, by route name, with the given objects.

    Raises KeyError for a kind that the objects lack: every page must be covered.
    """
    return {name: _path(name, route, objects) for name, route in PAGES.items()}


def _path(name: str, route: str, objects: dict[str, Any]) -> str:
    if "<" not in route:
        return route
    return route.replace("<str:object_id>", str(objects[name.rpartition("_")[0]].pk))


def staff_paths() -> list[str]:
    """Return the paths of all pages of the staff admin, those of objects only for models that have one."""
    paths = [
        reverse(f"admin:{name}")
        for name in (
            "index",
            "security",
            "password_change",
            "transports",
            "sources",
            "queue",
            "queue_pause",
            "receivers",
        )
    ]
    paths += [reverse("admin:transport_drain", args=[name]) for name in settings.TRANSPORTS.transports]
    if pair := ReceiverPace.objects.first():
        paths += [reverse(f"admin:receiver_{name}", args=[pair.pk]) for name in ("suspend", "release", "pin")]
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        paths += [reverse(f"{name}_changelist"), reverse(f"{name}_add")]
        if instance := model._default_manager.first():
            # History and delete pages are alike for all models.
            actions = ("change", "history", "delete") if model is Membership else ("change",)
            paths += [reverse(f"{name}_{action}", args=[quote(instance.pk)]) for action in actions]
    return paths
