"""Page of the staff admin about outbound connections (docs/decisions/0377)."""

import re

from console.privacy.connections import KINDS
from core.delivery.transports.transports_file import single_transport
from core.workspaces.models import User
from tests.console.dashboard.conftest import shown_text

PAGE = "/admin/connections/"


def test_it_shows_each_kind_with_the_settings_in_force(staff, settings):
    settings.TRANSPORTS, settings.SMTP_URL = single_transport("smtp"), "smtp://ada:secret@relay.example"
    settings.OIDC_ISSUER = ""
    response = staff.get(PAGE)
    text = shown_text(response)
    for kind in KINDS:
        assert str(kind.title) in text, kind.name
    assert "Relays All emails of an SMTP transport. relay.example:587 SMTP_URL, TRANSPORTS_FILE" in text
    assert "Sign-ins with OpenID Connect. not used OIDC_ISSUER" in text
    assert "secret" not in response.content.decode()


def test_it_is_german_and_in_the_sidebar(staff):
    User.objects.filter(is_staff=True).update(language="de")
    page = staff.get("/admin/").content.decode()
    assert f'href="{PAGE}"' in page
    text = shown_text(staff.get(PAGE))
    assert "Ausgehende Verbindungen" in text
    assert "Nameserver" in text
    content = staff.get(PAGE).content.decode()
    columns = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', content)
    assert re.findall('<td data-label="(.*?)"', content) == columns * len(KINDS)


def test_only_staff_see_it(client, db):
    assert client.get(PAGE).status_code == 302
