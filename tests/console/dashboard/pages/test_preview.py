from tests.console.dashboard.conftest import make_caught, make_email

POLICY = (
    "sandbox allow-same-origin; default-src 'none'; img-src data: cid:; style-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'"
)


def test_a_preview_is_the_sandboxed_html_of_the_message(owner, alice):
    headers = {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "SAMEORIGIN",
        "Content-Type": "text/html; charset=utf-8",
    }
    email, mail = make_email(alice.workspace), make_caught(alice.workspace)
    for path, html in ((f"emails/{email.id}", "<p>Hi</p>"), (f"inbox/{mail.id}", "<h1>Hello in HTML</h1>")):
        preview = owner.get(f"/dashboard/{path}/preview/")
        assert {name: preview[name] for name in headers} == headers, path
        assert {"private", "no-store"} <= set(preview["Cache-Control"].split(", ")), path
        assert preview.text.strip() == html


def test_every_other_page_cannot_be_framed(owner):
    for path in ("/dashboard/", "/dashboard/login/", "/dashboard/nowhere/", "/admin/login/"):
        response = owner.get(path)
        policy = response["Content-Security-Policy"]
        for rule in ("frame-ancestors 'none'", "default-src 'none'", "script-src 'self' 'unsafe-eval';"):
            assert rule in policy, (path, rule)
        others = ("X-Frame-Options", "X-Content-Type-Options", "Referrer-Policy")
        assert [response[name] for name in others] == ["DENY", "nosniff", "same-origin"], path
