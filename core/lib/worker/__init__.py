"""Queues: lease queue, processor, timers, wake-ups, failpoints, and buffers that are written in batches."""
