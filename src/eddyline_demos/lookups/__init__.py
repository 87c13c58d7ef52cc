"""The demo of lookups: flights joined with services that the demo starts on loopback."""
