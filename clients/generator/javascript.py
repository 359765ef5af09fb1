"""The modules of the JavaScript library: types, errors and resources."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator import names
from generator.document import Document, Field, Operation, Problem, Schema, reference_of, without_sentences
from generator.layout import WIDTH, camel_case, paragraph
from generator.names import Method, Resource

MARK = "// Generated from docs/openapi.json by bin/clients.py. Changes are lost.\n"
ANSWERS = {
    **names.ANSWERS,
    "Delivery": "WebhookDeliveryDetail",
    "NewKey": "CreatedKey",
    "Unblocked": "DeletedSuppression",
    "WebhookWithSecret": "CreatedWebhook",
}
INPUTS = {
    "AlertInput": "NewAlert",
    "ApiKeyInput": "NewKey",
    "BatchInput": "Batch",
    "FileInput": "Attachment",
    "InvitationInput": "NewInvitation",
    "LeaseInput": "LeaseRequest",
    "LocaleTextsInput": "LocaleTexts",
    "NewWorkspaceInput": "NewWorkspace",
    "RouteInput": "NewRoute",
    "SendInput": "Send",
    "SimulationInput": "Simulation",
    "StreamInput": "NewStream",
    "TemplateInput": "TemplateFields",
    "WebhookInput": "WebhookFields",
    "WorkspaceChangesInput": "WorkspaceChanges",
}
FILTERS = {
    "getAnalytics": "AnalyticsRange",
    "getBounceCauses": "BounceFilters",
    "getDmarc": "ReportRange",
    "getLatency": "LatencyFilters",
    "getTlsReports": "ReportRange",
    "listDeliveries": "DeliveryFilters",
    "listDmarcSources": "ReportRange",
    "listEmails": "EmailFilters",
    "exportEmails": "EmailFilters",
    "listReceivedEmails": "ReceivedFilters",
    "listRoutes": "RouteFilters",
    "listSuppressions": "SuppressionFilters",
}
# Filters that include the page, as in version 1.0.0.
PAGED_FILTERS = {"DeliveryFilters", "SuppressionFilters"}
CLASSES = {"Analytics": "AnalyticsResource"}
# Types of values with a name: the schema and the member whose values they are.
VALUES = {
    "EmailStatus": ("Email", "status"),
    "EventType": ("Event", "eventType"),
    "SuppressionReason": ("Suppression", "reason"),
    "DomainStatus": ("Domain", "status"),
    "TlsPolicy": ("Domain", "tls"),
    "WebhookKind": ("Delivery", "event"),
    "WebhookFormat": ("Webhook", "format"),
    "Verdict": ("Spf", "result"),
    "ReceivedStatus": ("ReceivedItem", "status"),
    "Plan": ("Workspace", "plan"),
    "KeyScope": ("Key", "scope"),
    "MemberRole": ("Member", "role"),
}
# Members of a request that differ from the API: `to` is missing in an answer only.
REQUIRED = {"Send": ("to",)}
HIDDEN = {"Send": ("dryRun",)}
# Types that the API describes less exactly.
EXACT = {
    "Checked.valid": "true",
    "Deleted.deleted": "true",
    "DeletedSuppression.deleted": "true",
    "EmailFilters.event": "string | string[]",
    "ReceivedEmail.headers": "[string, string][]",
    "RemovedMember.deleted": "true",
    "UnblockedSender.deleted": "true",
}
TYPES_BY_HAND = """
export type Data = Record<string, unknown>;
/** RFC 3339, such as `2026-11-21T06:20:00.000Z`. */
export type Timestamp = string;
export type FeedEventType = EventType;

/** An answer to a received email, whose sender gets it if `to` is absent. */
export interface Answer extends Omit<Send, "to"> {
  to?: string | string[];
  inReplyToId: string;
}

/** The fields of a stream that can be changed. */
export type StreamFields = Omit<NewStream, "id" | "kind">;

/** The fields of an alert that can be changed. */
export type AlertFields = Omit<NewAlert, "metric" | "stream">;

export interface SuppressOptions extends RequestOptions {
  /** The only stream to block; without it, all of the workspace. */
  stream?: string;
}

export interface Export {
  csv: string;
  /** Whether more than 10,000 emails match. */
  truncated: boolean;
}

