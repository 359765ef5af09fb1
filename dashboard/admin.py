"""The sections of the owners' site. Staff's pages are in each app's own admin.py."""

from dashboard.pages.audit import AuditPages
from dashboard.pages.deliveries import DeliveryPages
from dashboard.pages.domains import DomainPages
from dashboard.pages.emails import EmailPages
from dashboard.pages.inbox import InboxPages
from dashboard.pages.keys import KeyPages
from dashboard.pages.members import MemberPages
from dashboard.pages.suppressions import SuppressionPages
from dashboard.pages.templates import TemplatePages
from dashboard.pages.webhooks import WebhookPages
from dashboard.site import dashboard_site
from domains.models import Domain
from emails.models import Email
from inbound.inbox.models import CaughtMail
from suppressions.models import Suppression
from templates_app.models import Template
from webhooks.models import Webhook, WebhookDelivery
from workspaces.models import ApiKey, AuditEntry, Membership

dashboard_site.register(Email, EmailPages)
dashboard_site.register(CaughtMail, InboxPages)
dashboard_site.register(Template, TemplatePages)
dashboard_site.register(Domain, DomainPages)
dashboard_site.register(Webhook, WebhookPages)
dashboard_site.register(WebhookDelivery, DeliveryPages)
dashboard_site.register(Suppression, SuppressionPages)
dashboard_site.register(ApiKey, KeyPages)
dashboard_site.register(Membership, MemberPages)
dashboard_site.register(AuditEntry, AuditPages)
