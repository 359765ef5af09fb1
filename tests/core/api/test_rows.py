"""Serializers of rows and examples take from the model what they do not declare."""

import pytest
from rest_framework import serializers

from core.api.fields import RowSerializer
from core.api.schema import EXAMPLE_TIME, example
from streams.models import Stream
from streams.serializers import CountedStreamSerializer, StreamInput, StreamSerializer


def test_a_field_has_the_text_of_the_model_unless_it_has_another():
    fields = StreamInput().fields
    assert fields["name"].help_text == "The name of the stream. Recipients see it."
    assert fields["trackOpens"].help_text == "Whether opens are tracked, unless an email says otherwise."
    assert fields["transportRoute"].help_text.endswith("null for the usual one.")


def test_an_input_refuses_other_types_and_unknown_fields():
    given = {"id": "news", "name": "News", "description": 1, "kind": 1, "trackOpens": "yes", "kinds": 1}
    serializer = StreamInput(data=given)
    assert not serializer.is_valid()
    assert {name: str(errors[0]) for name, errors in serializer.errors.items()} == {
        "description": "This must be a string.",
        "kind": "This must be one of transactional, bulk.",
        "trackOpens": "This must be true or false.",
        "kinds": "Unknown field 'kinds'. Did you mean 'kind'?",
    }


def test_a_field_with_a_default_of_the_model_may_be_missing():
    serializer = StreamInput(data={"id": "news", "name": "News", "trackOpens": False})
    assert serializer.is_valid()
    assert serializer.validated_data == {"slug": "news", "name": "News", "track_opens": False}


def test_a_subclass_adds_its_fields_behind_the_others():
    assert [*CountedStreamSerializer().fields] == [*StreamSerializer().fields, "counts"]


def test_a_declared_field_must_be_listed():
    class Incomplete(RowSerializer[Stream]):
        archived = serializers.BooleanField()

        class Meta:
            model = Stream
            fields = ("name",)

    with pytest.raises(AssertionError, match="'archived' was declared"):
        _ = Incomplete().fields


def test_an_example_has_defaults_null_and_a_time_where_no_value_is_given():
    stream = example(StreamSerializer, id="news", name="News", priority="low")
    assert [*stream][:3] == ["id", "name", "description"]
    assert (stream["priority"], stream["kind"], stream["trackOpens"]) == ("low", "transactional", True)
    assert (stream["pausedAt"], stream["createdAt"]) == (None, EXAMPLE_TIME)
    assert "transportRoute" not in stream


@pytest.mark.parametrize(
    ("values", "message"),
    [({"id": "news", "name": "News", "names": 1}, "has no field names"), ({"id": "news"}, "needs a value of name")],
)
def test_an_example_is_refused_with_unknown_or_missing_values(values, message):
    with pytest.raises(LookupError, match=message):
        example(StreamSerializer, **values)
