"""The demo of standing queries: a thousand rules over flights, replayed as a stream."""
