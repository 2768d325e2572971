"""Notify people outside Labwright of alerts and of runs that ended: webhook, Slack, desktop."""

from labwright.compute.notify.channels import Channel, channels_of, is_web_address, load_channels
from labwright.compute.notify.worker import NotificationWorker

__all__ = ["Channel", "NotificationWorker", "channels_of", "is_web_address", "load_channels"]
