"""The list of API requests: filters, links, and its scope."""

import pytest

from core.request_log.models import ApiRequest
from core.request_log.recording import recorder
from emails.models import Email
from tests.conftest import Api, mail, make_key

PAGE = "/dashboard/requests/"


@pytest.fixture
def sent(api) -> str:
    """The id of an email; the log has its request, a refused one and a reading one."""
    email_id = api.post("/emails/send", mail()).json()["id"]
    api.post("/emails/send", mail(to="nobody"))
    api.get(f"/emails/{email_id}")
    assert recorder.flush()
    return str(email_id)


def paths(owner, query: str = "") -> list[str]:
    return sorted(
        f"{row.method} {row.status} {row.path}" for row in owner.get(f"{PAGE}{query}").context["listing"].rows
    )


def test_requests_are_listed_with_links_to_the_email_and_the_key(owner, sent, alice):
    response = owner.get(PAGE)
    page = response.text

    assert f'href="/dashboard/emails/{sent}/"' in page
    assert f'href="/dashboard/keys/{alice.workspace.api_keys.get().id}/"' in page
    assert "/docs/errors#validation_error" in page
    # A row has the id of its request and a button to copy it.
    assert ApiRequest.objects.count() == 3
    for number, row in enumerate(response.context["listing"].rows, start=1):
        assert f'<code id="id-{number}">{row.id}</code>' in page
        assert f'data-copy="#id-{number}"' in page


def test_results_filter_the_list(owner, sent):
    refused, accepted, read = "POST 422 /v1/emails/send", "POST 202 /v1/emails/send", f"GET 200 /v1/emails/{sent}"

    assert paths(owner) == sorted([refused, accepted, read])
    assert paths(owner, "?result=refused") == [refused]
    assert paths(owner, "?result=succeeded") == sorted([accepted, read])
    assert paths(owner, "?result=failed") == paths(owner, "?result=nonsense") == []


def test_a_search_finds_paths_codes_statuses_and_request_ids(owner, sent):
    request_id = ApiRequest.objects.get(status=422).id

    for text in (request_id, "validation_error", "422"):
        assert paths(owner, f"?search={text}") == ["POST 422 /v1/emails/send"]
    assert paths(owner, f"?search=emails/{sent}") == [f"GET 200 /v1/emails/{sent}"]
    assert paths(owner, "?search=no-such-thing%00") == []


def test_the_requests_of_an_email_and_of_a_key(owner, sent, alice):
    other = Api(make_key(alice.workspace))
    other.get("/domains")
    recorder.flush()
    key_id = ApiRequest.objects.get(path="/v1/domains").key_id

    assert paths(owner, f"?email={sent}") == [f"GET 200 /v1/emails/{sent}", "POST 202 /v1/emails/send"]
    assert paths(owner, f"?key={key_id}") == ["GET 200 /v1/domains"]
    assert paths(owner, "?key=nonsense") == paths(owner, "?email=nonsense") == []


def test_a_deleted_email_has_no_link(owner, sent):
    ApiRequest.objects.filter(status=202).update(email_id="0000000000000000000001")

    assert "0000000000000000000001" not in owner.get(f"{PAGE}?search=send&result=succeeded").content.decode()
    assert Email.objects.filter(id=sent).exists()


def test_requests_of_another_workspace_are_not_listed(owner, bobs_api):
    bobs_api.get("/domains")
    recorder.flush()

    assert ApiRequest.objects.count() == 1
    assert paths(owner) == []
    assert "No requests yet" in owner.get(PAGE).content.decode()
