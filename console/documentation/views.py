"""Documentation at /docs/: guides and references with navigation and search, without a database query. All offline.

See docs/decisions/0107.
"""

import functools
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.cache import cache_control
from django.views.decorators.http import conditional_page, require_safe

from console.documentation.error_catalogue import error_entries
from console.documentation.language_models import llms_text, reference_markdown
from console.documentation.markdown import add_anchors, parser, render_tokens
from console.documentation.navigation import described_sections, navigation, page_links
from console.documentation.pages import directory, documentation_page, image_files, markdown_page
from console.documentation.reference import ReferencePage, introduction, reference_page, reference_pages
from console.documentation.search import MAX_QUERY_LENGTH, search

# "Try it" sends requests to this service only.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A diagram has its colors for light and dark in itself, and no scripts.
IMAGE_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

# Results of the search on the page for a name that does not exist.
MAX_SUGGESTIONS = 5


def cached_page(view: Any) -> Any:
    return require_safe(conditional_page(cache_control(public=True, max_age=300)(view)))


def framed_page(view: Any) -> Any:
    """Decorate the view of a page by name: an unknown name is a page with what the search finds for it."""
    cached = cached_page(view)

    @functools.wraps(view)
    def framed(request: HttpRequest, name: str) -> HttpResponse:
        try:
            response: HttpResponse = cached(request, name)
        except Http404:
            # Programs get the problem of core.api.exception_handler.
            if request.content_type == "application/json":
                raise
            # Directories, such as guides/, would be words that results must have.
            last = name.rstrip("/").rpartition("/")[2]
            response = _render(request, "not_found", title="Page not found", results=search(last)[:MAX_SUGGESTIONS])
            response.status_code = HTTPStatus.NOT_FOUND
        return response

    return framed


@cached_page
def index(request: HttpRequest) -> HttpResponse:
    return _render(request, "index", title="Documentation", sections=described_sections())


@framed_page
def page(request: HttpRequest, name: str) -> HttpResponse:
    page = documentation_page(name)
    if page is None:
        raise Http404
    values = {"title": page.title, "summary": page.summary, "headings": page.headings}
    return _render(request, "page", page=page, markdown=f"/docs/{name}.md", **values)


@cached_page
def api_overview(request: HttpRequest) -> HttpResponse:
    tokens = parser().parse(introduction())
    headings = add_anchors(tokens)
    values = {"body": render_tokens(tokens), "headings": headings, "pages": reference_pages()}
    return _render(request, "api", title="API reference", markdown="/docs/api.md", **values)


@framed_page
def api_page(request: HttpRequest, name: str) -> HttpResponse:
    page = reference_page(name)
    if page is None:
        raise Http404
    return _render(
        request, "reference", title=f"{page.title} API", body=_reference_html(page), markdown=f"{page.url}.md"
    )


@cached_page
def errors(request: HttpRequest) -> HttpResponse:
    return _render(request, "errors", title="Errors", errors=error_entries())


@require_safe
def search_results(request: HttpRequest) -> HttpResponse:
    query = request.GET.get("q", "")[:MAX_QUERY_LENGTH]
    return _render(request, "search", title="Search", query=query, results=search(query))


@cached_page
def markdown(request: HttpRequest, name: str) -> HttpResponse:
    """Return a page in Markdown, for programs and language models."""
    text = reference_markdown(name) or markdown_page(name)
    if text is None:
        raise Http404
    return HttpResponse(text, content_type="text/markdown; charset=utf-8")


@cached_page
def image(request: HttpRequest, name: str) -> HttpResponse:
    file = f"images/{name}.svg"
    if file not in image_files():
        raise Http404
    response = HttpResponse((directory() / file).read_text(encoding="utf-8"), content_type="image/svg+xml")
    response.headers["Content-Security-Policy"] = IMAGE_SECURITY_POLICY
    return response


@cached_page
def llms(request: HttpRequest) -> HttpResponse:
    return HttpResponse(llms_text(), content_type="text/plain; charset=utf-8")


@functools.cache
def _reference_html(page: ReferencePage) -> SafeString:
    # Renders hundreds of fields.
    return render_to_string("documentation/reference_body.html", {"reference": page})


def _render(request: HttpRequest, template: str, **values: Any) -> HttpResponse:
    path = request.path.rstrip("/")
    context = {"navigation": navigation(), "path": path, "page_links": page_links().get(path), **values}
    response = HttpResponse(render_to_string(f"documentation/{template}.html", context))
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response
