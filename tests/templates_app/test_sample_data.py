import json
import time
from dataclasses import replace

from templates_app.language.rendering import RenderMode, render
from templates_app.language.sample_data import sample_data
from templates_app.language.syntax import compile_template
from tests.rows import each


@each(
    ("source", "data"),
    [
        ("{{name}} {{user.name}} {{@root.code}}", {"name": "name", "user": {"name": "name"}, "code": "code"}),
        ("{{#if vip}}{{code}}{{else}}{{other}}{{/if}}", {"vip": True, "code": "code", "other": "other"}),
        ("{{#if code}}{{code}}{{/if}}", {"code": "code"}),
        ("{{#with person}}{{name}} {{../city}} {{this.age}}{{/with}}",
         {"person": {"name": "name", "age": "age"}, "city": "city"}),
        ("{{#with person}}New{{/with}}{{#unless none}}{{/unless}}", {"person": True, "none": True}),
        ("{{#each rows}}{{title}} {{@index}} {{../total}}{{/each}}",
         {"rows": [{"title": "title"}, {"title": "title"}], "total": "total"}),
        ("{{#each tags}}{{this}}{{/each}}{{#each empty}}x{{/each}}", {"tags": ["one", "two"], "empty": ["one", "two"]}),
        ("{{#with files}}{{#each this}}{{name}}{{/each}}{{/with}}", {"files": [{"name": "name"}, {"name": "name"}]}),
        ("{{#each rows}}{{#each cells}}{{id}}{{/each}}{{/each}}", {"rows": [{"cells": [{"id": "id"}]}] * 2}),
        ("{{#each rows}}{{#each this}}{{id}}{{/each}}{{/each}}", {"rows": [[{"id": "id"}]] * 2}),
        ('{{#equals code "A1"}}{{code}}{{/equals}}', {"code": "A1"}),
        ("{{#greaterThan score 5}}{{/greaterThan}}", {"score": 5}),
        ("{{#and one two}}{{three}}{{/and}}{{items.length}}{{#each items}}{{id}}{{/each}}",
         {"one": True, "two": True, "three": "three", "items": [{"id": "id"}] * 2}),
    ],
)  # fmt: skip
def test_each_variable_has_a_value_of_its_kind(source, data):
    compiled = compile_template(source)
    assert sample_data(compiled) == data
    assert not render(compiled, data, mode=RenderMode.TEXT).missing


def test_a_partial_has_the_names_of_its_parameters_and_of_its_place():
    compiled = compile_template("{{#each rows}}{{> line title=name price=2}}{{/each}}")
    line = compile_template("{{title}} {{price}} {{currency}}").body
    linked = replace(compiled, blocks={"line": line})
    data = {"rows": [{"name": "name", "currency": "currency"}] * 2}
    assert sample_data(linked) == data
    assert not render(linked, data, mode=RenderMode.TEXT).missing


@each(
    ("opening", "closing", "count"),
    [
        ("{{#each a}}", "{{/each}}", 49),
        ("{{#with a.b.c.d.e.f.g.h.i.j}}", "{{/with}}", 49),
        ("{{a.b.c.d.e}}", "", 9_000),
    ],
)
def test_the_sample_of_a_hostile_template_stays_small(opening, closing, count):
    compiled = compile_template(opening * count + "{{x}}" + closing * count)
    started = time.thread_time()
    assert len(json.dumps(sample_data(compiled))) < 10_000
    assert time.thread_time() - started < 1
