from core.api.routing import fixed_path
from events.api.views import EventStreamView, EventsView

urlpatterns = [
    fixed_path("events", EventsView.as_view(), name="events"),
    fixed_path("events/stream", EventStreamView.as_view(), name="events-stream"),
]
