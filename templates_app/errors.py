"""API errors of templates."""

from api.errors import Problem


class TemplateNotFound(Problem):
    """The workspace has no template with this id or alias.

    Check `templateId`. Templates of other workspaces cannot be used.
    """

    status, code, title = 422, "template_not_found", "Template not found"


class TemplateSyntaxInvalid(Problem):
    """A template does not compile.

    `field`, `line` and `column` locate the invalid tag; `detail` describes the error.
    """

    status, code, title = 422, "template_syntax_error", "Template syntax error"


class MissingTemplateVariables(Problem):
    """The template has `strictVariables`, and the data has no value for some of its variables.

    `variables` lists them; for a batch, `indexes` lists the recipients. Provide the values, or a default in the
    template: `{{name|"there"}}`.
    """

    status, code, title = 422, "missing_template_variables", "Missing template variables"


class TemplateOutputTooLarge(Problem):
    """The template renders to more than 2 MiB with this data, or takes too many steps to render.

    Send less data, or fewer recipients in a batch. For a batch, `field` names the recipient.
    """

    status, code, title = 422, "template_output_too_large", "Template output too large"


class AliasTaken(Problem):
    """Another template of the workspace has this alias.

    Choose another alias, or remove this one from the other template first.
    """

    status, code, title = 409, "alias_taken", "Alias taken"
