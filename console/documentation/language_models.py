"""The documentation in Markdown: /llms.txt (llmstxt.org), and the API reference (docs/decisions/0141)."""

import functools

from django.conf import settings
from django.template.loader import render_to_string

from console.documentation.navigation import described_sections
from console.documentation.reference import introduction, reference_page, reference_pages

REFERENCE = "api"


@functools.cache
def llms_text() -> str:
    """Return the list of all pages, with a link to the Markdown of each."""
    values = {"sections": described_sections(), "base_url": settings.PUBLIC_URL}
    return render_to_string("documentation/llms.txt", values)


@functools.lru_cache(maxsize=32)
def reference_markdown(name: str) -> str | None:
    """Return the API reference in Markdown: name is `api`, or `api/` and the name of a page; None for others."""
    if name == REFERENCE:
        return render_to_string("documentation/api.txt", {"introduction": introduction(), "pages": reference_pages()})
    page = reference_page(name.removeprefix(f"{REFERENCE}/")) if name.startswith(f"{REFERENCE}/") else None
    return render_to_string("documentation/reference.txt", {"reference": page}) if page else None
