-- Returns the alarms beside readings that a model takes for real.
SELECT level, count(*) AS alarms, sum(value) AS value
FROM readings
JOIN alarms ON readings.sensor = alarms.sensor
WHERE is_real(value)
GROUP BY level
