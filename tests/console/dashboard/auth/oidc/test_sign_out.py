"""Signing out here, and then at the provider."""

from urllib.parse import parse_qs, urlsplit

from django.contrib.sessions.models import Session
from django.test import Client

from tests.console.dashboard.auth.oidc.steps import is_signed_in, sign_in


def test_the_provider_is_opened_with_the_id_token(client, forger):
    sign_in(client, forger)
    page = client.post("/dashboard/logout/")

    assert page.status_code == 200
    assert not is_signed_in(client)
    url = urlsplit(page.context["url"])
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert f"{url.scheme}://{url.netloc}{url.path}" == f"{forger.issuer}/end"
    assert query["id_token_hint"] == forger.id_token
    assert query["post_logout_redirect_uri"] == "http://testserver/dashboard/login/"
    assert f'content="0; url={page.context["url"]}"'.replace("&", "&amp;") in page.content.decode()


def test_the_staff_site_does_so_too(client, forger):
    sign_in(client, forger, site="admin", groups=["mail-admins"])
    assert "admin%2Flogin%2F" in client.post("/admin/logout/").context["url"]


def test_the_session_has_no_readable_token(client, forger):
    sign_in(client, forger)
    (stored,) = Session.objects.all()
    data = stored.get_decoded()
    assert forger.id_token not in str(data)
    assert forger.id_token.split(".")[1] not in str(data)


def test_a_provider_without_such_a_page_or_out_of_order_ends_the_session_here(forger):
    from console.dashboard.auth.oidc.provider import forget_documents

    for metadata, response in (({"end_session_endpoint": None}, None), ({}, (500, {}))):
        client = Client()
        sign_in(client, forger)
        forget_documents()
        forger.metadata = metadata
        if response:
            forger.responses["/.well-known/openid-configuration"] = response
        assert client.post("/dashboard/logout/").url == "/dashboard/login/"
        assert not is_signed_in(client)


def test_a_session_by_password_ends_here_only(owner, forger):
    assert owner.post("/dashboard/logout/").url == "/dashboard/login/"
