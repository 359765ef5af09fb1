import pytest

from console.dashboard.auth import account_emails
from console.system_mail import alert_emails
from console.system_mail import reputation_warnings as warning_emails
from console.system_mail.html import LABELS, readable_on, render_html
from console.system_mail.invitations import INVITATION
from console.system_mail.models import SystemMailKind
from interfaces.inbound.inbox.html_check import check_html

URL = "https://mail.example.com/dashboard/invitation/?token=abc&next=%2F"
TEXTS = [
    (SystemMailKind.INVITATION, INVITATION),
    (SystemMailKind.PROOF, account_emails.CONFIRMATION),
    (SystemMailKind.RESET, account_emails.RESET),
    (SystemMailKind.NOTICE, account_emails.NOTICE),
    (SystemMailKind.NOTICE, warning_emails.WARNING),
    (SystemMailKind.NOTICE, warning_emails.SUSPENSION),
    (SystemMailKind.NOTICE, alert_emails.TRIGGERED),
    (SystemMailKind.NOTICE, alert_emails.RESOLVED),
]
HOSTILE = '</title><script>alert(1)</script>"><img src=x>'


def rendered(kind: str, text: str, name: str = "Shop") -> str:
    values = {"by": name, "workspace": name, "service": name, "role": "an owner", "change": name, "summary": name}
    values |= {"url": URL, "name": name}
    return render_html(kind=kind, language="en", subject=f"Join {name}", text=str(text).format(**values))


@pytest.mark.parametrize(("kind", "text"), TEXTS)
def test_every_system_email_has_one_button_and_common_markup(kind, text):
    html = rendered(kind, text)

    assert html.count('bgcolor="#4f46e5"') == 1
    assert html.count('href="https://mail.example.com/dashboard/invitation/?token=abc&amp;next=%2F"') == 2
    assert str(LABELS[kind]) in html
    assert check_html(html, has_text=True) == []


@pytest.mark.parametrize(("kind", "text"), TEXTS)
def test_names_are_escaped(kind, text):
    html = rendered(kind, text, HOSTILE)

    assert "<script" not in html
    assert "<img" not in html


def test_the_lines_of_a_paragraph_are_joined():
    html = render_html(
        kind="notice", language="en", subject="S", text="One\ntwo.\n\n\nhttps://a.example/ is no link here.\n"
    )

    assert ">One two.</p>" in html
    assert ">https://a.example/ is no link here.</p>" in html
    assert "<a " not in html


@pytest.mark.parametrize(("kind", "text"), TEXTS)
def test_settings_choose_name_logo_and_color(settings, kind, text):
    settings.SYSTEM_NAME, settings.SYSTEM_COLOR = 'Larkspur "Mail" & Co.', "#facc15"

    named = rendered(kind, text)
    settings.SYSTEM_LOGO_URL = "https://larkspur.example/logo.png?a=1&b=2"
    html = rendered(kind, text)

    assert ">Larkspur &quot;Mail&quot; &amp; Co.</td>" in named
    assert "<img" not in named
    assert html.count('bgcolor="#facc15"') == 1
    assert "color:#000000" in html
    assert "#4f46e5" not in html
    assert '<img src="https://larkspur.example/logo.png?a=1&amp;b=2" alt="Larkspur &quot;Mail&quot; &amp; Co."' in html
    assert "Postrider" not in html
    assert check_html(html, has_text=True) == []


@pytest.mark.parametrize(
    ("color", "text_color"),
    [("#4f46e5", "#ffffff"), ("#000000", "#ffffff"), ("#ffffff", "#000000"), ("#facc15", "#000000"),
     ("#757575", "#ffffff"), ("#767676", "#000000"), ("#00ff00", "#000000"), ("#0000ff", "#ffffff")],
)  # fmt: skip
def test_the_text_of_the_button_is_readable_on_its_color(color, text_color):
    assert readable_on(color) == text_color


def test_every_kind_has_a_label():
    # TLS reports have no HTML.
    assert set(LABELS) == set(SystemMailKind) - {SystemMailKind.TLS_REPORT}
