from core.api.routing import Router, fixed_path
from domains.reports.api.views import DmarcReportViewSet, DmarcView, SourcesView, TlsReportsView
from domains.views import DomainViewSet

WITHIN = r"domains/(?P<domain_id>[^/.]+)"

router = Router()
router.register(f"{WITHIN}/dmarc/reports", DmarcReportViewSet, basename="dmarc-report")
router.register("domains", DomainViewSet, basename="domain")
urlpatterns = [
    *router.urls,
    fixed_path(f"{WITHIN}/dmarc", DmarcView.as_view(), name="dmarc"),
    fixed_path(f"{WITHIN}/dmarc/sources", SourcesView.as_view(), name="dmarc-sources"),
    fixed_path(f"{WITHIN}/tls-reports", TlsReportsView.as_view(), name="tls-reports"),
]
