"""Delivery composes a message, sends it and classifies the reply: `message/`, `transports/`, `bounces/`; no models."""
