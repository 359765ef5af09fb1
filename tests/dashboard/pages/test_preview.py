import pytest

from tests.dashboard.conftest import make_caught, make_email

POLICY = (
    "sandbox allow-same-origin; default-src 'none'; img-src data: cid:; style-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'"
)


@pytest.fixture(params=["emails", "inbox"])
def preview(request, owner, alice):
    make = {"emails": make_email, "inbox": make_caught}[request.param]
    return owner.get(f"/dashboard/{request.param}/{make(alice.workspace).id}/preview/")


def test_is_sandboxed(preview):
    headers = {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "SAMEORIGIN",
        "Content-Type": "text/html; charset=utf-8",
    }
    assert {name: preview[name] for name in headers} == headers
    assert {"private", "no-store"} <= set(preview["Cache-Control"].split(", "))


def test_is_the_html_of_the_message(preview):
    assert preview.content.decode().strip() in {"<p>Hi</p>", "<h1>Hello in HTML</h1>"}


@pytest.mark.parametrize("path", ["/dashboard/", "/dashboard/login/", "/dashboard/nowhere/", "/admin/login/"])
def test_every_other_page_cannot_be_framed(owner, path):
    response = owner.get(path)

    policy = response["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "script-src 'self' 'unsafe-eval';" in policy
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
