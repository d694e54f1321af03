"""Brings queued runs to the devices: supervisor, engines, and the client that starts them."""
