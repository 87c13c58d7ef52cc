"""Programs that run as clients of a server are not imported."""

collect_ignore = ["shapes_client.py", "verbs_client.py"]
