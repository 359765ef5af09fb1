"""API errors of templates."""

from typing import ClassVar

from core.api.errors import Member, Problem, field_path


class TemplateNotFound(Problem):
    """The workspace has no template with this id or alias.

    Check `templateId`. Templates of other workspaces cannot be used.
    """

    status, code, title = 422, "template_not_found", "Template not found"
    example = "There is no template with the id or alias 'welcome'."


class TemplateNotSendable(Problem):
    """`templateId` names a layout or a partial.

    Send with a template. A layout belongs to templates with its `layoutId`, a partial to those that insert it.
    """

    status, code, title = 422, "template_not_sendable", "Template not sendable"
    example = "'Brand' is a layout or a partial, which cannot be sent. Use a template."
    added_members: ClassVar = {"field": field_path("templateId", is_optional=True)}


class TemplateInUse(Problem):
    """Templates use this layout or partial.

    Remove it from the templates in `templates` first.
    """

    status, code, title = 409, "template_in_use", "Template in use"
    example = "1 template uses it: Order. Change it first."
    added_members: ClassVar = {
        "templates": Member(
            "The templates that use it.",
            [
                {
                    "id": Member("The id of the template.", "tpl_0Uf7mB5hJ8kLpQsVxZaWcE"),
                    "name": Member("Its name.", "Order"),
                }
            ],
        )
    }


class TemplateSyntaxInvalid(Problem):
    """A template does not compile, or names a partial that does not exist.

    `field`, `line` and `column` locate the invalid tag; `detail` describes the error.
    """

    status, code, title = 422, "template_syntax_error", "Template syntax error"
    example = "htmlContent, line 3, column 7: {{#if name}} is not closed: {{/if}} is missing."
    added_members: ClassVar = {
        "field": field_path("htmlContent"),
        "line": Member("The line of the error, from 1.", 3),
        "column": Member("The column of the error, from 1.", 7),
    }


class MissingTemplateVariables(Problem):
    """The template has `strictVariables`, and the data has no value for some of its variables.

    `variables` lists them; for a batch, `indexes` lists the recipients. Provide the values, or a default in the
    template: `{{name|"there"}}`.
    """

    status, code, title = 422, "missing_template_variables", "Missing template variables"
    example = "The data has no value for name, and the template has strictVariables. Add a value or a default."
    added_members: ClassVar = {
        "variables": Member("The names of the template's variables without a value.", ["name"]),
        "indexes": Member("The indexes of the recipients in the request, from 0.", [0, 3], is_optional=True),
    }


class TemplateOutputTooLarge(Problem):
    """The template renders to more than 2 MiB with this data, or takes too many steps to render.

    Send less data, or fewer recipients in a batch. For a batch, `field` names the recipient.
    """

    status, code, title = 422, "template_output_too_large", "Template output too large"
    example = "recipients[3]: The email would be larger than 2 MiB."
    added_members: ClassVar = {"field": field_path("recipients[3]", is_optional=True)}


class AliasTaken(Problem):
    """Another template of the workspace has this alias.

    Choose another alias, or remove this one from the other template first.
    """

    status, code, title = 409, "alias_taken", "Alias taken"
    example = "Another template of this workspace has the alias 'welcome'."
