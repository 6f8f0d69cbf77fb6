"""Ways in and out: one folder per channel, all of the shape of `channel.Channel` (CHN-01)."""
