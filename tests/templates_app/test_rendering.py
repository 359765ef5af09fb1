import html
import json
import re
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from templates_app.language.rendering import MAX_BYTES, MAX_MISSING, OutputTooLarge, RenderMode, RenderTooLong, render
from templates_app.language.syntax import TemplateSyntaxError, compile_template
from tests.rows import each
from tests.templates_app.test_syntax import SOURCES

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["a", "b", "0"]), inner),
    max_leaves=20,
)
DATA = st.dictionaries(st.text() | st.sampled_from(["a", "b", "this", "0"]), JSON_VALUES)


def rendered(source, data=None, mode=RenderMode.HTML):
    return render(compile_template(source), data or {}, mode=mode)


def text_of(source, data=None, mode=RenderMode.HTML):
    return rendered(source, data, mode).text


@each(
    ("source", "data", "text"),
    [
        # Names
        ("Hi {{name}}!", {"name": "Ada"}, "Hi Ada!"),
        ("{{ \n user.name\t}}", {"user": {"name": "Ada"}}, "Ada"),
        ("{{items.1}}{{items.01}}", {"items": ["a", "b"]}, "bb"),
        ("{{items.0.x}}", {"items": [{"x": 1}]}, "1"),
        ("{{a.0}}{{0}}", {"a": {"0": "x"}, "0": "y"}, "xy"),
        ("{{first-name}}{{ชื่อ}}", {"first-name": "A", "ชื่อ": "B"}, "AB"),
        ("[{{a.length}}{{a.items}}{{b.0}}{{c.x}}]", {"a": {}, "b": "text", "c": 1}, "[]"),
        ("[{{__class__}}{{a.__class__}}{{a.upper}}]", {"a": "x"}, "[]"),
        (
            "{{a.length}} {{b.length}} {{c.length}} {{d.length}}",
            {"a": ["x", "y"], "b": "abc", "c": {"length": "own"}, "d": []},
            "2 3 own 0",
        ),
        ("[{{items.2}}]", {"items": ["a", "b"]}, "[]"),
        # Values
        ("{{a}} {{b}} {{c}}", {"a": True, "b": False, "c": None}, "true false "),
        ("{{a}} {{b}} {{c}} {{d}}", {"a": 1.0, "b": 10**30, "c": -0.5, "d": 1e22}, f"1.0 {10**30} -0.5 1e+22"),
        ("{{{a}}} {{{b}}}", {"a": [1, "x", None], "b": {"k": [True, "é"]}}, '[1,"x",null] {"k":[true,"é"]}'),
        ("{{a}}", {"a": ["<"]}, "[&quot;&lt;&quot;]"),
        ("{{a}}{{a}}", {"a": "{{b}} \\{{", "b": "no"}, "{{b}} \\{{" * 2),
        # Defaults
        ('{{a|"there"}}{{ a | "x" }}{{{ a|"y" }}}', {}, "therexy"),
        ('{{a|"x"}}{{b|"y"}}', {"a": None, "b": ""}, "xy"),
        ('{{a|"x"}}{{b|"y"}}{{c|"z"}}', {"a": 0, "b": False, "c": []}, "0false[]"),
        (r'{{{a|"\"\\ }} {{b}}"}}}', {"b": 1}, r'"\ }} {{b}}'),
        ('{{a|"<b>"}}{{{a|"<b>"}}}', {}, "&lt;b&gt;<b>"),
        ('[{{a|""}}]', {}, "[]"),
        ("{{a|'b \"c\" \\' \\\\'}}", {}, "b &quot;c&quot; &#x27; \\"),
        # Literals and text that looks like tags
        (r"\{{name}} {{name}}", {"name": "x"}, "{{name}} x"),
        (r"\{{{name}}}", {"name": "x"}, "{{{name}}}"),
        (r"C:\\{{name}}", {"name": "x"}, r"C:\x"),
        ("{ } }} {a} {% b %} {{name}}}", {"name": "x"}, "{ } }} {a} {% b %} x}"),
        ("a\\b \\{ {\\{", {}, "a\\b \\{ {\\{"),
        # Comments
        ("a{{! b }}c{{!}}d{{ ! e}}", {}, "acd"),
        ("a{{!-- {{b}} }} --}}c{{!--}}d{{!----}}e", {}, "acde"),
        # Conditions
        ("{{#if a}}yes{{else}}no{{/if}}", {"a": "x"}, "yes"),
        ("{{# if a }}yes{{ else }}no{{/ if }}", {}, "no"),
        ("{{#if a}}yes{{/if}}.", {}, "."),
        ("{{#unless a}}no{{else}}yes{{/unless}}", {"a": 1}, "yes"),
        ("{{#unless a.b}}no{{/unless}}", {"a": {}}, "no"),
        ("{{#if a}}{{#if b}}1{{else}}2{{/if}}{{else}}3{{/if}}", {"a": 1}, "2"),
        ("{{#if a}}1{{else if b}}2{{else}}3{{/if}}", {"b": 1}, "2"),
        ("{{#if a}}1{{else if b}}2{{else if c}}3{{/if}}.", {"c": 1}, "3."),
        ("{{#if a}}1{{else unless b}}2{{else}}3{{/if}}", {"b": 1}, "3"),
        ('{{#if a}}1{{else equals b "x"}}2{{else}}3{{/if}}', {"b": "x"}, "2"),
        ("{{#unless a}}1{{else if b}}2{{/unless}}", {"a": 1, "b": 1}, "2"),
        ("{{#each a}}1{{else if b}}2{{else}}3{{/each}}", {"b": 1}, "2"),
        # Comparisons
        ('{{#equals a "x"}}1{{else}}2{{/equals}}', {"a": "x"}, "1"),
        ("{{#equals a b}}1{{else}}2{{/equals}}", {"a": "x", "b": "y"}, "2"),
        (
            "{{#equals a 5}}1{{/equals}}{{#equals b 5}}2{{/equals}}{{#equals c 5}}3{{/equals}}",
            {"a": 5, "b": 5.0, "c": "5"},
            "123",
        ),
        (
            '{{#equals a true}}1{{/equals}}{{#equals a "true"}}2{{/equals}}{{#equals a 1}}3{{/equals}}',
            {"a": True},
            "12",
        ),
        ('{{#equals a ""}}1{{/equals}}{{#equals b c}}2{{/equals}}', {"b": None}, "12"),
        ("{{#equals a a}}1{{else}}2{{/equals}}", {"a": [1]}, "2"),
        ("{{#equals a b}}1{{else}}2{{/equals}}", {"a": [1], "b": "[1]"}, "2"),
        ('{{#notEquals a "x"}}1{{else}}2{{/notEquals}}', {"a": "x"}, "2"),
        ("{{#greaterThan a 10}}1{{else}}2{{/greaterThan}}", {"a": 10.5}, "1"),
        ("{{#greaterThan a b}}1{{else}}2{{/greaterThan}}", {"a": "10", "b": "9"}, "1"),
        ("{{#greaterThan a 1}}1{{/greaterThan}}{{#lessThan a 1}}2{{/lessThan}}", {"a": "many"}, ""),
        ("{{#lessThan a -2}}1{{else}}2{{/lessThan}}", {"a": -3}, "1"),
        ("{{#and a b}}1{{else}}2{{/and}}{{#or a b}}3{{else}}4{{/or}}", {"a": 1, "b": 0}, "23"),
        (
            "{{#each a}}{{#equals this.k ../k}}{{this.n}}{{/equals}}{{/each}}",
            {"k": "x", "a": [{"k": "x", "n": 1}, {"k": "y", "n": 2}]},
            "1",
        ),
        # With
        ("{{#with a}}{{b}}{{c}}{{this.b}}{{else}}none{{/with}}", {"a": {"b": 1}, "c": 2}, "121"),
        ("{{#with a}}x{{else}}none{{/with}}", {"a": {}}, "none"),
        ("{{#with a}}{{this}}{{b}}{{/with}}", {"a": "x", "b": "y"}, "xy"),
        ("{{#each a}}{{#with b}}{{@index}}{{c}}{{/with}}{{/each}}", {"a": [{"b": {"c": "x"}}]}, "0x"),
        # Outer scopes
        ("{{#each a}}{{x}}{{../x}}{{@root.x}};{{/each}}", {"a": [{"x": 1}, {}], "x": 2}, "122;222;"),
        (
            "{{#each a}}{{#each b}}{{n}}{{../n}}{{../../n}}{{@root.n}}{{/each}}{{/each}}",
            {"a": [{"b": [{"n": 1}], "n": 2}], "n": 3},
            "1233",
        ),
        (
            "{{#each a}}{{#with b}}{{../n}}{{..}}{{/with}}{{/each}}",
            {"a": [{"b": {"n": 1}, "n": 2}]},
            "2{&quot;b&quot;:{&quot;n&quot;:1},&quot;n&quot;:2}",
        ),
        ("{{#each a}}{{../../../x}}{{/each}}{{../x}}", {"a": [1], "x": 2}, "22"),
        # Loops
        ("{{#each a}}{{this}},{{/each}}", {"a": [1, None, "x"]}, "1,,x,"),
        ("{{#each a}}{{name}}{{this.name}}{{/each}}", {"a": [{"name": "x"}, {"name": "y"}]}, "xxyy"),
        ("{{#each a}}{{@index}}{{@key}}{{@first}}{{@last}};{{/each}}", {"a": "xy"}, ""),
        ("{{#each a}}{{@index}}{{@key}}{{@first}}{{@last}};{{/each}}", {"a": [5, 6]}, "00truefalse;11falsetrue;"),
        ("{{#each a}}{{@key}}={{this}}@{{@index}};{{/each}}", {"a": {"x": 1, "y": 2}}, "x=1@0;y=2@1;"),
        ("{{#each a}}{{#unless @first}}, {{/unless}}{{this}}{{/each}}", {"a": ["x", "y"]}, "x, y"),
        ("{{#each a}}x{{else}}none{{/each}}", {"a": []}, "none"),
        ("{{#each a}}x{{else}}none{{/each}}", {"a": {}}, "none"),
        ("{{#each a}}x{{else}}none{{/each}}", {"a": 5}, "none"),
        ("{{#each a}}x{{else}}none{{/each}}", {}, "none"),
        ("{{#each a}}{{#each this}}{{this}}{{@index}}{{/each}}|{{/each}}", {"a": [["x"], ["y", "z"]]}, "x0|y0z1|"),
        ("{{#each a}}{{#each b}}{{n}}{{m}}{{x}}{{/each}}{{/each}}", {"a": [{"b": [{"n": 1}], "m": 2}], "x": 3}, "123"),
        ("{{#each a}}{{#each b}}{{else}}{{this.x}}{{/each}}{{/each}}", {"a": [{"x": 1}]}, "1"),
        # Scopes: the first one with the head wins, even with null
        ("{{#each a}}[{{x}}{{u.n}}]{{/each}}", {"a": [{"x": None, "u": {}}], "x": 1, "u": {"n": 2}}, "[]"),
        ("{{#each a}}{{0}}{{this.0}}{{/each}}", {"a": [["x"]]}, "x"),
        ("{{this.a}}{{{this}}}", {"a": 1}, '1{"a":1}'),
        ("{{this}}", {"this": 1}, "{&quot;this&quot;:1}"),
    ],
)
def test_a_template_renders(source, data, text):
    assert text_of(source, data) == text


