"""What a template refuses."""

from api.errors import Problem


class TemplateNotFound(Problem):
    status, code, title = 422, "template_not_found", "Template not found"


class TemplateSyntaxInvalid(Problem):
    status, code, title = 422, "template_syntax_error", "Template syntax error"


class MissingTemplateVariables(Problem):
    status, code, title = 422, "missing_template_variables", "Missing template variables"


class TemplateOutputTooLarge(Problem):
    status, code, title = 422, "template_output_too_large", "Template output too large"


class AliasTaken(Problem):
    status, code, title = 409, "alias_taken", "Alias taken"
