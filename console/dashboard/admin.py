"""Sections of the workspace dashboard, and the staff pages that read several apps.

The other staff pages are in each app's admin.py.
"""

from django.contrib import admin

from alerts.models import Alert
from console.dashboard.pages.alerts.section import AlertSection
from console.dashboard.pages.audit import AuditSection
from console.dashboard.pages.deliveries import DeliverySection
from console.dashboard.pages.domains.section import DomainSection
from console.dashboard.pages.emails.section import EmailSection
from console.dashboard.pages.inbox import InboxSection
from console.dashboard.pages.keys import KeySection
from console.dashboard.pages.members import MemberSection
from console.dashboard.pages.receiving.blocks import BlockSection
from console.dashboard.pages.receiving.routes import RouteSection
from console.dashboard.pages.receiving.section import ReceivedSection
from console.dashboard.pages.requests.section import RequestSection
from console.dashboard.pages.streams.section import StreamSection
from console.dashboard.pages.suppressions import SuppressionSection
from console.dashboard.pages.templates.section import TemplateSection
from console.dashboard.pages.webhooks import WebhookSection
from console.dashboard.site import dashboard_site
from console.dashboard.staff.audit import SearchableAuditAdmin
from console.dashboard.staff.workspaces import ActiveWorkspaceAdmin, RatedDomainAdmin, RatedStreamAdmin
from core.request_log.models import ApiRequest
from core.workspaces.models import ApiKey, AuditEntry, Membership, Workspace
from domains.models import Domain
from emails.models import Email
from interfaces.inbound.inbox.models import CaughtMail
from receiving.models import InboundRoute, ReceivedEmail, SenderBlock
from streams.models import Stream
from suppressions.models import Suppression
from templates_app.models import Template
from webhooks.models import Webhook, WebhookDelivery

admin.site.unregister([Workspace, AuditEntry, Domain, Stream])
admin.site.register(Workspace, ActiveWorkspaceAdmin)
admin.site.register(AuditEntry, SearchableAuditAdmin)
admin.site.register(Domain, RatedDomainAdmin)
admin.site.register(Stream, RatedStreamAdmin)
dashboard_site.register(Email, EmailSection)
dashboard_site.register(ReceivedEmail, ReceivedSection)
dashboard_site.register(InboundRoute, RouteSection)
dashboard_site.register(SenderBlock, BlockSection)
dashboard_site.register(CaughtMail, InboxSection)
dashboard_site.register(Template, TemplateSection)
dashboard_site.register(Domain, DomainSection)
dashboard_site.register(Webhook, WebhookSection)
dashboard_site.register(WebhookDelivery, DeliverySection)
dashboard_site.register(Stream, StreamSection)
dashboard_site.register(Alert, AlertSection)
dashboard_site.register(Suppression, SuppressionSection)
dashboard_site.register(ApiKey, KeySection)
dashboard_site.register(ApiRequest, RequestSection)
dashboard_site.register(Membership, MemberSection)
dashboard_site.register(AuditEntry, AuditSection)
