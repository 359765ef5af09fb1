"""The modules of the Python library: answers, errors and resources, synchronous and asynchronous."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional

from generator import names
from generator.document import Document, Field, Operation, Problem, Schema, reference_of, without_sentences
from generator.layout import WIDTH, enclosed, paragraph
from generator.names import Method, Resource

PACKAGE = "postrider_client"
MARK = "# Generated from docs/openapi.json by bin/clients.py. Changes are lost.\n"
ANSWERS = {
    **names.ANSWERS,
    "BatchRejection": "Rejection",
    "Spf": "SpfVerdict",
    "Dkim": "DkimVerdict",
    "Dmarc": "DmarcVerdict",
    "Arc": "ArcVerdict",
    "Spam": "SpamVerdict",
    "Remote": "RemoteHost",
    "Month": "MonthUsage",
    # One class, with the members that not all of its responses have as None.
    "Delivery": "WebhookDelivery",
    "NewKey": "ManagedKey",
    "WebhookWithSecret": "Webhook",
    "Unblocked": "Deleted",
}
# Members with the name of another one of the class.
MEMBERS = {"raw": "source"}
SUBCLASSES = {"ReceivedEmail": "ReceivedItem"}
# Schemas that stay dictionaries, as in version 1.0.0.
DICTIONARIES = {"Attempt"}
# Not shown by repr().
SECRETS = {("Webhook", "secret"), ("ManagedKey", "key")}
# Answers with the name of their resource, in its module.
RENAMED = {"Analytics": "AnalyticsAnswer"}
INPUTS = {"FileInput": "Attachment", "BatchRecipientInput": "BatchRecipient"}
# Arguments that take more than the API: the type, and the function that converts them.
CONVERTED = {"SimulationInput.raw": ("Union[str, bytes]", "text_of")}
ERROR_BASES = {**names.ERROR_BASES, "template_syntax_error": "TemplateError"}
BASE_ERRORS = (
    "ApiError", "AuthenticationError", "BadRequest", "Conflict", "ConnectionFailed", "FieldError", "Forbidden",
    "NotFound", "PayloadTooLarge", "PostriderError", "RefusedRecipient", "ServerError", "SuppressedRecipient",
    "TemplateError", "TimedOut", "Unprocessable", "UnsupportedMessage", "WebhookVerificationError",
)  # fmt: skip
EMPTY = {"str": '""', "bool": "False", "int": "0", "float": "0"}
WORDS = ((r"\b[Nn]ull\b", "None"), (r"\babsent\b", "None"), (r"`true`", "True"), (r"`false`", "False"))
DATE_OR_TIME = "DateOrTime"
WIRE = (DATE_OR_TIME, "UNCHANGED", "body_of", "changes_of", "items_of", "object_of", "read", "text_of")


def modules(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the path of each module in the package, and its text."""
    answers = Answers(document)
    for module in ("answers", "inbound_answers", "workspace_answers"):
        yield f"{module}.py", answers.module(module)
    yield "errors.py", errors_module(document)
    yield "cli/inputs.py", inputs_module(document)
    for name, resources in names.MODULES.items():
        yield f"{name}.py", ResourceModule(document, answers, resources, is_async=False).text
        yield f"aio/{name}.py", ResourceModule(document, answers, resources, is_async=True).text


