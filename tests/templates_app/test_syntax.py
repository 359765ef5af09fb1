import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from templates_app.language.nodes import Block
from templates_app.language.syntax import TemplateSyntaxError, compile_template
from tests.rows import each

MEBIBYTE = 1024 * 1024
FRAGMENTS = [
    *("{", "}", "{{", "}}", "{{{", "}}}", "\\", "\\{{", '"', "|", " ", "\n", "a", "a.b", ".", "0", "-", "é", "日本"),
    *(
        "this",
        "@index",
        "@",
        "#if ",
        "#unless ",
        "#each ",
        "#foo ",
        "/if",
        "/unless",
        "/each",
        "else",
        "else if ",
        "../",
        "@root.",
        "#with ",
        "#equals ",
        "/with",
        "/equals",
    ),
    *("!", "!--", "--", "{{a}}", '{{a|"b"}}', "{{#if a}}", "{{else}}", "{{/if}}", "{{#each a}}", "{{/each}}"),
]
SOURCES = st.text() | st.lists(st.sampled_from(FRAGMENTS)).map("".join)


@each(
    ("source", "line", "column", "words"),
    [
        ("{{}}", 1, 1, "name is missing"),
        ("a {{ }}", 1, 3, "name is missing"),
        ("{{{}}}", 1, 1, "name is missing"),
        ("{{{{a}}}}", 1, 1, "name is missing"),
        ("{{a", 1, 1, "}} is missing"),
        ("{{a}", 1, 1, "}} is missing"),
        ("{{", 1, 1, "}} is missing"),
        ("one\ntwo {{a and {{b}}", 2, 5, "}} is missing"),
        ("{{{x}}", 1, 1, "not closed with }}}"),
        ("{{{x}} {{{y}}}", 1, 1, "not closed with }}}"),
        ("é日\r\n\n 😀{{!x", 3, 3, "}} is missing"),
        ("{{!-- a }} b", 1, 1, "--}}"),
        ('{{a|"b}}', 1, 1, "second quote"),
        ('{{a|"b\\n"}}', 1, 1, "backslash"),
        ('{{a|"b" c}}', 1, 1, "one name"),
        ("{{a|'b}}", 1, 1, "second quote"),
        ("{{a|upper}}", 1, 1, "must be in quotes"),
        ('{{|"b"}}', 1, 1, "name is missing"),
        ("{{foo bar}}", 1, 1, "helpers"),
        ("{{foo(bar)}}", 1, 1, "is not a name"),
        ("{{7*7}}", 1, 1, "is not a name"),
        ("{{a..b}}", 1, 1, "is not a name"),
        ("{{a.}}", 1, 1, "is not a name"),
        ("{{.}}", 1, 1, "is not a name"),
        ("{{a[0]}}", 1, 1, "items.0"),
        ("{{a.-1}}", 1, 1, "is not a name"),
        ("{{1a}}", 1, 1, "is not a name"),
        ("{{../}}{{..}}{{../.}}", 1, 14, "is not a name"),
        ("{{" + "../" * 21 + "a}}", 1, 1, "is not a name"),
        ("{{#each a}}{{../@index}}{{/each}}", 1, 12, "is not a name"),
        ("{{@root.@index}}", 1, 1, "is not a name"),
        ("{{@root../a}}", 1, 1, "is not a name"),
        ("{{a.²}}", 1, 1, "is not a name"),
        ("{{{#if a}}}", 1, 1, "is not a name"),
        ("{{" + "a" * 256 + "}}", 1, 1, "255"),
        ("{{" + "a" + ".a" * 20 + "}}", 1, 1, "20"),
        ("{{@index}}", 1, 1, "inside {{#each}}"),
        ("{{#each a}}{{else}}{{@index}}{{/each}}", 1, 20, "inside {{#each}}"),
        ("{{#each a}}{{@rooted}}{{/each}}", 1, 12, "@index"),
        ("{{#with a}}{{@index}}{{/with}}", 1, 12, "inside {{#each}}"),
        ("{{#equals a}}{{/equals}}", 1, 1, "name is missing"),
        ('{{#equals a "b" c}}{{/equals}}', 1, 1, "two values"),
        ('{{#equals a "b}}{{/equals}}', 1, 1, "second quote"),
        ("{{#equals (length a) 2}}{{/equals}}", 1, 1, "is not a name"),
        ("{{#equals a 'b}}{{/equals}}", 1, 1, "second quote"),
        ("{{#equals a 'b\\\"'}}{{/equals}}", 1, 1, "backslash"),
        ("{{#if a}}{{else with b}}{{/if}}", 1, 10, "{{else if name}}"),
        ("{{#if a}}{{else if b c}}{{/if}}", 1, 10, "takes one name"),
        ("{{#if a}}{{else if b}}{{/unless}}", 1, 23, "{{#if a}} is still open"),
        ("{{#if a}}{{else if b}}{{else}}{{else}}{{/if}}", 1, 31, "already has an {{else}}"),
        ("{{#if a}}{{else if b}}", 1, 10, "is not closed"),
        ("{{#each a}}{{@index.a}}{{/each}}", 1, 12, "@index"),
        ("{{> 7}}", 1, 1, "id or alias"),
        ("{{&x}}", 1, 1, "{{{name}}}"),
        ("{{=<% %>=}}", 1, 1, "Delimiters"),
        ("{{^x}}", 1, 1, "{{#unless name}}"),
        ("{{~x}}", 1, 1, "~"),
        ("{{#foo}}", 1, 1, "'foo' is not a section"),
        ("{{#foo x}}{{/foo}}", 1, 1, "'foo' is not a section"),
        ("{{#if}}{{/if}}", 1, 1, "name is missing"),
        ("{{#if a b}}{{/if}}", 1, 1, "takes one name"),
        ('{{#if a|"b"}}{{/if}}', 1, 1, "takes one name"),
        ("{{#if (eq a b)}}{{/if}}", 1, 1, "is not a name"),
        ("{{#each a as |b|}}{{/each}}", 1, 1, "takes one name"),
        ("{{#if a}}{{else}}{{else}}{{/if}}", 1, 18, "already has an {{else}}"),
        ("{{else}}", 1, 1, "outside"),
        ("a\nb{{/if}}", 2, 2, "is not open"),
        ("{{/}}", 1, 1, "is not a section"),
        ("{{#if a}}{{/if a}}", 1, 10, "takes no name"),
        ("{{#if a}}\n{{#each b}}\n{{/if}}{{/each}}", 3, 1, "{{#each b}} is still open"),
        ("{{#each a}}\n{{/if}}", 2, 1, "{{#each a}} is still open"),
        ("x{{#if a}}\n {{#unless b}}{{/unless}}", 1, 2, "{{/if}} is missing"),
        ("{{#if a}}\n {{#unless b}}", 2, 2, "{{/unless}} is missing"),
    ],
)
def test_an_error_has_its_position(source, line, column, words):
    with pytest.raises(TemplateSyntaxError) as caught:
        compile_template(source)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in str(caught.value)


