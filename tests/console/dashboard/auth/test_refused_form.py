"""Refused forms and unknown hosts answer with a page that explains the configuration."""

from ipaddress import ip_network

import pytest
from django.test import Client

from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db
URL = "https://mail.example.com"
HTTPS = {"HTTP_X_FORWARDED_PROTO": "https"}


@pytest.fixture
def production(settings):
    settings.PUBLIC_URL, settings.SECURE = URL, True
    settings.CSRF_TRUSTED_ORIGINS = [URL]
    settings.ALLOWED_HOSTS = ["mail.example.com"]
    settings.SECURE_PROXY_SSL_HEADER = None
    settings.CSRF_COOKIE_SECURE = settings.SESSION_COOKIE_SECURE = True


def sign_in(origin, **meta):
    """Post the sign-in form as a browser that has no cookie."""
    browser = Client(enforce_csrf_checks=True, SERVER_NAME="mail.example.com")
    body = {"username": "ada@example.com", "password": PASSWORD}
    response = browser.post("/dashboard/login/", body, headers={"origin": origin}, **meta)
    return response.status_code, " ".join(response.content.decode().split())


@pytest.mark.usefixtures("production")
class TestRefusedForm:
    def test_sign_in_over_http_names_the_address_with_https(self):
        status, page = sign_in("http://mail.example.com")
        assert status == 403
        assert "This form only works over https" in page
        assert f"Open {URL} instead." in page
        assert PASSWORD not in page

    def test_an_untrusted_proxy_is_named(self):
        status, page = sign_in(URL, **HTTPS)
        assert status == 403
        assert "which manage.py doctor shows, to TRUSTED_PROXIES" in page

    def test_a_trusted_proxy_without_a_cookie_blames_the_browser(self, settings):
        settings.TRUSTED_PROXIES = [ip_network("127.0.0.0/8")]
        settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
        status, page = sign_in(URL, **HTTPS)
        assert status == 403
        assert "Allow cookies for this site" in page

    def test_another_address_names_public_url(self, settings):
        settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
        status, page = sign_in("https://old.example.com", **HTTPS)
        assert status == 403
        assert f"This page was opened at another address than {URL}." in page
        assert "compare PUBLIC_URL" in page


@pytest.mark.usefixtures("production")
class TestUnknownHost:
    def test_the_page_names_the_host_and_the_setting(self):
        for path in ("/", "/dashboard/login/", "/docs/"):
            response = Client().get(path, headers={"host": "mail2.example.com"})
            page = " ".join(response.content.decode().split())
            assert response.status_code == 400, path
            assert "The host mail2.example.com is not configured." in page
            assert "add the host to ALLOWED_HOSTS and restart web" in page
        headers = {"host": "mail2.example.com", "accept-language": "de"}
        page = " ".join(Client().get("/", headers=headers).content.decode().split())
        assert "Der Host mail2.example.com ist nicht konfiguriert." in page
        assert "Nehmen Sie den Host in ALLOWED_HOSTS auf" in page

    def test_the_host_is_escaped_and_cut(self):
        page = Client().get("/", headers={"host": "<script>" + "x" * 5000}).content.decode()
        assert "&lt;script&gt;x" in page
        assert "x" * 300 not in page
