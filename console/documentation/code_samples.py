"""Code samples of API requests, one renderer for each language: for documentation and dashboard."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

LINE_LENGTH = 80
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class ExampleRequest:
    """An example of a request.

    body: a JSON value; None without a body.
    has_key: whether the operation needs an API key.
    key: the API key; empty if the sample reads it from the environment, as those in PHP and Ruby always do.
    is_stream: whether the response never ends.
    """

    method: str
    url: str
    body: Any = None
    has_key: bool = True
    key: str = ""
    is_stream: bool = False


@dataclass(frozen=True)
class CodeSample:
    """A sample.

    label: the heading above the sample.
    language: the language, as in a fence of Markdown.
    """

    label: str
    text: str
    language: str = ""


@dataclass(frozen=True)
class LiteralStyle:
    """How a language writes JSON values.

    key: returns a name with its separator.
    words: the words for null, true and false; those of JSON by default.
    """

    key: Callable[[str], str]
    quote: Callable[[str], str]
    brackets: str = "{}"
    step: int = 2
    words: Mapping[str, str] = field(default_factory=dict)


def quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _bare_key(name: str) -> str:
    return f"{name}: " if IDENTIFIER.fullmatch(name) else f"{quote(name)}: "


def _quoted_key(name: str) -> str:
    return f"{quote(name)}: "


JSON = LiteralStyle(_quoted_key, quote)
JAVASCRIPT = LiteralStyle(_bare_key, quote)
PYTHON = LiteralStyle(_quoted_key, quote, step=4, words={"null": "None", "true": "True", "false": "False"})
# Both languages insert variables into double-quoted strings.
PHP = LiteralStyle(lambda name: f"{quote(name)} => ", lambda text: quote(text).replace("$", "\\$"), "[]", step=4)
RUBY = LiteralStyle(_bare_key, lambda text: quote(text).replace("#", "\\#"), words={"null": "nil"})


PHP_STREAM = "while (($line = fgets($stream)) !== false) echo $line;"
RUBY_CALL = [
    "response = Net::HTTP.start(uri.hostname, uri.port, options) { |http| http.request(request) }",
    "puts response.body",
]
RUBY_STREAM = [
    "Net::HTTP.start(uri.hostname, uri.port, options) do |http|",
    "  http.request(request) { |response| response.read_body { |chunk| print chunk } }",
    "end",
]

GO_KEY = '"Bearer "+os.Getenv("POSTRIDER_API_KEY")'
GO = """package main

import (
\t{packages}
)

