"""The durable registry of standing queries: what came and went, and what each batch ran."""