def test_a_long_name_is_not_repeated_in_the_message():
    with pytest.raises(TemplateSyntaxError) as caught:
        compile_template("{{#" + "x" * MEBIBYTE + "}}")
    assert len(caught.value.message) < 200


@each(
    "name",
    [
        *(
            "a",
            "_",
            "__class__",
            "a-b",
            "a-",
            "items.0",
            "0",
            "12.a",
            "prénom",
            "ชื่อ",
            "名前.1",
            "a" * 255,
            "a" + ".a" * 19,
        ),
        *("this", "this.a", "if", "each", "elsewhere", "else.x"),
    ],
)
def test_a_dotted_name_compiles(name):
    for source in (f"{{{{{name}}}}}", f"{{{{ \n{name}\t}}}}", f"{{{{{{ {name} }}}}}}", f'{{{{{name} | "x" }}}}'):
        compile_template(source)


def test_variables_are_the_names_of_the_data_in_order():
    source = "{{b}}{{a.c}}{{b}}{{#each items}}{{this.x}}{{@index}}{{name}}{{/each}}{{#if ok}}{{/if}}{{{raw}}}"
    assert compile_template(source).variables == ("b", "a.c", "items", "name", "ok", "raw")


def test_equal_sources_compile_to_equal_values():
    source = "a{{b}}{{#each c}}{{d}}{{/each}}"
    assert compile_template(source) == compile_template(source)
    assert hash(compile_template(source)) == hash(compile_template(source))


