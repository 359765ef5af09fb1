"""Initial values of the template editor: of a stored template, a starter, or the query of the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.dashboard.pages.templates.drafts import sample_data
from console.dashboard.pages.templates.forms import content_values
from console.dashboard.pages.templates.kinds import KIND
from console.dashboard.pages.templates.starters import LAYOUT_STARTER, STARTERS, TemplateStarter, find_starter
from templates_app.content import version_content
from templates_app.models import Template


@dataclass(frozen=True)
class EditorStart:
    """Initial values of a new template.

    starters: those to choose from.
    starter: the chosen one.
    """

    values: dict[str, Any]
    starters: tuple[TemplateStarter, ...] = ()
    starter: TemplateStarter | None = None


def read_start(query: Mapping[str, Any], *, kind: str, layouts: Mapping[str, str]) -> EditorStart:
    """Return the values of a new template: with `layout`, in that layout; with `starter`, those of a starter."""
    if kind == KIND.LAYOUT:
        return EditorStart(_starter_values(LAYOUT_STARTER, layout=""))
    if kind == KIND.PARTIAL:
        return EditorStart({"data": "{}"})
    layout = query.get("layout", "")
    layout = layout if layout in layouts else ""
    starter = find_starter(query.get("starter", ""))
    values = _starter_values(starter, layout=layout) if starter else {"data": "{}", "layout": layout}
    return EditorStart(values, STARTERS, starter)


def template_values(template: Template) -> dict[str, Any]:
    """Return the values of a stored template, with sample data for its variables if it has none."""
    content = version_content(template.version)
    sample = template.sample_data or sample_data(content, workspace=template.workspace, kind=template.kind)
    return {
        "name": template.name,
        "alias": template.alias,
        **content_values(content),
        "strict_variables": template.strict_variables,
        "sensitive": template.sensitive,
        "deliver_within": template.deliver_within,
        "data": sample,
    }


def _starter_values(starter: TemplateStarter, *, layout: str) -> dict[str, Any]:
    """Return the values of a starter: with a layout, without the frame that it has otherwise."""
    content = starter.framed_content(layout) if layout else starter.content
    return {"name": str(starter.title), **content_values(content), "data": starter.sample_data}