/** The body posted to a webhook: one event of one recipient. */
export interface WebhookEvent {
  id: string;
  type: string;
  event: WebhookKind;
  createdAt: Timestamp;
  data: {
    emailId: string;
    to: string;
    from: string;
    subject: string;
    status: EmailStatus;
    tags: string[];
    metadata: Data | null;
    [member: string]: unknown;
  };
}

/**
 * The body posted to a webhook for a received email: `verifyWebhook<ReceivedEvent>(…)`. Text and HTML are cut at
 * 256 KiB each, headers at 64 KiB: `truncated` names what is cut.
 */
export interface ReceivedEvent {
  id: string;
  type: string;
  event: "received";
  createdAt: Timestamp;
  data: ReceivedEmail;
}
"""
ERRORS = {**names.ERRORS, "RateLimitExceeded": "RateLimit"}
BASE_ERRORS = {
    "AuthenticationError", "BadRequestError", "ConflictError", "ForbiddenError", "NotFoundError",
    "PayloadTooLargeError", "ServerError", "UnprocessableError",
}  # fmt: skip


def modules(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the path of each module in src/, and its text."""
    types = Types(document)
    yield "types.ts", types.text
    yield "errors.ts", errors_module(document)
    yield "error-codes.ts", codes_module(document)
    for name, resources in names.MODULES.items():
        yield f"resources/{name}.ts", ResourceModule(document, types, resources).text


def comment(text: str, *, indent: int) -> list[str]:
    """Return a comment of JSDoc."""
    start = " " * indent
    if not text:
        return []
    if "\n" not in text and len(start) + len(text) + 7 <= WIDTH:
        return [f"{start}/** {text} */"]
    rows = [
        line for row in text.split("\n") for line in (paragraph(row, indent=indent, prefix=" * ") or [f"{start} *"])
    ]
    return [f"{start}/**", *rows, f"{start} */"]