def test_each_branch_has_a_separate_cost_and_size():
    (node,) = compile_template("{{#if a}}xx{{b.c}}{{else}}y{{/if}}").body.nodes
    assert (node.when_true.cost, node.when_true.size_chars) == (3, 2)
    assert node.when_false == Block(("y",), cost=1, size_chars=1)


def test_sections_nest_at_most_fifty_deep():
    compile_template("{{#if x}}" * 50 + "{{/if}}" * 50)
    with pytest.raises(TemplateSyntaxError, match="at most 50 levels deep") as caught:
        compile_template("{{#if x}}" * 51 + "{{/if}}" * 51)
    assert caught.value.column == 50 * len("{{#if x}}") + 1


@each("tag", ["{{x}}", "{{!x}}", "{{{x}}}"])
def test_a_template_has_at_most_ten_thousand_tags(tag):
    compile_template(tag * 10_000)
    with pytest.raises(TemplateSyntaxError, match="at most 10,000 tags") as caught:
        compile_template(tag * 10_001)
    assert caught.value.column == 10_000 * len(tag) + 1


@given(SOURCES)
def test_any_text_compiles_or_is_a_syntax_error_at_a_tag(source):
    error = error_of(source)
    if error is not None:
        line = source.split("\n")[error.line - 1]
        assert line[error.column - 1 :].startswith("{{")


def error_of(source):
    try:
        compile_template(source)
    except TemplateSyntaxError as error:
        return error
    return None


HOSTILE = {
    "braces": "{{",
    "single braces": "{ ",
    "closing braces": "}}",
    "literal braces": "\\{{",
    "backslashes": "\\",
    "comments": "{{!",
    "long comments": "{{!--",
    "closed comments": "{{!}}",
    "defaults": '{{a|"',
    "escaped quotes": '{{a|"\\"',
    "raw": "{{{a",
    "names": "{{a ",
    "sections": "{{#if x}}",
    "chains": "{{else if x}}",
    "comparisons": '{{#equals x "',
    "parents": "{{../",
    "loops": "{{#each x}}",
    "stray ends": "{{/if}}",
    "pairs": "{{#if x}}{{/if}}",
    "values": "{{a}}\n",
}
LONG_TAGS = {
    "space": ("{{", " ", ""),
    "closed space": ("{{", " ", "a}}"),
    "a name": ("{{", "a", "}}"),
    "dots": ("{{", ".", "}}"),
    "parents": ("{{", "../", "a}}"),
    "quotes": ('{{a|"', '\\"', '"}}'),
    "an open string": ('{{a|"', "\\\\", ""),
    "dashes": ("{{!--", "-", "}}"),
    "lines before the error": ("", "\n", "{{}}"),
    "literals before the error": ("", "\\{{", "{{}}"),
}
SOURCES_BY_NAME = {
    **{name: ("", unit, "") for name, unit in HOSTILE.items()},
    **LONG_TAGS,
}


@pytest.mark.parametrize("size", [MEBIBYTE // 8, pytest.param(MEBIBYTE // 2, marks=pytest.mark.long)])
@each("name", SOURCES_BY_NAME)
def test_the_time_for_a_hostile_template_is_linear(name, size):
    head, unit, tail = SOURCES_BY_NAME[name]
    half, double = (head + unit * (length // len(unit)) + tail for length in (size, 4 * size))
    # Interleaved, so that other load slows down both.
    short, long = map(min, zip(*[(seconds(half), seconds(double)) for _ in range(3)], strict=True))
    assert size < MEBIBYTE // 2 or long < 2
    # Four times the length: 4 in linear time, 16 in quadratic time. The margin is for very short runs, which clock
    # resolution and other load dominate.
    assert long < 6.7 * short + 0.05


def seconds(source):
    start = time.thread_time()
    with contextlib.suppress(TemplateSyntaxError):
        compile_template(source)
    return time.thread_time() - start