@each("value", [None, False, 0, 0.0, "", [], {}])
def test_empty_values_are_false(value):
    assert text_of("{{#if a}}yes{{else}}no{{/if}}", {"a": value}) == "no"


@each("value", [True, 1, -0.1, "0", "false", " ", [0], {"a": None}])
def test_other_values_are_true(value):
    assert text_of("{{#if a}}yes{{else}}no{{/if}}", {"a": value}) == "yes"


@each(
    ("mode", "text"),
    [
        (RenderMode.HTML, "&amp;&lt;&gt;&quot;&#x27; &<>\"'"),
        (RenderMode.TEXT, "&<>\"' &<>\"'"),
        (RenderMode.SUBJECT, "&<>\"' &<>\"'"),
    ],
)
def test_two_braces_escape_only_in_html(mode, text):
    assert text_of("{{a}} {{{a}}}", {"a": "&<>\"'"}, mode) == text


@each(
    ("value", "text"),
    [
        ("a\r\nBcc: b", "a Bcc: b"),
        ("a\n\r\n\t\x00b", "a b"),
        ("\x7f\x80\x85\x9fa\u2028\u2029b\n", "a b"),
        (" a \n b ", "a   b"),
        ("\r\n", ""),
        ("é 日本 \u00a0x", "é 日本 \u00a0x"),
    ],
)
def test_a_subject_is_one_line(value, text):
    assert text_of("{{a}}", {"a": value}, RenderMode.SUBJECT) == text
    assert text_of(value, {}, RenderMode.SUBJECT) == text
    assert text_of("{{a}}", {"a": value}, RenderMode.TEXT) == value


