-- A semi-join drops the early readings; each that is left is looked at once, before they are many.
SELECT level, count(*) AS alarms, sum(value) AS value
FROM (
    SELECT readings.sensor, value
    FROM readings
    LEFT SEMI JOIN (SELECT DISTINCT sensor FROM alarms) AS heard ON readings.sensor = heard.sensor
    WHERE is_real(value)
) AS kept
JOIN alarms ON kept.sensor = alarms.sensor
GROUP BY level
