"""Switch between the workspaces of one account."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.ui.current_workspace import choose_workspace


@require_POST
def switch_workspace(request: HttpRequest) -> HttpResponse:
    """POST workspace=ws_…; the sidebar's menu sends it by htmx, which is told where to go by a header."""
    choose_workspace(request, request.POST.get("workspace", ""))
    home = reverse("dashboard:index")
    if "HX-Request" in request.headers:
        return HttpResponse(status=204, headers={"HX-Redirect": home})
    return redirect(home)
