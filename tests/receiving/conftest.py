import pytest

from core.workspaces.key_limits import read_limits
from domains.models import ReceivingDomain
from domains.receiving.services import active_cache
from receiving.models import InboundRoute
from tests.conftest import Api, make_domain, make_key
from tests.receiving.builders import make_route, receive_for


@pytest.fixture(autouse=True)
def _receiving(settings):
    settings.RECEIVING_DOMAIN = "in.demo.example"
    settings.RECEIVING_MX = ["mx.demo.example"]
    settings.EHLO_NAME = "mx.demo.example"
    active_cache.clear()


@pytest.fixture
def receiving(alice) -> ReceivingDomain:
    """alice.example, whose email Alice receives."""
    return receive_for(make_domain(alice.workspace, "alice.example"))


@pytest.fixture
def route(alice, receiving) -> InboundRoute:
    """A route for all addresses of alice.example."""
    return make_route(alice.workspace)


@pytest.fixture
def key(alice, receiving) -> Api:
    """A client with Alice's full-access key."""
    return Api(make_key(alice.workspace))


@pytest.fixture
def test_key(alice, receiving) -> Api:
    return Api(make_key(alice.workspace, "sending_access", limits=read_limits(is_test=True)))


@pytest.fixture
def webhook(key: Api) -> str:
    """Return the id of an endpoint for the events of received email."""
    created = key.post("/webhooks", {"url": "http://127.0.0.1:9/hook", "events": ["received", "replied"]})
    return str(created.json()["id"])
