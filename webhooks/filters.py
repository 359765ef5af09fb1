"""Filters of the list of deliveries."""

from django_filters import FilterSet

from api.fields import OptionField
from api.filters import FieldFilter
from webhooks.models import WebhookDeliveryStatus
from webhooks.serializers import EventTypeField


class DeliveryFilters(FilterSet):
    status = FieldFilter(OptionField(WebhookDeliveryStatus.choices, help_text="Only deliveries with this status."))
    event = FieldFilter(EventTypeField(help_text="Only events of this type."), "kind")
