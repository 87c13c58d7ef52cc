"""Forecasts of paid calls, against what the queries then call and pay."""
