"""What a template refuses."""

from api.errors import Problem


class TemplateNotFound(Problem):
    """The workspace has no template with this id or alias.

    Check `templateId`; another workspace's templates cannot be used.
    """

    status, code, title = 422, "template_not_found", "Template not found"


class TemplateSyntaxInvalid(Problem):
    """A template's text cannot be understood.

    `field`, `line` and `column` point at the tag at fault, `detail` says what is wrong with it.
    """

    status, code, title = 422, "template_syntax_error", "Template syntax error"


class MissingTemplateVariables(Problem):
    """The template has `strictVariables`, and the data has no value for some of its variables.

    `variables` names them, and of a batch `indexes` the recipients. Give the values, or a default in the template:
    `{{name|"there"}}`.
    """

    status, code, title = 422, "missing_template_variables", "Missing template variables"


class TemplateOutputTooLarge(Problem):
    """With this data the template renders to more than 2 MiB.

    Give less data; of a batch, `field` names the recipient.
    """

    status, code, title = 422, "template_output_too_large", "Template output too large"


class AliasTaken(Problem):
    """Another template of the workspace has this alias.

    Choose another alias, or take it from the other template first.
    """

    status, code, title = 409, "alias_taken", "Alias taken"
