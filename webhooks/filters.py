"""Filters of the list of deliveries."""

from django_filters import FilterSet
from rest_framework import serializers

from api.filters import FieldFilter
from webhooks.models import WebhookDeliveryStatus
from webhooks.serializers import EventTypeField


class DeliveryFilters(FilterSet):
    status = FieldFilter(
        serializers.ChoiceField(WebhookDeliveryStatus.choices, help_text="Only deliveries with this status.")
    )
    event = FieldFilter(EventTypeField(help_text="Only events of this type."), "kind")
