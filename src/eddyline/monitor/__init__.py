"""Queries watched while they run: progress, the live page, and how a session fares."""
