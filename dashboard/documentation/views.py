"""Documentation at /docs/: guides and references, with navigation, without a database query."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import conditional_page, require_safe

from api.docs import render_page
from dashboard.documentation.pages import documentation_page, navigation


@require_safe
@conditional_page
@cache_control(public=True, max_age=300)
def documentation(request: HttpRequest, name: str = "") -> HttpResponse:
    page = documentation_page(name)
    if page is None:
        raise Http404
    return render_page(
        request, "dashboard/documentation.html", page=page, name=name, path=request.path, navigation=navigation()
    )