def uses_name(name: str, text: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def argument(name: str) -> str:
    """Return the name of a member in Python: replyTo is reply_to, from is from_."""
    snake = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
    return "from_" if snake == "from" else snake


def prose(text: str) -> str:
    """Return a text of the API with the words of Python."""
    text = re.sub(r"`([a-z]+(?:[A-Z][a-z]+)+)`", lambda name: f"`{argument(name[1])}`", text)
    text = text.replace("`from`", "`from_`")
    for word, replacement in WORDS:
        text = re.sub(word, replacement, text)
    return text[:1].upper() + text[1:]


def docstring(text: str, *, indent: int, more: "tuple[str, ...]" = ()) -> list[str]:
    """Return a docstring of paragraphs: each further one is a list of lines, or a text."""
    start = " " * indent
    if not more and len(start) + len(text) + 6 <= WIDTH:
        return [f'{start}"""{text}"""']
    summary, stop, rest = text.partition(". ")
    if stop and len(start) + len(text) + 3 > WIDTH:
        return docstring(f"{summary}.", indent=indent, more=(rest, *more))
    lines = paragraph(f'"""{text}', indent=indent)
    if not more and len(lines) == 1:
        lines = paragraph(f'"""{text}', indent=indent, width=WIDTH - 3)
    for part in more:
        lines += ["", *(line for row in part.split("\n") for line in paragraph(row, indent=indent))]
    return [*lines, f'{start}"""']


@dataclass(frozen=True)
class Member:
    """A member of an answer: its name, type and text. is_optional: None, or missing in some responses."""

    name: str
    kind: str
    text: str
    is_optional: bool

    @property
    def annotation(self) -> str:
        return f"Optional[{self.kind}]" if self.is_optional else self.kind


class Answers:
    """The classes of responses, by module."""

    def __init__(self, document: Document) -> None:
        self._document = document
        # The module of each class.
        self.modules: dict[str, str] = {}
        self._with_raw = {"Warning"}
        for operation in document.operations.values():
            path = operation.path[0]
            module = {"inbound": "inbound_answers", "admin": "workspace_answers"}.get(path, "answers")
            for schema in operation.answers.values():
                self._collect(schema, module)

    def name(self, schema: str) -> str:
        return ANSWERS.get(schema, schema)

    def _collect(self, schema: Schema, module: str, *, is_nested: bool = False) -> None:
        """Assign a schema and those that it refers to a module; those of the first operation stay."""
        for one in schema.get("oneOf", ()):
            self._collect(one, module, is_nested=is_nested)
        if "items" in schema:
            self._collect(schema["items"], module, is_nested=is_nested)
        referred = reference_of(schema)
        if referred is None or referred in DICTIONARIES:
            return
        if wrapped := self._document.wrapped(referred):
            self._collect(wrapped, module, is_nested=is_nested)
            return
        name = self.name(referred)
        if not is_nested:
            self._with_raw.add(name)
        order = ("answers", "inbound_answers", "workspace_answers")
        present = self.modules.get(name, module)
        self.modules[name] = min(present, module, key=order.index)
        for field in self._document.fields(referred):
            self._collect(field.schema, self.modules[name], is_nested=True)

    def module(self, module: str) -> str:
        own = [name for name, place in self.modules.items() if place == module]
        ordered = self._in_order(own)
        body = [line for name in ordered for line in ("", "", *self._class(name))]
        text = "\n".join(body)
        by_hand = ["Export as Export", "WebhookEvent as WebhookEvent"] if module == "answers" else []
        uses = {
            "collections.abc": ["Mapping"],
            "dataclasses": ["dataclass", "field"],
            "datetime": ["datetime"] if "datetime" in text else [],
            "typing": [name for name in ("Any", "Optional") if uses_name(name, text)],
            f"{PACKAGE}.answers": [name for name in self.modules if name not in own and uses_name(name, text)],
            f"{PACKAGE}.other_answers": by_hand,
            f"{PACKAGE}.wire": ["read"] if "read(" in text else [],
        }
        head = '"""Responses of the API as dataclasses. `raw` is the unchanged response, with newer members."""'
        return "\n".join([MARK + head, "", *imports(uses), *body, ""])

    def _in_order(self, classes: list[str]) -> list[str]:
        """Return classes such that each comes after those that it uses."""
        done: list[str] = []

        def add(name: str) -> None:
            if name in classes and name not in done:
                for used in self._used_by(name):
                    add(used)
                done.append(name)

        for name in classes:
            add(name)
        return done

    def _used_by(self, name: str) -> list[str]:
        kinds = [word for member in self._members(name) for word in re.findall(r"\w+", member.kind)]
        return [*([SUBCLASSES[name]] if name in SUBCLASSES else []), *(kind for kind in kinds if kind != name)]

    def _members(self, name: str) -> list[Member]:
        """Return the members of all schemas of a class, those that can be None last."""
        schemas = [one for one in self._document.answer_schemas() if self.name(one) == name]
        members = [
            Member(
                argument(MEMBERS.get(field.name, field.name)),
                self.kind(field.schema),
                prose(field.text),
                field.is_optional,
            )
            for field in self._document.merged_fields(schemas)
        ]
        return sorted(members, key=lambda member: member.is_optional)

    def _class(self, name: str) -> list[str]:
        parent = SUBCLASSES.get(name)
        inherited = {member.name for member in self._members(parent)} if parent else set()
        members = [member for member in self._members(name) if member.name not in inherited]
        lines = ["@dataclass(frozen=True)", f"class {name}({parent}):" if parent else f"class {name}:"]
        if name in names.ANSWER_TEXTS:
            lines += [*docstring(names.ANSWER_TEXTS[name], indent=4), ""]
        for member in members:
            if member.name != MEMBERS["raw"]:
                lines += self._member(name, member, has_default=bool(parent))
        if name in self._with_raw and not parent:
            lines.append("    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)")
        for member in members:
            if member.name == MEMBERS["raw"]:
                lines += self._source(member)
        return lines

    def _member(self, owner: str, member: Member, *, has_default: bool) -> list[str]:
        default = " = None" if member.is_optional else ""
        if has_default and not default:
            default = f" = {EMPTY.get(member.kind, 'field(default_factory=list)')}"
        if (owner, member.name) in SECRETS:
            default = " = field(default=None, repr=False)"
        lines = [f"    {member.name}: {member.annotation}{default}"]
        return [*lines, *(docstring(member.text, indent=4) if member.text else [])]

    def _source(self, member: Member) -> list[str]:
        """Return the property for the member `raw` of the API."""
        return [
            "",
            "    @property",
            f"    def {member.name}(self) -> {member.annotation}:",
            *docstring(f"{member.text} `raw` in the API.", indent=8),
            f'        return read({member.kind}, self.raw["raw"]) if self.raw["raw"] else None',
        ]

    def kind(self, schema: Schema) -> str:
        """Return the type of a value in a response."""
        referred = reference_of(schema)
        if referred:
            return "dict[str, Any]" if referred in DICTIONARIES else self.name(referred)
        if schema.get("type") == "array":
            return f"list[{self.kind(schema['items'])}]"
        if schema.get("type") == "object":
            values = schema.get("additionalProperties") or {}
            return f"dict[str, {self.kind(values) if values and 'properties' not in schema else 'Any'}]"
        return scalar(schema)


def scalar(schema: Schema) -> str:
    """Return the type of a text, number, boolean or time."""
    if schema.get("format") == "date-time":
        return "datetime"
    return {"integer": "int", "number": "float", "boolean": "bool"}.get(schema.get("type", "string"), "str")


def imports(uses: "dict[str, list[str]]") -> list[str]:
    """Return the imports, those of the standard library before those of the package."""
    lines: list[str] = []
    for is_own in (False, True):
        group = []
        for module in sorted(uses):
            if uses[module] and module.startswith(PACKAGE) is is_own:
                group += _import(module, sorted(set(uses[module]), key=_sort_key))
        lines += [*([""] if lines and group else []), *group]
    return lines


def _sort_key(name: str) -> tuple[int, str]:
    """Return the place of a name as isort sorts: constants, classes, functions."""
    kind = name.partition(" ")[0]
    return (0 if kind.isupper() and len(kind) > 1 else 1 if kind[0].isupper() else 2, name)


def _import(module: str, imported: list[str]) -> list[str]:
    renamed = [f"from {module} import {name}" for name in imported if " as " in name]
    others = [name for name in imported if " as " not in name]
    line = f"from {module} import {', '.join(others)}"
    if len(line) > WIDTH:
        return [*renamed, f"from {module} import (", *(f"    {name}," for name in others), ")"]
    return [*renamed, line] if others else renamed


def inputs_module(document: Document) -> str:
    """Return the module with the fields of requests that are options of commands, or in files of `postrider apply`."""
    lines = [
        MARK + '"""The fields of requests: options of commands, and fields of files by their section."""',
        "",
        *imports({f"{PACKAGE}.cli.fields": ["Input"]}),
        "",
        "INPUTS = {",
    ]
    for schema in names.OPTIONS:
        lines += [
            f'    "{schema}": (',
            *(line for field in document.fields(schema) for line in _input(field)),
            "    ),",
        ]
    lines += ["}", "FILE_FIELDS = {"]
    for section in document.fields("ConfigurationInput"):
        entry = reference_of(section.schema.get("items", {}))
        if entry:
            fields = [quoted(field.name) for field in document.fields(entry)]
            lines += enclosed(f'"{section.name}": (', fields, "," * (len(fields) == 1) + "),", indent=4)
    return "\n".join([*lines, "}", ""])


def _tuple_of(values: Sequence[str]) -> str:
    return f"({', '.join(map(quoted, values))}{',' * (len(values) == 1)})"


def _input(field: Field) -> list[str]:
    schema = field.schema
    options = [quoted(field.name), quoted(schema.get("type", "string"))]
    more = [f"choices={_tuple_of(schema['enum'])}"] if "enum" in schema else []
    more += [f"{name}={schema[key]}" for name, key in (("least", "minimum"), ("most", "maximum")) if key in schema]
    lines = enclosed("Input(", [*options, quoted(field.text), *more], "),", indent=8)
    if all(len(line) <= WIDTH for line in lines):
        return lines
    text = [f"            {quoted(f'{line} ')}" for line in textwrap.wrap(field.text, WIDTH - 16)]
    text[-1] = text[-1][:-2] + '",'
    return [
        "        Input(",
        *(f"            {one}," for one in options),
        *text,
        *(f"            {one}," for one in more),
        "        ),",
    ]


def quoted(text: str) -> str:
    return repr(text) if '"' in text and "'" not in text else '"' + text.replace('"', '\\"') + '"'


def error_name(problem: Problem) -> str:
    return names.ERRORS.get(problem.name, problem.name)


def errors_module(document: Document) -> str:
    """Return the module with a class for each code of an error."""
    by_code = {problem.code: error_name(problem) for problem in document.problems.values()}
    own = [one for one in document.problems.values() if error_name(one) not in BASE_ERRORS]
    own.sort(key=lambda one: one.code in names.ERROR_BASES)
    body = [line for problem in own for line in ("", "", *_error(problem, document.own_members(problem)))]
    text = "\n".join(body)
    uses = {
        "datetime": ["datetime"] if "datetime" in text else [],
        "typing": [name for name in ("Any", "Optional") if uses_name(name, text)],
        f"{PACKAGE}.base_errors": list(BASE_ERRORS),
        f"{PACKAGE}.wire": ["parse_datetime", "read"],
    }
    exported = sorted({*BASE_ERRORS, *by_code.values()})
    table = [f'    "{code}": {name},' for code, name in by_code.items()]
    listed = [f'    "{name}",' for name in exported]
    head = '"""Errors of this library. `PostriderError` is the base class, `ApiError` that of errors of the API."""'
    lines = [MARK + head, "", *imports(uses), *body, "", "", "BY_CODE: dict[str, type[ApiError]] = {", *table, "}"]
    return "\n".join([*lines, "# What `from postrider_client import *` has.", "__all__ = [", *listed, "]", ""])


def _error(problem: Problem, own: list[Field]) -> list[str]:
    usual = "ServerError" if problem.status >= 500 else names.ERROR_CLASSES.get(problem.status, "ApiError")
    name = error_name(problem)
    lines = [f"class {name}({ERROR_BASES.get(problem.code, usual)}):", *docstring(prose(problem.text), indent=4)]
    if name.startswith("Test"):
        lines += ["", "    __test__ = False  # not a test of pytest"]
    return [*lines, *(line for member in own for line in _error_member(member))]


def _error_member(member: Field) -> list[str]:
    value = f'self.problem["{member.name}"]' if member.is_required else f'self.problem.get("{member.name}")'
    item = names.error_item(member.schema)
    kind = member.schema.get("type", "string")
    if item:
        annotation, expression = f"list[{item}]", f"[read({item}, one) for one in {value}]"
    elif member.schema.get("format") == "date-time":
        annotation, expression = "datetime", f"parse_datetime({value})"
    elif kind == "array":
        items = member.schema["items"].get("type")
        annotation, expression = f"list[{'str' if items == 'string' else 'Any'}]", f"list({value})"
    else:
        annotation = {"integer": "int", "boolean": "bool"}.get(kind, "str")
        expression = f"{annotation}({value})"
    if not member.is_required:
        annotation, expression = f"Optional[{annotation}]", value
    body = [*docstring(prose(member.text), indent=8), f"        return {expression}"]
    return ["", "    @property", f"    def {argument(member.name)}(self) -> {annotation}:", *body]


@dataclass(frozen=True)
class Argument:
    """An argument of a method: its name, type, default and text. value: what is sent."""

    name: str
    annotation: str
    default: Optional[str]
    text: str
    value: str

    @property
    def declaration(self) -> str:
        return f"{self.name}: {self.annotation}" + (f" = {self.default}" if self.default else "")


@dataclass(frozen=True)
class Reading:
    """How a response is read: its type, and the expression, with {call} or {path}. first: a line before it."""

    annotation: str
    expression: str
    first: str = ""


KEY = Argument(
    "idempotency_key",
    "Optional[str]",
    "None",
    "A repeat with the same key within 24 hours changes nothing and returns the first response.",
    "",
)


class ResourceModule:
    """A module of resources."""

    def __init__(
        self, document: Document, answers: Answers, resources: "tuple[Resource, ...]", *, is_async: bool
    ) -> None:
        self._document = document
        self._answers = answers
        self._async = "Async" if is_async else ""
        self._await = "await " if is_async else ""
        self._def = "async def" if is_async else "def"
        body = [line for resource in resources for line in ("", "", *self._resource(resource))]
        source = "\n".join(body)
        head = f'"""{resources[0].text}"""'
        if len(head) > WIDTH:
            head = "\n".join(docstring(resources[0].text, indent=0))
        self.text = "\n".join([MARK + head, "", *imports(self._uses(source, resources)), *body, ""])

    def _uses(self, source: str, resources: "tuple[Resource, ...]") -> "dict[str, list[str]]":
        """Return the names that a source uses, by module."""
        words = set(re.findall(r"\w+", re.sub(r'"""(?:.|\n)*?"""', "", source)))
        transport = f"{self._async}Transport"
        place = f"{PACKAGE}.aio" if self._async else PACKAGE
        uses: dict[str, list[str]] = {
            "collections.abc": [name for name in ("Mapping", "Sequence") if name in words],
            "datetime": ["datetime"] if "datetime" in words else [],
            "typing": [name for name in ("Any", "Optional", "Union") if name in words],
            f"{PACKAGE}.attachments": ["Attachment"] if "Attachment" in words else [],
            f"{PACKAGE}.batches": ["BatchRecipient"] if "BatchRecipient" in words else [],
            f"{PACKAGE}.other_answers": [name for name in ("Export", "export_of") if name in words],
            f"{place}.listing": [f"{self._async}Listing"] if f"{self._async}Listing" in words else [],
            f"{place}.transport": [transport],
            f"{PACKAGE}.wire": [name for name in WIRE if name in words],
        }
        uses.setdefault(f"{PACKAGE}.transport", []).append("Call")
        for base, module in (resource.base for resource in resources):
            if base:
                uses.setdefault(f"{PACKAGE}.{module}", []).append(base)
        for name, module in self._answers.modules.items():
            local = RENAMED.get(name, name)
            if local in words:
                uses.setdefault(f"{PACKAGE}.{module}", []).append(name if local == name else f"{name} as {local}")
        return uses

    def _resource(self, resource: Resource) -> list[str]:
        base, _ = resource.base
        name = f"{self._async}{resource.name}"
        lines = [f"class {name}({base}):" if base else f"class {name}:", *docstring(resource.text, indent=4), ""]
        lines += [f"    def __init__(self, transport: {self._async}Transport) -> None:"]
        lines += ["        self._transport = transport"]
        lines += [f"        self.{child} = {self._async}{kind}(transport)" for child, kind in resource.children.items()]
        # `list` is last: behind it, the name is no longer that of the type.
        for method in sorted(resource.methods, key=lambda name: name == "list"):
            lines += ["", *self._method(resource, method, resource.methods[method])]
        return lines

    def _method(self, resource: Resource, name: str, method: Method) -> list[str]:
        operation = self._document.operations[method.operation]
        path, ids = self._path(resource, method, operation)
        fields = self._fields(method, operation)
        # Where a field can be removed with None, a field that is not given needs another default.
        is_change = operation.method == "PATCH" and not method.positional and any(one.is_nullable for one in fields)
        sends_null = is_change or any(one.is_required and one.is_nullable for one in fields)
        arguments = [self._argument(one, method, operation, is_change=is_change) for one in fields]
        if method.whole:
            arguments = [Argument(method.whole, "Mapping[str, Any]", None, "", "")]
        elif operation.has_key and not method.fixed and "idempotency_key" not in [one.name for one in arguments]:
            arguments.append(KEY)
        reading = self._reading(operation, method)
        positional = [one for one in arguments if one.name in [method.whole, *map(argument, method.positional)]]
        others = [one for one in arguments if one not in positional]
        declared = ["self", *(f"{one}: str" for one in ids), *(one.declaration for one in positional)]
        declared += ["*", *(one.declaration for one in others)] if others else []
        # A list sends nothing before it is read.
        head = "def" if "{path}" in reading.expression else self._def
        return [
            *enclosed(f"{head} {name}(", declared, f") -> {reading.annotation}:", indent=4),
            *self._docstring(operation, method, arguments),
            *self._body(operation, arguments, sends_null=sends_null),
            *self._returned(reading, self._options(operation, method, arguments, path), path),
        ]

    def _path(self, resource: Resource, method: Method, operation: Operation) -> tuple[str, list[str]]:
        """Return the path as an expression, and the arguments for its ids."""
        segments, ids = [], []
        for segment in operation.path:
            if segment.startswith("{"):
                name = segment[1:-1]
                name = (method.object_id or resource.object_id) if name == "id" else name
                ids.append(name)
                segments.append(name)
            else:
                segments.append(f'"{segment}"')
        return f"[{', '.join(segments)}]", ids

    def _fields(self, method: Method, operation: Operation) -> list[Field]:
        """Return the fields of the body or the query that the method takes, in the order of its arguments."""
        fields = list(self._document.fields(operation.body)) if operation.body else list(operation.query)
        if method.whole:
            return []
        fields = [one for one in fields if method.takes(one.name)]
        order = {name: place for place, name in enumerate(method.first)}
        later = {"idempotencyKey": 2, "page": 3, "limit": 3}
        last = len(order)
        return sorted(
            fields,
            key=lambda one: (
                not (one.is_required or one.name in method.positional),
                order.get(one.name, last),
                later.get(one.name, 1),
            ),
        )

    def _argument(self, field: Field, method: Method, operation: Operation, *, is_change: bool) -> Argument:
        name = argument(field.name)
        converted = CONVERTED.get(f"{operation.body}.{field.name}")
        kind = converted[0] if converted else self._input(field.schema, is_query=not operation.body)
        value = f"{converted[1]}({name})" if converted else self._value(field.schema, name)
        if field.is_required or field.name in method.required:
            return Argument(name, _optional(kind) if field.is_nullable else kind, None, field.text, value)
        if is_change:
            return Argument(name, _optional(kind) if field.is_nullable else kind, "UNCHANGED", field.text, value)
        return Argument(name, _optional(kind), "None", field.text, value)

    def _input(self, schema: Schema, *, is_query: bool) -> str:
        """Return the type of an argument."""
        if referred := reference_of(schema):
            return f"Union[{INPUTS[referred]}, Mapping[str, Any]]" if referred in INPUTS else "Mapping[str, Any]"
        if "anyOf" in schema:
            is_time = any(one.get("format") == "date-time" for one in schema["anyOf"])
            return DATE_OR_TIME if is_time else "Union[str, Sequence[str]]"
        if schema.get("type") == "array":
            return (
                "Union[str, Sequence[str]]" if is_query else f"Sequence[{self._input(schema['items'], is_query=False)}]"
            )
        if schema.get("type") == "object":
            values = schema.get("additionalProperties") or {}
            return f"Mapping[str, {'str' if values.get('type') == 'string' else 'Any'}]"
        return "bool" if schema.get("enum") == ["true", "false"] else scalar(schema)

    def _value(self, schema: Schema, name: str) -> str:
        if schema.get("type") == "array" and reference_of(schema["items"]):
            return f"items_of({name})"
        return f"object_of({name})" if reference_of(schema) else name

    def _docstring(self, operation: Operation, method: Method, arguments: list[Argument]) -> list[str]:
        rows = [f"{one.name}: {prose(one.text)}" for one in arguments if one.text and one.name not in ("page", "limit")]
        errors = [error_name(self._document.problems[code]) for code in operation.errors]
        raised = f"Raises {', '.join(errors)}." if errors else ""
        text = method.text or without_sentences(operation.text, method.hidden)
        more = [prose(text), "\n".join(rows), raised]
        return docstring(f"{method.summary or operation.summary}.", indent=8, more=tuple(filter(None, more)))

    def _reading(self, operation: Operation, method: Method) -> Reading:
        reply, json = (f"{self._await}self._transport.{name}({{call}})" for name in ("reply", "json"))
        if operation.media_type == "text/csv":
            return Reading("Export", f"export_of({reply})")
        if operation.media_type != "application/json":
            return Reading("bytes", f"({reply}).body")
        schema = method.answer or operation.answer
        item = self._document.item_of(schema)
        if item and self._document.is_page(schema):
            kind, listing = self._kind(item), f"{self._async}Listing"
            return Reading(f"{listing}[{kind}]", f"{listing}(self._transport, {{path}}, kind={kind}, query=query)")
        if item:
            kind = self._kind(item)
            return Reading(f"list[{kind}]", f'[read({kind}, one) for one in answer["data"]]', first=f"answer = {json}")
        kind = self._kind(schema)
        return Reading(kind, f"read({kind}, {json})")

    def _kind(self, schema: str) -> str:
        name = self._answers.name(schema)
        return RENAMED.get(name, name)

    def _body(self, operation: Operation, arguments: list[Argument], *, sends_null: bool) -> list[str]:
        """Return the lines that collect what is sent, as `body` or `query`."""
        sent = [f"{one.name}={one.value}" for one in arguments if one.value]
        if not sent:
            return []
        if not operation.body:
            return enclosed("query = body_of(", sent, ")", indent=8)
        function, tail = "changes_of" if sends_null else "body_of", ")" if operation.body_is_required else ") or None"
        return enclosed(f"body = {function}(", sent, tail, indent=8)

    def _options(self, operation: Operation, method: Method, arguments: list[Argument], path: str) -> list[str]:
        """Return the arguments of the call."""
        options = [f'"{operation.method}"', path]
        has_fields = any(one.value for one in arguments)
        if method.whole:
            options.append(f"body={method.whole}")
        elif has_fields and method.fixed:
            fixed = ", ".join(f"{quoted(name)}: {value}" for name, value in method.fixed.items())
            options.append(f"body={{**body, {fixed}}}")
        elif has_fields:
            options.append("body=body" if operation.body else "query=query")
        if operation.has_key and not method.fixed:
            options.append("is_keyed=True")
        if any(one.name == "idempotency_key" and not one.value for one in arguments):
            options.append("idempotency_key=idempotency_key")
        if method.is_repeatable:
            options.append("is_repeatable=True")
        return options

    def _returned(self, reading: Reading, options: list[str], path: str) -> list[str]:
        """Return the lines that send the call and return its response."""
        if "{path}" in reading.expression:
            line = f"return {reading.expression.replace('{path}', path)}"
            if len(line) + 8 <= WIDTH:
                return [f"        {line}"]
            return [f"        path = {path}", f"        return {reading.expression.replace('{path}', 'path')}"]
        lines = [line for line in (reading.first, f"return {reading.expression}") if line]
        call = f"Call({', '.join(options)})"
        direct = [f"        {line.replace('{call}', call)}" for line in lines]
        if max(map(len, direct)) <= WIDTH:
            return direct
        named = [f"        {line.replace('{call}', 'call')}" for line in lines]
        return [*enclosed("call = Call(", options, ")", indent=8), *named]


def _optional(kind: str) -> str:
    if kind.startswith("Union["):
        return f"{kind[:-1]}, None]"
    return f"Optional[{kind}]"
