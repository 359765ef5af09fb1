"""Filters of the list of deliveries."""

from django_filters import FilterSet

from core.api.fields import OptionField
from core.api.filters import FieldFilter
from webhooks.models import WebhookDeliveryStatus
from webhooks.serializers import EventTypeField


class DeliveryFilters(FilterSet):
    status = FieldFilter(OptionField(WebhookDeliveryStatus.choices, help_text="Only deliveries with this status."))
    event = FieldFilter(EventTypeField(help_text="Only events of this type."), "kind")