func main() {{
\t{body}request, err := http.NewRequest({arguments})
\tif err != nil {{
\t\tlog.Fatal(err)
\t}}{headers}
\tresponse, err := http.DefaultClient.Do(request)
\tif err != nil {{
\t\tlog.Fatal(err)
\t}}
\tdefer response.Body.Close()
\tio.Copy(os.Stdout, response.Body)
}}"""


def literal(value: Any, style: LiteralStyle, *, indent: int = 0) -> str:
    """Return a JSON value in the syntax of a language, on several lines if it is long."""
    if isinstance(value, str):
        return style.quote(value)
    if not isinstance(value, dict | list) or not value:
        text = json.dumps(value)
        return style.brackets if text == "{}" else style.words.get(text, text)
    start, end = tuple(style.brackets if isinstance(value, dict) else "[]")
    parts = _parts(value, style, indent=indent + style.step)
    space = " " if start == "{" and style is not PYTHON and style is not JSON else ""
    line = f"{start}{space}{', '.join(parts)}{space}{end}"
    if "\n" not in line and len(line) + indent <= LINE_LENGTH:
        return line
    margin, step = " " * indent, " " * style.step
    return "\n".join(
        [start, *(f"{margin}{step}{part}," for part in parts[:-1]), f"{margin}{step}{parts[-1]}", margin + end]
    )


def _parts(value: Any, style: LiteralStyle, *, indent: int) -> list[str]:
    if isinstance(value, dict):
        return [style.key(name) + literal(member, style, indent=indent) for name, member in value.items()]
    return [literal(item, style, indent=indent) for item in value]


def curl(request: ExampleRequest) -> str:
    options = ""
    if request.is_stream:
        options = "-N "
    elif request.method != ("GET" if request.body is None else "POST"):
        options = f"-X {request.method} "
    parts = [f"curl {options}{shlex.quote(request.url)}"]
    if request.has_key:
        parts.append(f'-H "Authorization: Bearer {request.key or "$POSTRIDER_API_KEY"}"')
    if request.body is not None:
        quoted = literal(request.body, JSON, indent=2).replace("'", r"'\''")
        parts += ['-H "Content-Type: application/json"', f"-d '{quoted}'"]
    return " \\\n  ".join(parts)


def javascript(request: ExampleRequest) -> str:
    options = [] if request.method == "GET" else [f'method: "{request.method}"']
    key = quote(f"Bearer {request.key}") if request.key else "`Bearer ${process.env.POSTRIDER_API_KEY}`"
    headers = [f"Authorization: {key}"] if request.has_key else []
    if request.body is not None:
        headers.append('"Content-Type": "application/json"')
    if headers:
        options.append(f"headers: {{ {', '.join(headers)} }}")
    if request.body is not None:
        options.append(f"body: JSON.stringify({literal(request.body, JAVASCRIPT, indent=2)})")
    arguments = "".join(f"\n  {option}," for option in options)
    call = f'fetch("{request.url}", {{{arguments}\n}})' if options else f'fetch("{request.url}")'
    show = "console.log(response.status, await response.text());"
    if request.is_stream:
        show = "for await (const chunk of response.body) process.stdout.write(chunk);"
    return f"const response = await {call};\n{show}"


def python(request: ExampleRequest) -> str:
    arguments = [f'"{request.url}"']
    imports = "import requests\n"
    if request.key:
        arguments.append(f'headers={{"Authorization": "Bearer {request.key}"}}')
    elif request.has_key:
        imports = f"import os\n\n{imports}"
        arguments.append('headers={"Authorization": f"Bearer {os.environ[\'POSTRIDER_API_KEY\']}"}')
    if request.body is not None:
        arguments.append(f"json={literal(request.body, PYTHON, indent=4)}")
    show = "print(response.status_code, response.text)"
    if request.is_stream:
        arguments.append("stream=True")
        show = "for line in response.iter_lines():\n    print(line.decode(), flush=True)"
    call = "".join(f"\n    {argument}," for argument in arguments)
    method = request.method.lower()
    return f"{imports}\nresponse = requests.{method}({call}\n)\n{show}"


def php(request: ExampleRequest) -> str:
    headers = ['"Authorization: Bearer " . getenv("POSTRIDER_API_KEY")'] if request.has_key else []
    if request.body is not None:
        headers.append('"Content-Type: application/json"')
    options = [f'"method" => "{request.method}"']
    if headers:
        options.append(f'"header" => [{", ".join(headers)}]')
    if request.body is not None:
        options.append(f'"content" => json_encode({literal(request.body, PHP, indent=4)})')
    options.append('"ignore_errors" => true')
    lines = "".join(f"\n    {option}," for option in options)
    context = f'$context = stream_context_create(["http" => [{lines}\n]]);'
    show = f'echo file_get_contents("{request.url}", false, $context);'
    if request.is_stream:
        show = f'$stream = fopen("{request.url}", "r", false, $context);\n{PHP_STREAM}'
    return f"<?php\n{context}\n{show}"


def ruby(request: ExampleRequest) -> str:
    lines = [
        'require "json"',
        'require "net/http"',
        "",
        f'uri = URI("{request.url}")',
        f"request = Net::HTTP::{request.method.capitalize()}.new(uri)",
    ]
    if request.has_key:
        lines.append('request["Authorization"] = "Bearer #{ENV["POSTRIDER_API_KEY"]}"')
    if request.body is not None:
        lines.append('request["Content-Type"] = "application/json"')
        lines.append(f"request.body = JSON.generate({literal(request.body, RUBY)})")
    lines.append('options = { use_ssl: uri.scheme == "https" }')
    return "\n".join(lines + (RUBY_STREAM if request.is_stream else RUBY_CALL))


def go(request: ExampleRequest) -> str:
    """Return a program, which also shows a stream as it arrives."""
    body, packages, headers = "", ["io", "log", "net/http", "os"], {}
    if request.has_key:
        headers["Authorization"] = quote(f"Bearer {request.key}") if request.key else GO_KEY
    if request.body is not None:
        text = literal(request.body, JSON)
        # A raw string contains no backtick.
        body = f"body := strings.NewReader({quote(text) if '`' in text else f'`{text}`'})\n\t"
        packages.append("strings")
        headers["Content-Type"] = '"application/json"'
    return GO.format(
        packages="\n\t".join(map(quote, packages)),
        body=body,
        arguments=f'"{request.method}", "{request.url}", {"body" if body else "nil"}',
        headers="".join(f'\n\trequest.Header.Set("{name}", {value})' for name, value in headers.items()),
    )


# In the order of the tabs: label, language of the code block, renderer.
RENDERERS: tuple[tuple[str, str, Callable[[ExampleRequest], str]], ...] = (
    ("curl", "sh", curl),
    ("JavaScript", "javascript", javascript),
    ("Python", "python", python),
    ("PHP", "php", php),
    ("Ruby", "ruby", ruby),
    ("Go", "go", go),
)


def code_samples(request: ExampleRequest) -> tuple[CodeSample, ...]:
    return tuple(CodeSample(label, render(request), language) for label, language, render in RENDERERS)
