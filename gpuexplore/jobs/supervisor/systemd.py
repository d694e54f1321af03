"""Tells systemd how the service is, where it asks: `Type=notify` and `WatchdogSec`."""

import os
import socket


def notify(state: str) -> None:
    """Send `state` to systemd, e.g. `READY=1`; nothing happens where no systemd listens.

    See https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
    """
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect("\0" + address[1:] if address.startswith("@") else address)
        sender.send(state.encode())
