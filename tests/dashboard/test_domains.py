import pytest

from domains.models import Domain
from tests.conftest import make_domain


def test_registers_one_and_shows_its_record(owner, alice):
    response = owner.post("/dashboard/domains/add/", {"name": "Mail.Bücher.Example"})

    domain = Domain.objects.get()
    assert (domain.name, domain.workspace) == ("mail.xn--bcher-kva.example", alice.workspace)
    page = owner.get(response.url).content.decode()
    assert f"{domain.dkim_keys.get().selector}._domainkey" in page
    assert "v=DKIM1; k=rsa; p=" in page
    assert "PRIVATE" not in page


@pytest.mark.parametrize("name", ["", "nonsense", "-x.example", "1.2.3.4", "a" * 300, "<script>.example"])
def test_refuses_what_is_no_domain(owner, name):
    response = owner.post("/dashboard/domains/add/", {"name": name})

    assert response.context["form"].errors["name"]
    assert not Domain.objects.exists()


def test_refuses_one_that_is_there(owner, alice):
    make_domain(alice.workspace, "mail.example.com")

    response = owner.post("/dashboard/domains/add/", {"name": "mail.example.com"})

    assert "already" in response.content.decode()


def test_a_full_plan_is_a_form_error(owner, alice):
    alice.workspace.plan = "free"
    alice.workspace.save(update_fields=["plan"])
    make_domain(alice.workspace, "mail.example.com")

    response = owner.post("/dashboard/domains/add/", {"name": "other.example.com"})

    assert "room for 1" in response.content.decode()


def test_the_list_shows_status(owner, alice):
    make_domain(alice.workspace, "mail.example.com")

    page = owner.get("/dashboard/domains/").content.decode()

    assert "mail.example.com" in page
    assert "pending" in page