class Types:
    """The types of requests and responses."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._values = {name: self._values_of(*place) for name, place in VALUES.items()}
        body = [line for name, values in self._values.items() for line in (*_union(name, values), "")]
        self._texts: dict[str, list[str]] = {}
        for operation in document.operations.values():
            self._request(operation)
            for schema in operation.answers.values():
                self._add(schema)
        body += [line for text in self._texts.values() for line in (*text, "")]
        head = "/** Types of requests and responses. Responses may gain members. */"
        uses = ['import type { Attachment } from "./attachments.js";', 'import type { Paging } from "./listing.js";']
        uses.append('import type { RequestOptions } from "./transport.js";')
        self.text = "\n".join([MARK + head, *uses, TYPES_BY_HAND, *body])

    def answer(self, schema: str) -> str:
        return ANSWERS.get(schema, schema)

    def input(self, schema: str) -> str:
        return INPUTS.get(schema, schema)

    def _values_of(self, schema: str, member: str) -> list[str]:
        (field,) = [one for one in self._document.fields(schema) if one.name == member]
        return list(field.schema["enum"])

    def _request(self, operation: Operation) -> None:
        name = FILTERS.get(operation.id)
        if name and name not in self._texts:
            others = [one for one in operation.query if one.name not in ("page", "limit")]
            parent = " extends Paging" if name in PAGED_FILTERS else ""
            head = f"export interface {name}{parent} {{"
            self._texts[name] = [head, *self._members(others, is_input=True, owner=name), "}"]
        if operation.body:
            self._add({"$ref": f"#/components/schemas/{operation.body}"}, is_input=True)

    def _add(self, schema: Schema, *, is_input: bool = False) -> None:
        """Add the type of a schema, after those that it refers to."""
        for one in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
            self._add(one, is_input=is_input)
        if "items" in schema:
            self._add(schema["items"], is_input=is_input)
        if isinstance(schema.get("additionalProperties"), dict):
            self._add(schema["additionalProperties"], is_input=is_input)
        referred = reference_of(schema)
        if referred is None or referred in ("FileInput", "ConfigurationInput"):
            return
        if wrapped := self._document.wrapped(referred):
            self._add(wrapped, is_input=is_input)
            return
        name = self.input(referred) if is_input else self.answer(referred)
        if name in self._texts:
            return
        same = [one for one in self._document.answer_schemas() if self.answer(one) == name]
        fields = self._document.merged_fields([referred] if is_input else same)
        self._texts[name] = []
        for field in fields:
            self._add(field.schema, is_input=is_input)
        del self._texts[name]
        hidden = HIDDEN.get(name, ())
        members = self._members([one for one in fields if one.name not in hidden], is_input=is_input, owner=name)
        more = ["  [member: string]: unknown;"] if name == "Warning" else []
        text = comment(names.ANSWER_TEXTS.get(name, ""), indent=0)
        self._texts[name] = [*text, f"export interface {name} {{", *members, *more, "}"]

    def _members(self, fields: "list[Field]", *, is_input: bool, owner: str = "") -> list[str]:
        lines = []
        for field in fields:
            mark = "" if field.is_required or field.name in REQUIRED.get(owner, ()) else "?"
            kind = EXACT.get(f"{owner}.{field.name}") or self.kind(field.schema, is_input=is_input)
            if owner in FILTERS.values() and kind.endswith("[]") and f"{owner}.{field.name}" not in EXACT:
                kind = f"{kind[:-2]} | {kind}"
            kind += " | null" if field.is_nullable else ""
            lines += [*comment(field.text, indent=2), f"  {field.name}{mark}: {kind};"]
        return lines

    def kind(self, schema: Schema, *, is_input: bool) -> str:
        """Return the type of a value."""
        if referred := reference_of(schema):
            return self.input(referred) if is_input else self.answer(referred)
        if "anyOf" in schema:
            kinds = [self.kind(one, is_input=is_input) for one in schema["anyOf"] if one.get("const") != ""]
            return " | ".join(dict.fromkeys(" | ".join(kinds).split(" | ")))
        if "enum" in schema:
            return self._enumeration(schema["enum"])
        if schema.get("type") == "array":
            item = self.kind(schema["items"], is_input=is_input)
            return f"({item})[]" if " " in item else f"{item}[]"
        if schema.get("type") == "object":
            return self._object(schema, is_input=is_input)
        return scalar(schema, is_input=is_input)

    def _object(self, schema: Schema, *, is_input: bool) -> str:
        values = schema.get("additionalProperties") or {}
        if "properties" in schema:
            members = [
                f"{name}{'' if name in schema.get('required', ()) else '?'}: string" for name in schema["properties"]
            ]
            return f"{{ {'; '.join(members)}; [member: string]: unknown }}"
        return f"Record<string, {self.kind(values, is_input=is_input)}>" if values else "Data"

    def _enumeration(self, values: "list[str]") -> str:
        if values == ["true", "false"]:
            return "boolean"
        for name, known in self._values.items():
            if set(known) == set(values):
                return name
            if {*known, *(f"email.{one}" for one in known)} == set(values):
                return f"{name} | `email.${{{name}}}`"
        return " | ".join(map(quoted, values))


def scalar(schema: Schema, *, is_input: bool) -> str:
    """Return the type of a text, number, boolean or time."""
    if schema.get("format") in ("date-time", "date") and is_input:
        return "Date | string"
    if schema.get("format") == "date-time":
        return "Timestamp"
    return {"integer": "number", "number": "number", "boolean": "boolean"}.get(schema.get("type", "string"), "string")


def _union(name: str, values: "list[str]") -> list[str]:
    line = f"export type {name} = {' | '.join(map(quoted, values))};"
    if len(line) <= WIDTH:
        return [line]
    return [f"export type {name} =", *(f"  | {quoted(value)}" for value in values[:-1]), f"  | {quoted(values[-1])};"]


def quoted(value: str) -> str:
    return f'"{value}"'


def error_name(problem: Problem) -> str:
    return _with_suffix(ERRORS.get(problem.name, problem.name))


def errors_module(document: Document) -> str:
    own = [one for one in document.problems.values() if error_name(one) not in BASE_ERRORS]
    own.sort(key=lambda one: one.code in names.ERROR_BASES)
    body = [line for problem in own for line in ("", *_error(problem, document.own_members(problem)))]
    text = "\n".join(body)
    used = [name for name in ("ApiError", *sorted(BASE_ERRORS)) if f"extends {name} " in text]
    items = [f"type {name}" for name in sorted(set(names.ERROR_ITEMS.values()))]
    lines = [
        MARK
        + "/** Errors of this library. `PostriderError` is the base class, `ApiError` that of errors of the API. */",
        "import {",
        *(f"  {name}," for name in [*used, *items]),
        '} from "./base-errors.js";',
        "",
        'export * from "./base-errors.js";',
        *body,
    ]
    return "\n".join([*lines, ""])


def codes_module(document: Document) -> str:
    classes = {code: error_name(problem) for code, problem in document.problems.items()}
    lines = [
        MARK + 'import type { ApiError, Problem } from "./base-errors.js";',
        "import {",
        *(f"  {name}," for name in sorted(classes.values())),
        '} from "./errors.js";',
        "",
        "export type ErrorClass = new (problem: Problem, headers: Headers) => ApiError;",
        "",
        "export const BY_CODE: Record<string, ErrorClass> = {",
        *(f"  {code}: {name}," for code, name in classes.items()),
        "};",
    ]
    return "\n".join([*lines, ""])


def _error(problem: Problem, own: list[Field]) -> list[str]:
    if problem.code in names.ERROR_BASES:
        name = names.ERROR_BASES[problem.code]
        base = ERRORS.get(name, name)
    else:
        base = "ServerError" if problem.status >= 500 else names.ERROR_CLASSES.get(problem.status, "ApiError")
    head = f"export class {error_name(problem)} extends {_with_suffix(base)} {{"
    lines = comment(problem.text, indent=0)
    if not own:
        return [*lines, f"{head}}}"]
    members = [
        line
        for member in own
        for line in (*comment(member.text, indent=2), f"  readonly {member.name} = {_error_value(member)};")
    ]
    return [*lines, head, *members, "}"]


def _with_suffix(name: str) -> str:
    return name if name.endswith("Error") else f"{name}Error"


def _error_value(member: Field) -> str:
    value = f'this.problem["{member.name}"]'
    if member.schema.get("format") == "date-time":
        return f"new Date({value} as string)"
    item = names.error_item(member.schema)
    kind = member.schema.get("type", "string")
    if item:
        annotation = f"{item}[]"
    elif kind == "array":
        annotation = "string[]" if member.schema["items"].get("type") == "string" else "unknown[]"
    else:
        annotation = {"integer": "number", "boolean": "boolean"}.get(kind, "string")
    return f"{value} as {annotation}{'' if member.is_required else ' | undefined'}"


@dataclass(frozen=True)
class Sent:
    """What a method sends beside the path.

    declared: arguments.
    before: lines that prepare it.
    members: members of the call.
    in_options: fields that are given in the options.
    """

    declared: list[str]
    before: list[str]
    members: list[str]
    in_options: Sequence[Field] = ()


class ResourceModule:
    """A module of resources."""

    def __init__(self, document: Document, types: Types, resources: "tuple[Resource, ...]") -> None:
        self._document = document
        self._types = types
        body = [line for resource in resources for line in ("", *self._resource(resource))]
        self.text = "\n".join([MARK.rstrip("\n"), *self._imports("\n".join(body), resources), *body, ""])

    def _imports(self, source: str, resources: "tuple[Resource, ...]") -> list[str]:
        words = set(re.findall(r"\w+", re.sub(r"/\*\*(?:.|\n)*?\*/", "", source)))
        exported = set(re.findall(r"^export (?:interface|type) (\w+)", self._types.text, re.MULTILINE))
        own = {CLASSES.get(resource.name, resource.name) for resource in resources}
        wanted = [
            ("../attachments.js", "import", [name for name in ("withEncodedAttachments",) if name in words]),
            ("../listing.js", "import type", [name for name in ("List", "Paging") if name in words]),
            (
                "../transport.js",
                "import type",
                [name for name in ("IdempotentOptions", "Query", "RequestOptions", "Transport") if name in words],
            ),
            ("../types.js", "import type", sorted((words & exported) - own)),
            ("../webhook-signatures.js", "import", ["WebhookVerification"] if "WebhookVerification" in words else []),
        ]
        lines = []
        for module, keyword, imported in wanted:
            line = f'{keyword} {{ {", ".join(imported)} }} from "{module}";'
            if imported and len(line) <= WIDTH:
                lines.append(line)
            elif imported:
                lines += [f"{keyword} {{", *(f"  {name}," for name in imported), f'}} from "{module}";']
        return lines

    def _resource(self, resource: Resource) -> list[str]:
        name = CLASSES.get(resource.name, resource.name)
        base = f" extends {resource.base[0]}" if resource.base[0] else ""
        lines = [*comment(resource.text, indent=0), f"export class {name}{base} {{"]
        lines += [f"  readonly {child}: {kind};" for child, kind in resource.children.items()]
        lines += ["  readonly #transport: Transport;", "", "  constructor(transport: Transport) {"]
        lines += ["    super();"] if base else []
        lines += ["    this.#transport = transport;"]
        lines += [f"    this.{child} = new {kind}(transport);" for child, kind in resource.children.items()]
        lines.append("  }")
        for method, described in resource.methods.items():
            lines += ["", *self._method(resource, method, described)]
        return [*lines, "}"]

    def _method(self, resource: Resource, name: str, method: Method) -> list[str]:
        operation = self._document.operations[method.operation]
        segments, ids = self._path(resource, method, operation)
        reading, answer = self._reading(operation, method)
        sent = self._sent(resource, name, method, operation)
        path = f"[{', '.join(segments)}]"
        declared = [*(f"{one}: string" for one in ids), *sent.declared, self._declared_options(operation, method, sent)]
        promise = answer if reading == "list" else f"Promise<{answer}>"
        is_async = any("await" in line for line in sent.before) or reading in ("data", "csv")
        lines = [
            *self._comment(operation, method),
            *_signature(f"{'async ' if is_async else ''}{camel_case(name)}", declared, promise),
            *(f"    {line}" for line in sent.before),
        ]
        if reading == "list":
            argument = sent.declared[0].split(":")[0]
            return [*lines, f"    return this.#transport.list({path}, {argument}, options);", "  }"]
        members = [f'method: "{operation.method}"', f"path: {path}", *sent.members]
        members += ["isKeyed: true"] if operation.has_key and not method.fixed else []
        members += ["isRepeatable: true"] if method.is_repeatable else []
        members.append("options: others" if sent.in_options else "options")
        return [*lines, *_call(members, reading, answer), "  }"]

    def _sent(self, resource: Resource, name: str, method: Method, operation: Operation) -> Sent:
        """Return what is sent beside the path."""
        fields = self._fields(method, operation)
        member = "body" if operation.body else "query"
        if method.whole:
            return Sent([f"{method.whole}: Data"], [], [f"body: {method.whole}"])
        if method.positional:
            positional = [one for one in fields if one.name in method.positional]
            others = [one for one in fields if one not in positional]
            taken = ", ".join(one.name for one in others)
            before = [f"const {{ {taken}, ...others }} = options;"] if others else []
            members = ", ".join(one.name for one in [*positional, *others])
            declared = [self._positional(one, method, is_query=not operation.body) for one in positional]
            return Sent(declared, before, [f"{member}: {{ {members} }}"], others)
        if operation.query:
            is_list = self._document.is_page(operation.answer)
            return Sent([self._query(operation, is_list=is_list)], [], ["query: { ...filters }"])
        if all(one.name == "idempotencyKey" for one in fields):
            return Sent([], [], [])
        return self._sent_body(resource, name, method, operation)

    def _sent_body(self, resource: Resource, name: str, method: Method, operation: Operation) -> Sent:
        argument = "changes" if operation.method == "PATCH" else resource.noun if name in CREATING else "body"
        kind = self._types.input(operation.body or "")
        kind = f"{kind} | Answer" if kind == "Send" else kind
        declared = [f"{argument}: {kind}{'' if operation.body_is_required else ' = {}'}"]
        if "FileInput" not in str(self._document.schemas[operation.body or ""]):
            return Sent(declared, [], ["body" if argument == "body" else f"body: {argument}"])
        encoded = f"await withEncodedAttachments({argument})"
        fixed = "".join(f", {key}: {str(value).lower()}" for key, value in method.fixed.items())
        return Sent(declared, [f"const body = {f'{{ ...({encoded}){fixed} }}' if fixed else encoded};"], ["body"])

    def _declared_options(self, operation: Operation, method: Method, sent: Sent) -> str:
        kind = "IdempotentOptions" if operation.has_key and not method.fixed else "RequestOptions"
        if not sent.in_options:
            return f"options?: {kind}"
        members = "; ".join(f"{one.name}?: {self._types.kind(one.schema, is_input=True)}" for one in sent.in_options)
        return f"options: {kind} & {{ {members} }} = {{}}"

    def _path(self, resource: Resource, method: Method, operation: Operation) -> tuple[list[str], list[str]]:
        """Return the segments of the path as expressions, and the arguments for its ids: `id` for the only one."""
        object_id = method.object_id or resource.object_id
        given = [one[1:-1] for one in operation.path if one.startswith("{")]
        ids = {one: camel_case(object_id if one == "id" else one) for one in given}
        if given == ["id"]:
            ids["id"] = "id"
        segments = [ids[one[1:-1]] if one.startswith("{") else f'"{one}"' for one in operation.path]
        return segments, list(ids.values())

    def _fields(self, method: Method, operation: Operation) -> list[Field]:
        fields = list(self._document.fields(operation.body)) if operation.body else list(operation.query)
        return [one for one in fields if method.takes(one.name)]

    def _positional(self, field: Field, method: Method, *, is_query: bool) -> str:
        kind = self._types.kind(field.schema, is_input=True) + (" | null" if field.is_nullable and not is_query else "")
        if field.is_required or field.name in method.required:
            return f"{field.name}: {kind}"
        if field.schema.get("type") == "object":
            return f"{field.name}: Data = {{}}"
        return f"{field.name}?: {kind}"

    def _query(self, operation: Operation, *, is_list: bool) -> str:
        if not is_list:
            return f"filters: {FILTERS[operation.id]} = {{}}"
        filters = FILTERS.get(operation.id)
        if not filters:
            return "paging: Paging = {}"
        return f"filters: {filters} = {{}}" if filters in PAGED_FILTERS else f"filters: {filters} & Paging = {{}}"

    def _reading(self, operation: Operation, method: Method) -> tuple[str, str]:
        """Return how the response is read (json, data, list, bytes or csv), and its type."""
        if operation.media_type == "text/csv":
            return "csv", "Export"
        if operation.media_type != "application/json":
            return "bytes", "Uint8Array"
        schema = method.answer or operation.answer
        item = self._document.item_of(schema)
        if item and self._document.is_page(schema):
            return "list", f"List<{self._types.answer(item)}>"
        return ("data", f"{self._types.answer(item)}[]") if item else ("json", self._types.answer(schema))

    def _comment(self, operation: Operation, method: Method) -> list[str]:
        text = method.text or without_sentences(operation.text, method.hidden)
        errors = [error_name(self._document.problems[code]) for code in operation.errors]
        fields = [one for one in self._fields(method, operation) if one.name in method.positional and one.text]
        parts = [
            f"{method.summary or operation.summary}.",
            text,
            f"Throws {', '.join(errors)}." if errors else "",
            "\n".join(f"@param {one.name} {one.text}" for one in fields),
        ]
        return comment("\n\n".join(filter(None, parts)), indent=2)


# Methods whose argument has the name of the object.
CREATING = {"create", "send", "check", "simulate"}


def _signature(head: str, declared: "list[str]", promise: str) -> list[str]:
    line = f"  {head}({', '.join(declared)}): {promise} {{"
    if len(line) <= WIDTH:
        return [line]
    return [f"  {head}(", *(f"    {one}," for one in declared), f"  ): {promise} {{"]


def _call(members: "list[str]", reading: str, answer: str) -> list[str]:
    given = f"{{ {', '.join(members)} }}"
    if reading in ("json", "bytes"):
        line = f"    return this.#transport.{reading}({given});"
        if len(line) <= WIDTH:
            return [line]
        return [f"    return this.#transport.{reading}({{", *(f"      {one}," for one in members), "    });"]
    line = f"    const call = {given} as const;"
    lines = (
        [line]
        if len(line) <= WIDTH
        else ["    const call = {", *(f"      {one}," for one in members), "    } as const;"]
    )
    if reading == "data":
        return [*lines, f"    return (await this.#transport.json<{{ data: {answer} }}>(call)).data;"]
    return [
        *lines,
        "    const { text, headers } = await this.#transport.text(call);",
        '    return { csv: text, truncated: headers.get("x-export-truncated") === "true" };',
    ]
