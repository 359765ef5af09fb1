from django.urls import path
from django.views.generic import RedirectView

from console.documentation import views

urlpatterns = [
    path("llms.txt", views.llms),
    path("docs", RedirectView.as_view(pattern_name="docs")),
    path("docs/", views.index, name="docs"),
    path("docs/search", views.search_results, name="docs-search"),
    path("docs/api", views.api_overview, name="docs-api"),
    path("docs/api/", views.api_overview),
    path("docs/errors", views.errors, name="docs-errors"),
    path("docs/errors/", views.errors),
    path("docs/images/<slug:name>.svg", views.image),
    path("docs/<path:name>.md", views.markdown, name="docs-markdown"),
    path("docs/api/<slug:name>", views.api_page, name="docs-api-page"),
    path("docs/<path:name>", views.page, name="docs-page"),
]
