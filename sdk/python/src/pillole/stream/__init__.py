"""Streams: a subscription that survives its connections."""