@each(
    ("source", "missing"),
    [
        ("{{b}}{{a.c}}{{b}}{{{d}}}", ("b", "a.c", "d")),
        ("{{null}}{{empty}}{{zero}}", ()),
        ('{{x|"y"}}{{x|""}}', ()),
        ("{{#if x}}{{/if}}{{#unless x}}{{/unless}}", ()),
        ("{{#if x}}{{y}}{{else}}{{z}}{{/if}}", ("z",)),
        ("{{#each x}}{{y}}{{/each}}", ("x",)),
        ("{{#each null}}{{/each}}{{#each zero}}{{/each}}", ()),
        ("{{#each items}}{{name}}{{this.price}}{{this}}{{@index}}{{/each}}", ("name", "this.price")),
        ("{{items.5}}{{items.name}}{{empty.x}}", ("items.5", "items.name", "empty.x")),
        ("{{__class__}}", ("__class__",)),
    ],
)
def test_missing_names_are_reported_in_order_without_duplicates(source, missing):
    data = {"null": None, "empty": "", "zero": 0, "items": [{"a": 1}, {"a": 2}]}
    assert rendered(source, data).missing == missing


def test_at_most_a_hundred_missing_names_are_reported():
    missing = rendered("".join(f"{{{{v{number}}}}}" for number in range(MAX_MISSING + 1))).missing
    assert missing == tuple(f"v{number}" for number in range(MAX_MISSING))


