"""Tell people of alerts and of runs that ended, outside of Labwright: webhook, Slack, desktop."""

from labwright.compute.notify.channels import Channel, channels_of, is_web_address, load_channels
from labwright.compute.notify.couriers import Couriers

__all__ = ["Channel", "Couriers", "channels_of", "is_web_address", "load_channels"]
