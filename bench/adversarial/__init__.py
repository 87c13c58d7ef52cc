"""Queries on which an order that is fixed beforehand hurts."""
