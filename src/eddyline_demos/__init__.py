"""The demo: a query over real flights, run by plain Spark and by Eddyline."""