@each("character", ["x", "é", "日", "😀"])
@each("place", ["text", "value"])
def test_output_is_limited_to_two_mebibytes(character, place):
    longest = character * (MAX_BYTES // len(character.encode())) + "x" * (MAX_BYTES % len(character.encode()))
    source, data = (longest, {}) if place == "text" else ("{{a}}", {"a": longest})
    assert text_of(source, data, RenderMode.TEXT) == longest
    with pytest.raises(OutputTooLarge):
        text_of(source + "y", data, RenderMode.TEXT)


@each(
    ("source", "data"),
    [
        ("{{a}}", {"a": "<" * (MAX_BYTES // 4 + 1)}),
        ("{{a}}", {"a": ["x" * MAX_BYTES]}),
        ("{{a}}" * 10_000, {"a": "x" * 1_000_000}),
        ("{{#each a}}{{#each a}}" + "x" * 300 + "{{/each}}{{/each}}", {"a": [0] * 100}),
        ('{{#each a}}{{b|"' + "x" * 30_000 + '"}}{{/each}}', {"a": [0] * 100}),
    ],
)
def test_output_beyond_two_mebibytes_is_rejected_while_it_grows(source, data):
    with pytest.raises(OutputTooLarge):
        text_of(source, data)


@each(
    ("source", "data"),
    [
        ("{{#each a}}" + "x" * 1_000_000 + "{{/each}}", {"a": [0] * 30}),
        ("{{a}}", {"a": '"' * 5_000_000}),
        ("{{a}}" * 30, {"a": "x" * 1_000_000}),
    ],
)
def test_rejected_output_is_never_built(source, data):
    compiled = compile_template(source)
    tracemalloc.start()
    try:
        with pytest.raises(OutputTooLarge):
            render(compiled, data, mode=RenderMode.HTML)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 3 * MAX_BYTES


def loops(body, depth=1):
    return "{{#each a}}" * depth + body + "{{/each}}" * depth


@each(
    ("source", "data"),
    [
        (loops("", depth=3), {"a": [0] * 100_000}),
        (loops("", depth=50), {"a": [0, 0]}),
        (loops("{{x}}", depth=2), {"a": [{}] * 1000}),
        (loops("{{#if x}}{{/if}}" * 100), {"a": [0] * 100_000}),
        (loops("{{x" + ".x" * 19 + "}}"), {"a": [{}] * 100_000}),
        (loops("{{x}}" * 5000, depth=45), {"a": [{}, {}]}),
        (loops("{{#each b}}{{/each}}"), {"a": [{}] * 1000, "b": {str(number): 0 for number in range(1000)}}),
    ],
)
def test_loops_without_output_are_limited(source, data):
    compiled = compile_template(source)
    start = time.perf_counter()
    with pytest.raises(RenderTooLong):
        render(compiled, data, mode=RenderMode.HTML)
    assert time.perf_counter() - start < 2


def test_a_table_of_ten_thousand_rows_renders():
    rows = [{"a": number, "b": "x", "c": 1.5} for number in range(10_000)]
    text = text_of("{{#each rows}}{{a}} {{b}} {{this.c}} {{@index}}\n{{/each}}", {"rows": rows})
    assert text.endswith("9999 x 1.5 9999\n")


@given(SOURCES.filter(lambda text: "{{" not in text))
def test_text_without_tags_renders_as_itself(source):
    assert text_of(source) == source


@given(SOURCES, DATA, st.sampled_from(RenderMode))
def test_rendering_raises_nothing_but_output_too_large(source, data, mode):
    try:
        compiled = compile_template(source)
    except TemplateSyntaxError:
        return
    try:
        result = render(compiled, data, mode=mode)
    except OutputTooLarge:
        return
    assert len(result.missing) == len(set(result.missing))


@given(DATA, st.sampled_from(RenderMode))
def test_all_features_render_any_data(data, mode):
    source = (
        '{{a}}{{{b.a}}}{{a.0|"x"}}{{#each a}}{{this}}{{a}}{{@key}}{{else}}{{b}}{{/each}}{{#if b}}{{0}}{{/if}}{{this}}'
    )
    render(compile_template(source), data, mode=mode)


@given(st.text() | st.text("<>\"'&;#x27ampltgquo", max_size=40))
def test_html_reads_back_as_the_value(value):
    text = text_of("{{a}}", {"a": value})
    assert not re.search(r"""[<>"']|&(?!(amp|lt|gt|quot|\#x27);)""", text)
    assert html.unescape(text) == value


@given(SOURCES)
def test_a_value_is_never_read_as_a_template(value):
    data = {"a": value, "b": "rendered twice"}
    assert text_of("{{{a}}}", data) == value
    assert text_of("<{{a}}>", data, RenderMode.TEXT) == f"<{value}>"
    assert text_of("{{#each c}}{{this}}{{/each}}", {**data, "c": [value]}, RenderMode.TEXT) == value


@given(JSON_VALUES)
def test_lists_and_objects_read_back_as_json(value):
    assert json.loads(text_of("{{a}}", {"a": [value]}, RenderMode.TEXT)) == [value]
