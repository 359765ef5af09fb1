"""Sessions are of pages."""

import pytest
from django.test import Client


@pytest.mark.django_db
def test_the_api_has_no_session_and_pages_have_one():
    client = Client()
    for path, has_session in {"/v1/me": False, "/compat/resend/emails": False, "/dashboard/login/": True}.items():
        request = client.get(path).wsgi_request
        assert [hasattr(request, name) for name in ("session", "_messages")] == [has_session, has_session], path
